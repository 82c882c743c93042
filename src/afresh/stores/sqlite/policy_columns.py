"""What a policy remembers of items, in SQLite, read as arrays."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence

import numpy as np

from afresh.stores.rows import Row, arrays_and_beliefs
from afresh.stores.sql.groups import SqlPlan
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.values.stored import PolicyColumns

_TYPES = [np.int64] * 3 + [np.int8] + [np.float64] * 3  # NULL becomes NaN
_USUAL = (1.0, 0.0, math.inf, math.nan)  # cost, min and max interval, prior rate; see plan.sql


class SqlitePlan(SqlPlan[sqlite3.Connection]):
    _database: SqliteDatabase

    def columns(
        self, *, after_id: int = 0, batch: int = 8192, aside: bool = False
    ) -> Iterator[PolicyColumns]:
        # Each batch is a short transaction, so that the log never waits for a slow reader. For every row that
        # SQLite gives, a thread waits until the busy ones release the interpreter: ``aside`` takes a batch as
        # one row of lists, at twice the work.
        with self._database.separate_connection() as connection:
            while True:
                connection.execute("BEGIN")
                rows = self._read(connection, "lists" if aside else "columns", after=after_id, limit=batch)
                columns = _read_lists(rows[0]) if aside else arrays_and_beliefs(rows, _TYPES)
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
    """Return what ``arrays_and_beliefs`` does, from the one row of ``lists``: NULL if there are no items."""
    *numbers, beliefs = (text or "" for text in row)
    columns = (
        np.fromstring(text.replace("NULL", "nan"), dtype=dtype, sep=",")
        for text, dtype in zip(numbers, (*_TYPES, np.int64), strict=True)
    )
    return (*columns, bytes.fromhex(beliefs))


def _with_limits(columns: Row, limits: list[Row]) -> PolicyColumns:
    """Return the columns with the ``limits`` of the few items that have any."""
    limited, *given = zip(*limits, strict=True) if limits else [()] * 5
    ids = columns[0]
    rows = np.searchsorted(ids, np.array(limited, dtype=np.int64))
    costs = [np.full(ids.size, usual) for usual in _USUAL]
    for cost, values in zip(costs, given, strict=True):
        cost[rows] = np.array(values, dtype=np.float64)
    return PolicyColumns(*columns[:5], *costs, *columns[5:])
