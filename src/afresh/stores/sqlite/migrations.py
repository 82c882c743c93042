"""Applies the migrations of the SQLite schema: numbered scripts, each applied once.

An older store is upgraded in its file, in one transaction, so that an interrupted upgrade changes nothing.
The pragma ``user_version`` is the number of scripts applied. The pragma ``application_id`` distinguishes
stores of afresh from the files of other programs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from afresh.values.errors import StoreCorruptError, StoreVersionError

APPLICATION_ID = 0x61667265  # "afre"


def is_current(connection: sqlite3.Connection, path: Path, newest: int) -> bool:
    """Return whether the store has the schema version ``newest``, so that no script is missing.

    Raise ``StoreError`` if the file is of another program or has a newer schema."""
    version = _pragma(connection, "user_version")
    if _pragma(connection, "application_id") != APPLICATION_ID:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
            raise StoreCorruptError(f"{path} is a SQLite database of another program, not a store of afresh")
        return False
    if version > newest:
        raise StoreVersionError(
            f"{path} was written by a newer afresh (schema {version}, known up to {newest}): upgrade afresh"
        )
    return version == newest


def migrate(connection: sqlite3.Connection, path: Path, migrations: tuple[str, ...]) -> None:
    """Apply the scripts that are missing, unless another process has just done so. A script may write a table
    anew; meanwhile SQLite must not remove the rows of other tables that refer to it."""
    connection.execute("PRAGMA foreign_keys = OFF")  # has an effect only outside of transactions
    try:
        _apply(connection, path, migrations)
    finally:
        connection.execute("PRAGMA foreign_keys = ON")


def _apply(connection: sqlite3.Connection, path: Path, migrations: tuple[str, ...]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not is_current(connection, path, len(migrations)):
            for script in migrations[_pragma(connection, "user_version") :]:
                for statement in split_statements(script):
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def split_statements(script: str) -> Iterator[str]:
    """Yield the statements of a script, to be executed one by one. (Python's ``executescript`` would first
    commit the open transaction.)

    >>> [text.split()[0] for text in split_statements("CREATE TABLE a (b);\\nINSERT INTO a VALUES (';');")]
    ['CREATE', 'INSERT']
    """
    statement = ""
    for line in script.splitlines(keepends=True):
        if not statement and (not line.strip() or line.startswith("--")):
            continue
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""
