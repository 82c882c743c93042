"""What polling cost, per minute and source."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from afresh.stores.minutes import minute_of
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.names import name_ids
from afresh.stores.sqlite.queries import load_blocks
from afresh.values.outcome import Spent
from afresh.values.stored import LedgerRow

_SQL = load_blocks("ledger.sql")


class SqliteLedger:
    """``Ledger`` in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        """On one database."""
        self._database = database

    def add(self, source: str, time_s: float, spent: Spent) -> None:
        """Outside any poll."""
        with self._database.write() as connection:
            add_to_ledger(connection, {(minute_of(time_s), source): spent})

    def total(self, since_s: float, until_s: float) -> Spent:
        """A sum."""
        with self._database.read() as connection:
            return Spent(*connection.execute(_SQL["total"], _minutes(since_s, until_s)).fetchone())

    def rows(self, since_s: float, until_s: float) -> list[LedgerRow]:
        """Row by row."""
        with self._database.read() as connection:
            rows = connection.execute(_SQL["rows"], _minutes(since_s, until_s)).fetchall()
        return [LedgerRow(minute * 60.0, source, Spent(*spent)) for minute, source, *spent in rows]

    def forget(self, before_s: float) -> None:
        """Drop the old."""
        with self._database.write() as connection:
            connection.execute(_SQL["forget"], (before_s / 60.0,))


def add_to_ledger(connection: sqlite3.Connection, spends: Mapping[tuple[int, str], Spent]) -> None:
    """Add what was spent by (minute, source)."""
    ids = name_ids(connection, {source for _, source in spends})
    connection.executemany(
        _SQL["add"],
        [
            (minute, ids[source], spent.requests, spent.bytes, spent.seconds, spent.money)
            for (minute, source), spent in spends.items()
        ],
    )


def _minutes(since_s: float, until_s: float) -> tuple[float, float]:
    return since_s / 60.0, until_s / 60.0
