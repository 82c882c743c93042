"""This database in the form that all are copied by."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from afresh.stores.rows import Row
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.queries import load_blocks
from afresh.stores.sqlite.state import set_values
from afresh.stores.tables import NUMBERED, PACE, TABLES, Marks, page_statement

_SQL = load_blocks("tables.sql")
_SEQUENCES = ("item", "edit", "event", "audit")
_COUNTERS = ("lease", "notice")
# Each table of the common form, as the tables that hold its columns here.
_HOMES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "item": {
        "item": ("id", "key", "labels", "added_s", "selector"),
        "state": ("id", *TABLES["item"].columns[5:]),
    },
    "content": {"content": ("id", "hash", "size", "refs"), "payload": ("id", "data")},
}
_NAMES = {("state", "id"): "item_id", ("payload", "id"): "content_id"}


class SqliteSnapshot:
    """``Snapshot`` of a SQLite file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Inside a transaction."""
        self._connection = connection

    def rows(self, table: str, after: Row | None) -> list[Row]:
        """The next batch."""
        form = TABLES[table]
        place = ", ".join("?" * form.keys)
        statement = page_statement(_SQL.get(table, table), form, place, first=after is None)
        return self._connection.execute(statement, after or ()).fetchall()

    def count(self, table: str) -> int:
        """All rows."""
        found: int = self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return found

    def marks(self) -> Marks:
        """Last numbers, pace, polls."""
        marks: dict[str, float] = dict.fromkeys(NUMBERED, 0)
        marks |= dict(self._connection.execute(_SQL["sequences"]))
        marks |= dict(self._connection.execute(_SQL["counters"]))
        marks["content"] = self._connection.execute(_SQL["last_content"]).fetchone()[0]
        marks["name"] = self._connection.execute(_SQL["last_name"]).fetchone()[0]
        marks |= zip(PACE, self._connection.execute(_SQL["pace"]).fetchone(), strict=True)
        marks["polls"], marks["polled_s"] = self._connection.execute(_SQL["polls"]).fetchone()
        return marks


class SqliteTables:
    """``Tables`` of a SQLite file."""

    def __init__(self, database: SqliteDatabase) -> None:
        """On one database."""
        self._database = database

    @property
    def name(self) -> str:
        """Its path."""
        return str(self._database.path.absolute())

    @contextmanager
    def snapshot(self) -> Iterator[SqliteSnapshot]:
        """On a connection of its own: it may take long."""
        with self._database.apart() as connection:
            connection.execute("BEGIN")
            yield SqliteSnapshot(connection)

    def load(self, table: str, rows: Sequence[Row], values: Mapping[str, bytes | None]) -> None:
        """Add rows."""
        columns = TABLES[table].columns
        with self._database.write() as connection:
            for home, wanted in _HOMES.get(table, {table: columns}).items():
                places = [columns.index(name) for name in wanted]
                names = ", ".join(_NAMES.get((home, name), name) for name in wanted)
                marks = ", ".join("?" * len(wanted))
                part = ([row[place] for place in places] for row in rows)
                connection.executemany(f"INSERT INTO {home} ({names}) VALUES ({marks})", part)
            set_values(connection, values)

    def finish(self, marks: Marks, values: Mapping[str, bytes | None]) -> None:
        """Set the counters."""
        with self._database.write() as connection:
            for name in _SEQUENCES:
                connection.execute(_SQL["drop_sequence"], (name,))
                connection.execute(_SQL["set_sequence"], (name, marks[name]))
            for name in _COUNTERS:
                connection.execute(_SQL["set_counter"], (marks[name], name))
            connection.execute(_SQL["set_pace"], [marks[name] for name in PACE])
            set_values(connection, values)

    def clear(self) -> None:
        """Empty every table."""
        with self._database.write() as connection:
            for table in reversed(list(TABLES)):
                for home in reversed(list(_HOMES.get(table, {table: ()}))):
                    connection.execute(f"DELETE FROM {home}")
