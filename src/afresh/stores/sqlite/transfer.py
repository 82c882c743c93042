"""A SQLite file in the form in which stores are copied."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar

from afresh.stores.sql.transfer import RESERVATIONS, TABLES, Counters, Homes, SqlTables, same_columns
from afresh.stores.sqlite.database import SqliteDatabase

_SEQUENCES = ("item", "edit", "event", "audit")
_COUNTERS = ("lease", "notice")


class SqliteTables(SqlTables[sqlite3.Connection]):
    """A SQLite file that can be copied from and to."""

    homes: ClassVar[Mapping[str, Homes]] = {
        "item": {
            "item": same_columns("id", "key", "labels", "added_s", "selector"),
            "state": {"item_id": "id"} | same_columns(*TABLES["item"].columns[5:]),
        },
        "content": {
            "content": same_columns("id", "hash", "size", "refs"),
            "payload": {"content_id": "id", "data": "data"},
        },
    }
    parameter = ":{}"

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database)
        self._file = database

    @property
    def name(self) -> str:
        """The absolute path of the file."""
        return str(self._file.path.absolute())

    @contextmanager
    def _separate_snapshot(self) -> Iterator[sqlite3.Connection]:
        with self._file.separate_connection() as connection:
            connection.execute("BEGIN")
            yield connection

    def _insert(
        self, connection: sqlite3.Connection, home: str, columns: list[str], rows: list[list[object]]
    ) -> None:
        marks = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {home} ({', '.join(columns)}) VALUES ({marks})", rows)

    def _set_counters(self, connection: sqlite3.Connection, counters: Counters) -> None:
        for name in _SEQUENCES:
            connection.execute(self.sql["drop_sequence"], (name,))
            connection.execute(self.sql["set_sequence"], (name, counters[name]))
        for name in _COUNTERS:
            connection.execute(self.sql["set_counter"], (counters[name], name))
        connection.execute(self.sql["set_pace"], [counters[name] for name in RESERVATIONS])

    def _clear(self, connection: sqlite3.Connection, homes: list[str]) -> None:
        for home in homes:
            connection.execute(f"DELETE FROM {home}")
