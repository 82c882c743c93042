"""Hints that items changed, one line per item."""

from __future__ import annotations

from collections.abc import Sequence

from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.leases import take_numbers
from afresh.stores.sqlite.queries import load_blocks
from afresh.stores.sqlite.rows import json_list
from afresh.values.stored import Notice

_SQL = load_blocks("notices.sql")


class SqliteNotices:
    """``Notices`` in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        """On one database."""
        self._database = database

    def add(self, ids: Sequence[int], time_s: float) -> None:
        """Hints about items."""
        with self._database.write() as connection:
            known = connection.execute(_SQL["known"], (json_list(ids),)).fetchall()
            last = take_numbers(connection, "notice", len(known))
            first = last - len(known) + 1
            rows = [(number, item_id, time_s) for number, (item_id,) in enumerate(known, first)]
            connection.executemany(_SQL["add"], rows)

    def open(self, after: int = 0) -> list[Notice]:
        """Those not answered."""
        with self._database.read() as connection:
            return [Notice(*row) for row in connection.execute(_SQL["open"], (after,))]
