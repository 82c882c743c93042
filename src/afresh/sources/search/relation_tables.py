"""Reads tables of databases as relations: FILE#TABLE of SQLite, postgresql://…#TABLE, env:NAME#TABLE."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from afresh.sources.secrets import Resolver, Secret
from afresh.sources.sql.database_url import POSTGRES, check_library, resolve_address
from afresh.sources.sql.errors import SqlError, one_line
from afresh.sources.sql.postgres_connection import PostgresConnection
from afresh.sources.sql.sessions import quoted
from afresh.values.errors import InputError, UsageError, did_you_mean

_TIMEOUT_S, _LOCK_S = 60.0, 5.0
_COLUMNS = """
SELECT attname::text FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
Rows = list[tuple[Any, ...]]


def is_postgres(place: str) -> bool:
    """Tell whether a relation is a table of PostgreSQL.

    >>> is_postgres("postgresql://localhost/shop#papers"), is_postgres("papers.db#papers")
    (True, False)
    """
    return place.startswith((*POSTGRES, "env:"))


def display_place(place: str) -> str:
    """Return the address of a relation without anything that may be secret.

    >>> display_place("postgresql://me:secret@localhost/shop#papers"), display_place("papers.csv")
    ('table papers', 'papers.csv')
    """
    return f"table {place.rpartition('#')[2]}" if is_postgres(place) else place


def table_rows(place: str, names: Sequence[str], resolver: Resolver) -> Rows:
    """Read the columns ``names`` of all rows of a table."""
    address, mark, table = place.rpartition("#")
    if not mark or not table:
        raise UsageError("relation: name the table, as in postgresql://…#papers or FILE.db#papers")
    if not is_postgres(place):
        return _sqlite_rows(place, address, table, names)
    check_library("relation")
    return _postgres_rows(resolve_address("relation", address, resolver), place, table, names)


def _sqlite_rows(place: str, path: str, table: str, names: Sequence[str]) -> Rows:
    if not Path(path).is_file():
        raise InputError("does not exist", path=path)
    try:
        with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as database:
            known = [row[1] for row in database.execute(f"PRAGMA table_info({quoted(table)})")]
            if not known:
                tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
                raise InputError(f"has no table {table!r}{did_you_mean(table, tables)}", path=path)
            check_names(place, names, known)
            return database.execute(f"SELECT {_list(names)} FROM {quoted(table)}").fetchall()
    except sqlite3.Error as error:
        raise InputError(f"cannot be read as SQLite: {one_line(str(error))}", path=path) from None


def _postgres_rows(address: Secret, place: str, table: str, names: Sequence[str]) -> Rows:
    shown = display_place(place)
    of_table = ".".join(quoted(part) for part in table.split("."))
    try:
        connection = PostgresConnection(address, timeout_s=_TIMEOUT_S, lock_s=_LOCK_S, read_only=True)
        with closing(connection):
            known = [row[0] for row in connection.query(_COLUMNS, (of_table,))]
            if not known:
                raise InputError("there is no such table", path=shown)
            check_names(shown, names, known)
            return connection.query(f"SELECT {_list(names)} FROM {of_table}".replace("%", "%%"))
    except SqlError as error:
        raise InputError(f"cannot be read: {error}", path=shown) from None


def check_names(path: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a relation that lacks one of the columns ``names``."""
    for name in names:
        if name not in known:
            raise InputError(f"has no column {name}{did_you_mean(name, known)}", path=path)


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names))
