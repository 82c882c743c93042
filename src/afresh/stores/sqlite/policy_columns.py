"""Reads from SQLite, as arrays, what a policy needs to know of each item."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence

import numpy as np

from afresh.stores.rows import Row, arrays_and_beliefs
from afresh.stores.sql.store_parts import SqlPlan
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.values.stored import PolicyColumns

_TYPES = [np.int64] * 3 + [np.int8] + [np.float64] * 3  # NULL becomes NaN
_USUAL = (1.0, 0.0, math.inf, math.nan)  # cost, least and longest polling interval, prior rate; see plan.sql


class SqlitePlan(SqlPlan[sqlite3.Connection]):
    _database: SqliteDatabase

    def columns(
        self, *, after_id: int = 0, batch: int = 8192, whole_batches: bool = False
    ) -> Iterator[PolicyColumns]:
        # Each batch is a short transaction, because the log cannot be written back to the file while a reader
        # uses it. After every row of SQLite, the thread must get the interpreter lock again, and busy threads
        # make it wait. With ``whole_batches`` a batch is one row of lists: twice the work, but only one wait.
        with self._database.separate_connection() as connection:
            while True:
                connection.execute("BEGIN")
                rows = self._read(
                    connection, "lists" if whole_batches else "columns", after=after_id, limit=batch
                )
                columns = _read_lists(rows[0]) if whole_batches else arrays_and_beliefs(rows, _TYPES)
                ids = columns[0]
                if ids.size == 0:
                    return
                first_id, after_id = int(ids[0]), int(ids[-1])
                limits = self._read(connection, "limits", first=first_id, last=after_id)
                connection.execute("ROLLBACK")
                yield _with_limits(columns, limits)

    def columns_of(self, ids: Sequence[int]) -> PolicyColumns:
        wanted = self._database.as_list(ids)

        def work(connection: sqlite3.Connection) -> PolicyColumns:
            rows = self._read(connection, "columns_of", ids=wanted)
            limits = self._read(connection, "limits_of", ids=wanted)
            return _with_limits(arrays_and_beliefs(rows, _TYPES), limits)

        return self._database.snapshot(work)

    def _read(self, connection: sqlite3.Connection, name: str, **given: object) -> list[Row]:
        return self._database.rows(connection, self._sql[name], given)


def _read_lists(row: Row) -> Row:
    """Convert the single row of the statement ``lists`` to what ``arrays_and_beliefs`` returns."""
    *numbers, beliefs = (text or "" for text in row)
    columns = (
        np.fromstring(text.replace("NULL", "nan"), dtype=dtype, sep=",")
        for text, dtype in zip(numbers, (*_TYPES, np.int64), strict=True)
    )
    return (*columns, bytes.fromhex(beliefs))


def _with_limits(columns: Row, limits: list[Row]) -> PolicyColumns:
    """Add the costs, polling intervals and prior rates to ``columns``. ``limits`` has a row for each item
    with unusual values; all other items have ``_USUAL``."""
    limited, *given = zip(*limits, strict=True) if limits else [()] * 5
    ids = columns[0]
    rows = np.searchsorted(ids, np.array(limited, dtype=np.int64))
    costs = [np.full(ids.size, usual) for usual in _USUAL]
    for cost, values in zip(costs, given, strict=True):
        cost[rows] = np.array(values, dtype=np.float64)
    return PolicyColumns(*columns[:5], *costs, *columns[5:])
