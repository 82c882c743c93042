"""The schema's history: numbered scripts, applied once each, all or none.

An older store is upgraded where it stands, in one transaction: killed half-way it is the old one still.
``user_version`` counts the scripts applied, ``application_id`` tells our files from other programs'.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from afresh.stores.blocks import load_scripts
from afresh.stores.sqlite.queries import statements
from afresh.values.errors import StoreCorruptError, StoreVersionError

APPLICATION_ID = 0x61667265  # "afre"


def load_migrations() -> tuple[str, ...]:
    """The scripts of this package in order."""
    return load_scripts(__package__)


def is_current(connection: sqlite3.Connection, path: Path, newest: int) -> bool:
    """Whether the store needs no migration; refuses what is no store of ours, or a newer one."""
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
    """Bring the store up to date; whoever comes second finds it done."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not is_current(connection, path, len(migrations)):
            for script in migrations[_pragma(connection, "user_version") :]:
                for statement in statements(script):
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
