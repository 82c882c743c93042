"""Writes ``stores/sqlite/schema.sql``, the schema that all migrations together make (``make schema``)."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import afresh.stores.sqlite
from afresh.stores.sqlite.store import SqliteStore

PACKAGE = Path(afresh.stores.sqlite.__file__).parent


def schema_of(path: Path) -> str:
    """The schema as SQLite remembers it."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
        return "\n\n".join(f"{sql};" for (sql,) in rows if "sqlite_sequence" not in sql) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        SqliteStore(Path(folder) / "store.db").close()
        (PACKAGE / "schema.sql").write_text(schema_of(Path(folder) / "store.db"))
