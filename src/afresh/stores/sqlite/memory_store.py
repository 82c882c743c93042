"""The store in memory: a SQLite database without a file, which is lost when the store is closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.database_file import DatabaseFile
from afresh.stores.sqlite.store import SqliteStore
from afresh.stores.store import Retention


class MemoryFile(DatabaseFile):
    """A database in the memory of this process. All connections to it use the same name."""

    def _create(self) -> None:
        """Create no file."""

    def _uri(self, mode: str) -> str:
        del mode
        return f"file:/afresh-{id(self)}?vfs=memdb"

    def is_in_place(self) -> bool:
        return True


class MemoryDatabase(SqliteDatabase):
    file_type = MemoryFile
    oldest = (3, 36)  # in older versions every connection to memdb has tables of its own

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, **options)
        # Without a log nobody can read while another connection writes, so readers and writers share a lock.
        self._read_lock = self._write_lock


class MemoryStore(SqliteStore):
    """Implements ``Store`` in memory.

    >>> from afresh.values.items import NewItem
    >>> with MemoryStore() as store:
    ...     store.items.add([NewItem("https://example.org/", "web", "example.org")], now_s=0.0)
    1
    """

    database_type = MemoryDatabase

    def __init__(self, *, retention: Retention | None = None) -> None:
        super().__init__(Path("memory:"), retention=retention)
