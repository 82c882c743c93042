"""Small named values in a SQL database."""

from __future__ import annotations

from collections.abc import Mapping

from afresh.stores.sql.database import ConnectionT, SqlDatabase, SqlGroup
from afresh.stores.store import State


class SqlState(SqlGroup[ConnectionT], State):
    """Implements ``State``."""

    file = "state"

    def get(self, name: str) -> bytes | None:
        found = self._database.fetch(self._sql["get"], {"name": name})
        return found[0][0] if found else None

    def set(self, values: Mapping[str, bytes | None]) -> None:
        self._database.write(lambda connection: set_values(self._database, connection, values))

    def names(self) -> list[str]:
        return [name for (name,) in self._database.fetch(self._sql["names"])]


def set_values(
    database: SqlDatabase[ConnectionT], connection: ConnectionT, values: Mapping[str, bytes | None]
) -> None:
    """Keep or drop each of these values, in one order for all writers."""
    sql = database.statements("state")
    kept = sorted((name, data) for name, data in values.items() if data is not None)
    dropped = sorted((name,) for name, data in values.items() if data is None)
    database.run_many(connection, sql["set"], ("names", "data"), kept)
    database.run_many(connection, sql["drop"], ("names",), dropped)
