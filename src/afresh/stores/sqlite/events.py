"""Changes to be told to hooks, each at least once."""

from __future__ import annotations

from collections.abc import Sequence

from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.queries import load_blocks
from afresh.stores.sqlite.rows import json_list
from afresh.values.stored import Event

_SQL = load_blocks("events.sql")


class SqliteEvents:
    """``Events`` in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        """On one database."""
        self._database = database

    def take(self, now_s: float, limit: int, retry_s: float) -> list[Event]:
        """The next ones; who takes them has until ``retry_s`` to say how it went."""
        with self._database.write() as connection:
            rows = connection.execute(_SQL["due"], (now_s, limit)).fetchall()
            connection.execute(_SQL["taken"], (now_s + retry_s, json_list(row[0] for row in rows)))
        return [Event(*(*before, attempts + 1)) for *before, attempts in rows]

    def done(self, ids: Sequence[int]) -> None:
        """Delivered."""
        with self._database.write() as connection:
            connection.execute(_SQL["done"], (json_list(ids),))

    def defer(self, ids: Sequence[int], until_s: float) -> None:
        """Not delivered."""
        with self._database.write() as connection:
            connection.execute(_SQL["defer"], (until_s, json_list(ids)))

    def waiting(self) -> int:
        """Not done."""
        with self._database.read() as connection:
            count: int = connection.execute(_SQL["waiting"]).fetchone()[0]
        return count
