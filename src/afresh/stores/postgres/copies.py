"""The copies as versions of items."""

from __future__ import annotations

from afresh.stores.addresses import unpacked
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.lines import rows
from afresh.stores.postgres.queries import load_blocks
from afresh.values.stored import Copy, Version

_SQL = load_blocks("copies.sql")


class PostgresCopies:
    """``Copies`` in PostgreSQL."""

    def __init__(self, database: PostgresDatabase) -> None:
        """On one database."""
        self._database = database

    def get(self, item_id: int, number: int | None = None) -> Copy | None:
        """One copy, checked against its hash: better none than a wrong one."""
        given = {"item_id": item_id, "number": number}
        found = self._database.read(lambda connection: rows(connection, _SQL["get"], given))
        if not found:
            return None
        version = Version(*found[0][:7])
        return Copy(version, unpacked(found[0][7], version.size, version.hash, self._database.name))

    def versions(self, item_id: int) -> list[Version]:
        """All versions kept."""
        given = {"item_id": item_id}
        return [Version(*row) for row in self._database.read(lambda c: rows(c, _SQL["versions"], given))]
