"""Converts database rows of items, leases and observations to Python objects, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from afresh.values.arrays import Float64s
from afresh.values.errors import InputError
from afresh.values.items import STATUSES, Item, Status
from afresh.values.lease import Lease
from afresh.values.outcome import Observation
from afresh.values.stored import Ids, ObservationColumns, PolicyColumns

STATUS_CODE: dict[Status, int] = {status: code for code, status in enumerate(STATUSES)}
ACTIVE, PAUSED = STATUS_CODE["active"], STATUS_CODE["paused"]
Row = tuple[Any, ...]
T = TypeVar("T")
_OBSERVATION_TYPES = [np.int64, np.float64, np.float64, bool, np.float64, np.float64, bool]  # None is NaN
_POLICY_TYPES = [np.int64] * 3 + [np.int8] + [np.float64] * 7


def text_from_mapping(mapping: Mapping[str, str]) -> str:
    """Return a mapping as JSON without spaces.

    >>> text_from_mapping({"lang": "de"})
    '{"lang":"de"}'
    """
    return json.dumps(dict(mapping), separators=(",", ":"))


def mapping_from_text(text: str | None) -> dict[str, str]:
    """Return the mapping that a JSON text holds; for None, an empty mapping."""
    return json.loads(text) if text else {}


_EXPRESSIONS = {
    "id": "item.id",
    "item_id": "item.id",
    "key": "item.key",
    "content_hash": "version.normal_hash",
}
_EXPRESSIONS |= {"source": "source.text", "group": "grouping.text"}
_EXPRESSIONS |= {"not_before_s": "NULL"}  # a lender knows it, but no store
_DECODERS: dict[str, Callable[[Any], Any]] = {"status": STATUSES.__getitem__}
_DECODERS |= {"labels": mapping_from_text, "validators": mapping_from_text, "listed": bool}
_DECODERS |= {"not_before_s": lambda _: -math.inf}


def _row_reader(of: type[T]) -> tuple[str, Callable[[Row], T]]:
    """Return a tuple: the columns of a SELECT for the fields of a class, and a function that makes an object
    of this class from a row of them. A field has the name of its column, or its SQL in ``_EXPRESSIONS``."""
    names = [field.name for field in fields(of)]  # type: ignore[arg-type]
    encoded = [(place, _DECODERS[name]) for place, name in enumerate(names) if name in _DECODERS]

    def read(row: Row) -> T:
        values = list(row)
        for place, decode in encoded:
            values[place] = decode(values[place])
        return of(*values)

    return ", ".join(_EXPRESSIONS.get(name, name) for name in names), read


_ITEM_COLUMNS, item_from_row = _row_reader(Item)
_LEASE_COLUMNS, lease_from_row = _row_reader(Lease)
COLUMNS = {"{item_columns}": _ITEM_COLUMNS, "{lease_columns}": _LEASE_COLUMNS}
"""What stands for the columns of an item and of a lease in the files of SQL statements."""


def check_due_times(ids: Ids, due_s: Float64s) -> None:
    """Raise ``InputError`` if a due time is NaN, which cannot be sorted; the message names the item.

    >>> check_due_times(np.array([7]), np.array([np.nan]))
    Traceback (most recent call last):
    afresh.values.errors.InputError: item 7 is due at nan: must be Unix seconds, or inf for never
    """
    wrong = np.flatnonzero(np.isnan(due_s))
    if wrong.size:
        raise InputError(f"item {ids[wrong[0]]} is due at nan: must be Unix seconds, or inf for never")


def policy_columns(rows: Sequence[Row]) -> PolicyColumns:
    """Convert database rows to ``PolicyColumns``. Their columns are its fields; the last is the belief."""
    return PolicyColumns(*arrays_and_beliefs(rows, _POLICY_TYPES))


def arrays_and_beliefs(rows: Sequence[Row], types: Sequence[type]) -> Row:
    """Convert rows, whose last column is a belief, to a tuple: one array per other column, then the array of
    the beliefs' sizes in bytes, then the bytes of all beliefs. ``types`` are the types of the other columns;
    None becomes NaN."""
    *columns, beliefs = zip(*rows, strict=True) if rows else [()] * (len(types) + 1)
    numbers: list[Any] = [np.array(cells, kind) for cells, kind in zip(columns, types, strict=True)]
    return (*numbers, np.fromiter(map(len, beliefs), np.int64, len(beliefs)), b"".join(beliefs))


def group_by_item(columns: ObservationColumns) -> Iterator[tuple[int, list[Observation]]]:
    """Yield tuples (item id, the item's observations sorted by time), sorted by item id."""
    order = np.lexsort((columns.time_s, columns.item_id))
    item_ids, starts = np.unique(columns.item_id[order], return_index=True)
    ends = [*starts[1:].tolist(), order.size]
    lists: list[list[Any]] = [getattr(columns, name)[order].tolist() for name in ObservationColumns.__slots__]
    for item_id, start, end in zip(item_ids.tolist(), starts.tolist(), ends, strict=True):
        rows = zip(*(values[start:end] for values in lists), strict=True)
        yield item_id, [_observation(row) for row in rows]


def observation_columns(rows: Sequence[Row]) -> ObservationColumns:
    """Convert database rows, whose columns are the fields of ``Observation``, to arrays."""
    columns: list[Row] = list(zip(*rows, strict=True)) if rows else [()] * 7
    arrays: Row = tuple(map(np.array, columns, _OBSERVATION_TYPES))
    return ObservationColumns(*arrays)


def _observation(row: Row) -> Observation:
    *start, modified_s, count, audit = row
    known_count = None if math.isnan(count) else int(count)
    values: Row = (*start, None if math.isnan(modified_s) else modified_s, known_count, audit)
    return Observation(*values)
