"""Changes to be told to hooks, each at least once; workers take different ones."""

from __future__ import annotations

from collections.abc import Sequence

from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.lines import rows
from afresh.stores.postgres.queries import load_blocks
from afresh.values.stored import Event

_SQL = load_blocks("events.sql")


class PostgresEvents:
    """``Events`` in PostgreSQL."""

    def __init__(self, database: PostgresDatabase) -> None:
        """On one database."""
        self._database = database

    def take(self, now_s: float, limit: int, retry_s: float) -> list[Event]:
        """The next ones; who takes them has until ``retry_s`` to say how it went."""
        given = {"now_s": now_s, "until_s": now_s + retry_s, "limit": limit}
        return [Event(*row) for row in self._database.write(lambda c: rows(c, _SQL["take"], given))]

    def done(self, ids: Sequence[int]) -> None:
        """Delivered."""
        self._database.write(lambda connection: rows(connection, _SQL["done"], {"ids": list(ids)}))

    def defer(self, ids: Sequence[int], until_s: float) -> None:
        """Not delivered."""
        given = {"ids": list(ids), "until_s": until_s}
        self._database.write(lambda connection: rows(connection, _SQL["defer"], given))

    def waiting(self) -> int:
        """Not done."""
        ((count,),) = self._database.read(lambda connection: rows(connection, _SQL["waiting"]))
        return int(count)
