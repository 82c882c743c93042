"""Reads a history that is recorded in files: every change (item, time), every item, and the window.

The window is the period of the history, from its start to its end. A change of an unknown item, a time
outside the window, an empty window or no items raise ``InputError`` with file and row. The order of the rows
does not matter. Changes exactly at the start are ignored, because every copy is fresh then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from afresh.tables.columns import Column
from afresh.tables.reading import CheckedTable, read_table
from afresh.tables.text_columns import Texts, positions_in
from afresh.values.arrays import Float64s, Ints
from afresh.values.errors import InputError, did_you_mean
from afresh.values.formatting import format_iso_time

CHANGES = (
    Column("item", "text", required=True, what="what changed"),
    Column("time", "time", required=True, what="when"),
    Column("value", "number", default=np.nan, what="what it changed to"),
)
EVENTS = CHANGES[:2]
NOTICES = (
    *EVENTS,
    Column("origin", "text", what="where the notice came from, such as sitemap or feed"),
)
ITEMS = (
    Column("item", "text", required=True, what="the item's name"),
    Column("weight", "number", default=1.0, minimum=0, what="importance"),
    Column("cost", "number", default=1.0, above=0, what="cost of one poll"),
    Column("group", "text", what="what is likely to change together"),
)
_MOST_NAMES_COMPARED = 5000  # among more names, searching for a similar one would take too long


@dataclass(frozen=True, slots=True)
class RecordedHistory:
    """The changes of all items, sorted by time: item ``item[j]`` changed at ``time[j]`` (Unix seconds).
    All times are after ``start`` and at most ``end``. ``names``, ``weight``, ``cost`` and ``group`` have one
    entry per item; ``group`` is None if the file ``items_path`` has no such column. If the file of changes
    has values, ``value`` is the content after each change, and ``initial`` the content of each item at the
    start (NaN: unknown). ``remarks`` are sentences for the user about assumptions that were made.
    ``modified`` is the last change of each item up to the start (NaN: unknown). An item without one counts as
    changed when the record begins, because a server would state a time that is earlier still."""

    names: Texts
    item: Ints
    time: Float64s
    start: float
    end: float
    weight: Float64s
    cost: Float64s
    group: tuple[str, ...] | None
    items_path: str = ""
    value: Float64s | None = None
    initial: Float64s | None = None
    remarks: tuple[str, ...] = ()
    modified: Float64s | None = None


def read_recorded(
    changes: str | Path,
    items: str | Path | None,
    start: float | None = None,
    end: float | None = None,
    *,
    keeps_past: bool = False,
) -> RecordedHistory:
    """Read the history in the file ``changes`` of the items in the file ``items``. If ``items`` is None, the
    items are those that change. ``start`` and ``end`` (Unix seconds) default to the first and last change.
    With ``keeps_past``, changes before the start are no error; they give ``modified`` of the result."""
    table = read_table(changes, CHANGES)
    known, remarks = _known_items(table, items)
    if known.rows == 0:
        raise InputError("has no rows: a history needs items", path=known.path)
    _refuse_unknown(table, known.text("item"), known.path)
    item = item_indices(table, known.text("item"))
    time = table.times("time")
    window, assumed = _window(table, start, end)
    _refuse_outside(table, time, -math.inf if keeps_past else window[0], window[1])
    order = np.lexsort((item, time))
    at_start = time[order] <= window[0]  # every copy contains these changes already
    value, initial = _values(table, item[order[at_start]], order[at_start], known.rows)
    modified = np.full(known.rows, time[order[0]] if at_start.any() else np.nan)
    modified[item[order[at_start]]] = time[order[at_start]]  # of several, the last one remains
    order = order[~at_start]
    return RecordedHistory(
        names=known.text("item"),
        item=item[order],
        time=time[order],
        start=window[0],
        end=window[1],
        weight=np.asarray(known.numbers("weight"), dtype=np.float64),
        cost=np.asarray(known.numbers("cost"), dtype=np.float64),
        group=tuple(known.text("group").tolist()) if "group" in known else None,
        items_path=known.path,
        value=None if value is None else value[order],
        initial=initial,
        remarks=(*remarks, *assumed),
        modified=modified,
    )


def _values(
    table: CheckedTable, item: Ints, rows: Ints, items: int
) -> tuple[Float64s | None, Float64s | None]:
    """Return a tuple (value, initial): the column of values, and the value of each item at the start.
    The changes in ``rows``, of the items ``item``, are at the start and give the initial values."""
    if "value" not in table:
        return None, None
    value = np.asarray(table.numbers("value"), dtype=np.float64)
    missing = np.isnan(value)
    if missing.any():
        raise table.fault(int(np.argmax(missing)), "value", "is missing: every change needs one, or none")
    initial = np.full(items, np.nan)
    initial[item] = value[rows]
    return value, initial


def read_notices(path: str | Path, names: Texts, start: float, end: float) -> CheckedTable:
    """Read and check a file of notices about the items and window of a history."""
    table = read_table(path, NOTICES)
    _refuse_unknown(table, names, "the history")
    _refuse_outside(table, table.times("time"), start, end)
    return table


def item_indices(table: CheckedTable, names: Texts) -> Ints:
    """Return the index in ``names`` of the item in each row; every item must be in ``names``."""
    return positions_in(names, table.text("item"))


def _known_items(table: CheckedTable, items: str | Path | None) -> tuple[CheckedTable, tuple[str, ...]]:
    if items is not None:
        return read_table(items, ITEMS, unique="item"), ()
    names = table.text("item").encode().labels
    empty_values = {column.name: column.empty_value for column in ITEMS}
    known = CheckedTable(
        table.path, 0, len(names), frozenset({"item"}), 1.0, {"item": names}, empty_values, table.line_of
    )
    return known, (f"without --items only the {len(names):,} items that change are known, and no others",)


def _refuse_unknown(table: CheckedTable, names: Texts, where: str) -> None:
    unknown = positions_in(names, table.text("item")) < 0
    if unknown.any():
        at = int(np.argmax(unknown))
        name = table.text("item")[at]
        near = did_you_mean(name, names.tolist()) if len(names) <= _MOST_NAMES_COMPARED else "."
        hint = "" if near == "." else near
        raise table.fault(at, "item", f"{name!r} is no item of {where}{hint}")


def _window(
    table: CheckedTable, start: float | None, end: float | None
) -> tuple[tuple[float, float], tuple[str, ...]]:
    time = table.times("time")
    if (start is None or end is None) and not time.size:
        raise InputError("has no changes, so it does not say when it starts and ends", path=table.path)
    remarks = []
    if start is None:
        start = float(time.min())
        remarks.append(f"without --start the history starts at its first change, {format_iso_time(start)}")
    if end is None:
        end = float(time.max())
        remarks.append(f"without --end it ends at its last change, {format_iso_time(end)}")
    if not start < end:
        problem = (
            f"the window is empty: it starts at {format_iso_time(start)} and ends at {format_iso_time(end)}"
        )
        raise InputError(problem, path=table.path)
    return (start, end), tuple(remarks)


def _refuse_outside(table: CheckedTable, time: Float64s, start: float, end: float) -> None:
    outside = (time < start) | (time > end)
    if outside.any():
        at = int(np.argmax(outside))
        side, limit = ("before the start", start) if time[at] < start else ("after the end", end)
        problem = f"is {format_iso_time(float(time[at]))}: {side}, {format_iso_time(limit)}"
        raise table.fault(at, "time", problem)
