"""What a policy remembers of items, in SQLite, read as arrays."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from afresh.stores.rows import Row
from afresh.stores.sql.groups import SqlPlan
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.values.arrays import Float64s
from afresh.values.stored import Ids, PolicyColumns

_TYPES = [np.int64] * 3 + [np.int8] + [np.float64] * 3  # NULL becomes NaN
_USUAL = (1.0, 0.0, math.inf, math.nan)  # cost, min and max interval, prior rate; see plan.sql


class SqlitePlan(SqlPlan[sqlite3.Connection]):
    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database)
        self._separate_connection = database.separate_connection

    def columns(
        self, *, after_id: int = 0, batch: int = 8192, aside: bool = False
    ) -> Iterator[PolicyColumns]:
        # Each batch is a short transaction, so that the log never waits for a slow reader. For every row that
        # SQLite gives, a thread waits until the busy ones release the interpreter: ``aside`` takes a batch as
        # one row of lists, at twice the work.
        with self._separate_connection() as connection:
            while True:
                connection.execute("BEGIN")
                rows = self._read(connection, "lists" if aside else "columns", after=after_id, limit=batch)
                columns = _from_lists(rows[0]) if aside else _from_rows(rows)
                if columns.ids.size == 0:
                    return
                first_id, after_id = int(columns.ids[0]), int(columns.ids[-1])
                limits = self._read(connection, "limits", first=first_id, last=after_id)
                connection.execute("ROLLBACK")
                yield _with_limits(columns, limits)

    def columns_of(self, ids: Sequence[int]) -> PolicyColumns:
        wanted = self._database.as_list(ids)

        def work(connection: sqlite3.Connection) -> PolicyColumns:
            rows = self._read(connection, "columns_of", ids=wanted)
            return _with_limits(_from_rows(rows), self._read(connection, "limits_of", ids=wanted))

        return self._database.snapshot(work)

    def _read(self, connection: sqlite3.Connection, name: str, **given: object) -> list[Row]:
        return self._database.rows(connection, self._sql[name], given)


class _Columns(NamedTuple):
    """The columns of every item, without the limits that few items have."""

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
    columns: list[Row] = list(zip(*rows, strict=True)) if rows else [()] * 8
    numbers = (np.array(column, dtype=dtype) for column, dtype in zip(columns, _TYPES, strict=False))
    beliefs = columns[-1]
    sizes = np.fromiter(map(len, beliefs), dtype=np.int64, count=len(beliefs))
    fields: Row = (*numbers, sizes, b"".join(beliefs))
    return _Columns(*fields)


def _from_lists(row: Row) -> _Columns:
    """Return the columns from the one row of ``lists``, which is NULL if there are no items."""
    *numbers, beliefs = (text or "" for text in row)
    columns = (
        np.fromstring(text.replace("NULL", "nan"), dtype=dtype, sep=",")
        for text, dtype in zip(numbers, (*_TYPES, np.int64), strict=True)
    )
    fields: Row = (*columns, bytes.fromhex(beliefs))
    return _Columns(*fields)


def _with_limits(columns: _Columns, limits: list[Row]) -> PolicyColumns:
    """Return the columns with the ``limits`` of the few items that have any."""
    limited, *given = zip(*limits, strict=True) if limits else [()] * 5
    places = np.searchsorted(columns.ids, np.array(limited, dtype=np.int64))
    costs = [np.full(columns.ids.size, usual) for usual in _USUAL]
    for cost, values in zip(costs, given, strict=True):
        cost[places] = np.array(values, dtype=np.float64)
    fields: Row = (*columns[:5], *costs, *columns[5:])
    return PolicyColumns(*fields)
