"""Items as a table: CSV with weights and intervals."""

from __future__ import annotations

import csv
import io
import math

from afresh.cli.engine.imports.imported import ImportedItem, ImportedList
from afresh.values.errors import InputError, UsageError, did_you_mean
from afresh.values.units import parse_duration

_COLUMNS = ("item", "weight", "cost", "min_interval", "max_interval", "selector")


def read_csv(content: bytes, name: str) -> ImportedList:
    """Read the columns ``item`` (or ``url``), ``weight``, ``cost``, ``min_interval``, ``max_interval`` (such
    as 6h) and ``selector``. Empty cells leave the defaults.

    >>> read_csv(b"url,weight,max_interval\\nhttps://a.test/,3,6h\\n", "a.csv").items[0].max_interval_s
    21600.0
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: is not UTF-8: {error.reason} at byte {error.start}") from None
    rows = csv.DictReader(io.StringIO(text), skipinitialspace=True)
    columns = {"item" if each in ("url", "key") else each: each for each in rows.fieldnames or ()}
    for column in columns:
        if column not in _COLUMNS:
            near = did_you_mean(column, _COLUMNS)
            raise InputError(f"{name}: unknown column {column!r}{near} Known: {', '.join(_COLUMNS)}")
    if "item" not in columns:
        raise InputError(f"{name}: has no column 'item'")
    items = []
    for number, row in enumerate(rows, 2):
        cells = {column: (row[given] or "").strip() for column, given in columns.items()}
        try:
            items.append(_item(cells))
        except (UsageError, InputError, ValueError) as error:
            raise InputError(f"{name}, row {number}: {error}") from None
    return ImportedList(tuple(items))


def _item(cells: dict[str, str]) -> ImportedItem:
    if not cells["item"]:
        raise InputError("column item is empty: give an address")
    numbers = {}
    for column in ("weight", "cost"):
        try:
            numbers[column] = float(cells.get(column) or 1.0)
        except ValueError:
            raise InputError(f"column {column}: {cells[column]!r} is not a number") from None
    shortest, longest = cells.get("min_interval"), cells.get("max_interval")
    return ImportedItem(
        cells["item"],
        numbers["weight"],
        numbers["cost"],
        parse_duration(shortest) if shortest else 0.0,
        parse_duration(longest) if longest else math.inf,
        cells.get("selector", ""),
    )
