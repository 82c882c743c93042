"""What a policy remembers, streamed in and out as arrays."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from afresh.stores.due_times import check_due
from afresh.stores.rows import Row
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.queries import load_blocks
from afresh.stores.sqlite.rows import json_list
from afresh.values.arrays import Float64s
from afresh.values.stored import Ids, PolicyColumns

_SQL = load_blocks("plan.sql")
_BATCH = 10_000
_TYPES = [np.int64] * 3 + [np.int8] + [np.float64] * 3  # NULL becomes NaN
_USUAL = (1.0, 0.0, math.inf, math.nan)  # cost, min and max interval, prior rate; see plan.sql


class SqlitePlan:
    """``Plan`` in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        """On one database."""
        self._database = database

    def columns(
        self, *, after_id: int = 0, batch: int = 8192, aside: bool = False
    ) -> Iterator[PolicyColumns]:
        """All items; each batch a short transaction, so that the log never waits for a slow reader.

        For every row that SQLite gives, a thread waits until the busy ones let Python go: ``aside`` takes a
        batch as one row of lists, with twice the work.
        """
        with self._database.apart() as connection:
            while True:
                connection.execute("BEGIN")
                rows = _read(connection, "lists" if aside else "columns", (after_id, batch))
                columns = _from_lists(rows[0]) if aside else _from_rows(rows)
                if columns.ids.size == 0:
                    return
                first_id, after_id = int(columns.ids[0]), int(columns.ids[-1])
                limits = _read(connection, "limits", (first_id, after_id))
                connection.execute("ROLLBACK")
                yield _limited(columns, limits)

    def columns_of(self, ids: Sequence[int]) -> PolicyColumns:
        """Some items."""
        wanted = (json_list(ids),)
        with self._database.read() as connection:
            rows = _read(connection, "columns_of", wanted)
            return _limited(_from_rows(rows), _read(connection, "limits_of", wanted))

    def names(self) -> dict[int, str]:
        """All names."""
        with self._database.read() as connection:
            return dict(connection.execute(_SQL["names"]).fetchall())

    def save(self, ids: Ids, due_s: Float64s, beliefs: Sequence[bytes] | None = None) -> None:
        """Due times and beliefs of many."""
        check_due(ids, due_s)
        kept = [None] * len(ids) if beliefs is None else beliefs
        rows = zip(due_s.tolist(), kept, ids.tolist(), strict=True)
        while batch := list(islice(rows, _BATCH)):
            with self._database.write() as connection:
                connection.executemany(_SQL["save"], batch)


def _read(connection: sqlite3.Connection, name: str, parameters: Row) -> list[Row]:
    return connection.execute(_SQL[name], parameters).fetchall()


class _Columns(NamedTuple):
    """What every item has."""

    ids: Ids
    source: Ids
    group: Ids
    status: npt.NDArray[np.int8]
    weight: Float64s
    polled_s: Float64s
    due_s: Float64s
    sizes: Ids
    beliefs: bytes


def _from_rows(rows: list[Row]) -> _Columns:
    """Of ``columns``."""
    columns: list[Row] = list(zip(*rows, strict=True)) if rows else [()] * 8
    numbers = (np.array(column, dtype=dtype) for column, dtype in zip(columns, _TYPES, strict=False))
    beliefs = columns[-1]
    sizes = np.fromiter(map(len, beliefs), dtype=np.int64, count=len(beliefs))
    fields: Row = (*numbers, sizes, b"".join(beliefs))
    return _Columns(*fields)


def _from_lists(row: Row) -> _Columns:
    """Of ``lists``: NULL if there are no items."""
    *numbers, beliefs = (text or "" for text in row)
    columns = (
        np.fromstring(text.replace("NULL", "nan"), dtype=dtype, sep=",")
        for text, dtype in zip(numbers, (*_TYPES, np.int64), strict=True)
    )
    fields: Row = (*columns, bytes.fromhex(beliefs))
    return _Columns(*fields)


def _limited(columns: _Columns, limits: list[Row]) -> PolicyColumns:
    """Columns with the ``limits`` of the few items that have any."""
    limited, *given = zip(*limits, strict=True) if limits else [()] * 5
    places = np.searchsorted(columns.ids, np.array(limited, dtype=np.int64))
    costs = [np.full(columns.ids.size, usual) for usual in _USUAL]
    for cost, values in zip(costs, given, strict=True):
        cost[places] = np.array(values, dtype=np.float64)
    fields: Row = (*columns[:5], *costs, *columns[5:])
    return PolicyColumns(*fields)
