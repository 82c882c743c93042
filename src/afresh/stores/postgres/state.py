"""Small named values."""

from __future__ import annotations

from collections.abc import Mapping

from afresh.stores.postgres.arrays import arrays
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.queries import load_blocks

_SQL = load_blocks("state.sql")


class PostgresState:
    """``State`` in PostgreSQL."""

    def __init__(self, database: PostgresDatabase) -> None:
        """On one database."""
        self._database = database

    def get(self, name: str) -> bytes | None:
        """One value."""
        found = self._database.read(lambda connection: rows(connection, _SQL["get"], {"name": name}))
        return found[0][0] if found else None

    def set(self, values: Mapping[str, bytes | None]) -> None:
        """Several, together."""
        self._database.write(lambda connection: set_values(connection, values))

    def names(self) -> list[str]:
        """All names."""
        return [name for (name,) in self._database.read(lambda connection: rows(connection, _SQL["names"]))]


def set_values(connection: Connection, values: Mapping[str, bytes | None]) -> None:
    """Keep or drop each, in one order for all."""
    kept = sorted((name, data) for name, data in values.items() if data is not None)
    dropped = sorted(name for name, data in values.items() if data is None)
    if kept:
        rows(connection, _SQL["set"], arrays(("names", "data"), kept))
    if dropped:
        rows(connection, _SQL["drop"], {"names": dropped})
