"""A table of rows in SQLite or PostgreSQL that a benchmark makes and changes behind the source's back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import psycopg
from tests.servers.postgres import running_postgres

_MAKE = "CREATE TABLE record (id INTEGER PRIMARY KEY, name TEXT, price DOUBLE PRECISION, version INTEGER)"


class Rows(Protocol):
    """The table ``record``, with keys from 0 on."""

    url: str

    def make(self, count: int) -> None: ...
    def change(self, keys: Sequence[int], version: int) -> None: ...


class SqliteRows:
    """The table in a SQLite file."""

    def __init__(self, path: Path) -> None:
        self._path, self.url = path, f"sqlite:{path}"

    def make(self, count: int) -> None:
        """Make and fill the table."""
        with closing(sqlite3.connect(self._path)) as connection:
            connection.execute(_MAKE)
            connection.executemany("INSERT INTO record VALUES (?, ?, ?, ?)", _rows(count))
            connection.commit()

    def change(self, keys: Sequence[int], version: int) -> None:
        """Write another version of these rows."""
        with closing(sqlite3.connect(self._path)) as connection:
            changed = ((version, key) for key in keys)
            connection.executemany("UPDATE record SET version = ? WHERE id = ?", changed)
            connection.commit()


class PostgresRows:
    """The table on a PostgreSQL server."""

    def __init__(self, url: str) -> None:
        self.url = url

    def make(self, count: int) -> None:
        """Make and fill the table."""
        with psycopg.connect(self.url) as connection:
            connection.execute(_MAKE)
            with connection.cursor().copy("COPY record FROM STDIN") as copy:
                for row in _rows(count):
                    copy.write_row(row)

    def change(self, keys: Sequence[int], version: int) -> None:
        """Write another version of these rows."""
        with psycopg.connect(self.url) as connection:
            connection.execute("UPDATE record SET version = %s WHERE id = ANY (%s)", (version, list(keys)))


@contextmanager
def databases() -> Iterator[dict[str, Rows]]:
    """Yield one table of each kind."""
    with TemporaryDirectory() as folder, running_postgres() as server:
        yield {"SQLite": SqliteRows(Path(folder) / "rows.db"), "PostgreSQL": PostgresRows(server.url())}


def _rows(count: int) -> Iterator[tuple[int, str, float, int]]:
    return ((at, f"record number {at}", at / 7, 0) for at in range(count))
