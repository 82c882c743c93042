"""Small named values."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.queries import load_blocks

_SQL = load_blocks("state.sql")


class SqliteState:
    """``State`` in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        """On one database."""
        self._database = database

    def get(self, name: str) -> bytes | None:
        """One value."""
        with self._database.read() as connection:
            row = connection.execute(_SQL["get"], (name,)).fetchone()
        return None if row is None else row[0]

    def set(self, values: Mapping[str, bytes | None]) -> None:
        """Several, together."""
        with self._database.write() as connection:
            set_values(connection, values)

    def names(self) -> list[str]:
        """All names."""
        with self._database.read() as connection:
            return [row[0] for row in connection.execute(_SQL["names"])]


def set_values(connection: sqlite3.Connection, values: Mapping[str, bytes | None]) -> None:
    """Keep or drop each."""
    kept = [(name, data) for name, data in values.items() if data is not None]
    connection.executemany(_SQL["set"], kept)
    connection.executemany(_SQL["drop"], [(name,) for name, data in values.items() if data is None])
