"""The change feed in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from afresh.stores.rows import Row
from afresh.stores.sql.feed_part import SqlFeed


class SqliteFeed(SqlFeed[sqlite3.Connection]):
    def append(self, connection: sqlite3.Connection, table: Sequence[Row]) -> None:
        if table:
            last = self._database.take_numbers(connection, "change", len(table))
            numbered = [(number, *row) for number, row in enumerate(table, last - len(table) + 1)]
            connection.executemany(self._sql["append"], numbered)
