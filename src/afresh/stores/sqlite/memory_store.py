"""The store in memory: SQLite's tables without a file, gone when the store is closed or the process ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.store import SqliteStore
from afresh.stores.store import Retention


class MemoryDatabase(SqliteDatabase):
    """Tables in the memory of this process, which the connections of one database share by their name."""

    oldest = (3, 36)  # before, every connection to memdb had tables of its own

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, **options)
        # There is no log: nobody can read while another connection writes, so that readers must wait.
        self._read_lock = self._write_lock

    def _uri(self, mode: str) -> str:
        del mode
        return f"file:/afresh-{id(self)}?vfs=memdb"

    def _is_in_place(self) -> bool:
        return True


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
