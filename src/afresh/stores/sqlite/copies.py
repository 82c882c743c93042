"""The copies as versions of items."""

from __future__ import annotations

from afresh.stores.addresses import unpacked
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.queries import load_blocks
from afresh.values.stored import Copy, Version

_SQL = load_blocks("copies.sql")


class SqliteCopies:
    """``Copies`` in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        """On one database."""
        self._database = database

    def get(self, item_id: int, number: int | None = None) -> Copy | None:
        """One copy, checked against its hash: better none than a wrong one."""
        with self._database.read() as connection:
            row = connection.execute(_SQL["get"], (item_id, number)).fetchone()
        if row is None:
            return None
        version = Version(*row[:7])
        return Copy(version, unpacked(row[7], version.size, version.hash, str(self._database.path)))

    def versions(self, item_id: int) -> list[Version]:
        """All versions kept."""
        with self._database.read() as connection:
            return [Version(*row) for row in connection.execute(_SQL["versions"], (item_id,))]
