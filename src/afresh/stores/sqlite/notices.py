"""Hints that items changed, one line per item."""

from __future__ import annotations

from collections.abc import Sequence

from afresh.stores.sqlite.database import Database
from afresh.stores.sqlite.leases import next_number
from afresh.stores.sqlite.queries import load_blocks
from afresh.values.stored import Notice

_SQL = load_blocks("notices.sql")


class SqliteNotices:
    """``Notices`` in SQLite."""

    def __init__(self, database: Database) -> None:
        """On one database."""
        self._database = database

    def add(self, ids: Sequence[int], time_s: float) -> None:
        """Hints about items."""
        with self._database.write() as connection:
            for item_id in ids:
                connection.execute(_SQL["add"], (next_number(connection, "notice"), time_s, item_id))

    def open(self, after: int = 0) -> list[Notice]:
        """Those not answered."""
        with self._database.read() as connection:
            return [Notice(*row) for row in connection.execute(_SQL["open"], (after,))]
