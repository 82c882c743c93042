"""The store in one SQLite file, composed of its parts."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Unpack

from afresh.stores.sql.commit_changes import CompressedCopy
from afresh.stores.sql.moves import SqlMoves
from afresh.stores.sql.store_parts import SqlFleet, SqlStore
from afresh.stores.sqlite.commit import commit, save_content
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.feed import SqliteFeed
from afresh.stores.sqlite.policy_columns import SqlitePlan
from afresh.stores.sqlite.stored_items import SqliteItems, SqliteLeases
from afresh.stores.sqlite.upkeep import SqliteTables, SqliteUpkeep
from afresh.stores.store import OpenOptions, Retention
from afresh.values.outcome import Outcome, Refusal


class SqliteMoves(SqlMoves[sqlite3.Connection]):
    def _save_contents(
        self, connection: sqlite3.Connection, contents: Sequence[CompressedCopy]
    ) -> Mapping[bytes, int]:
        return {copy.hash: save_content(connection, copy) for copy in contents}


class SqliteStore(SqlStore[sqlite3.Connection]):
    """Implements ``Store`` in SQLite.

    >>> import tempfile
    >>> from afresh.values.items import NewItem
    >>> with tempfile.TemporaryDirectory() as folder, SqliteStore(Path(folder) / "store.db") as store:
    ...     new = store.items.add([NewItem("https://example.org/", "web", "example.org")], now_s=0.0)
    ...     [lease.key for lease in store.leases.take([1], now_s=1.0, duration_s=60.0)]
    ['https://example.org/']
    """

    database_type: ClassVar[type[SqliteDatabase]] = SqliteDatabase

    def __init__(
        self, path: Path, *, retention: Retention | None = None, **options: Unpack[OpenOptions]
    ) -> None:
        """Open, create or upgrade the file."""
        database = self.database_type(path, **options)
        super().__init__(database, retention or Retention())
        self.items = SqliteItems(database)
        self.leases = SqliteLeases(database)
        self.plan = SqlitePlan(database)
        self.fleet = SqlFleet(database)
        self.feed = SqliteFeed(database)
        self.tables = SqliteTables(database)
        self.upkeep = SqliteUpkeep(database)
        self.moves = SqliteMoves(database, self.items, self.copies)

    def commit(
        self, outcomes: Sequence[Outcome], state: Mapping[str, bytes | None] | None = None
    ) -> list[Refusal]:
        return commit(self, outcomes, state or {})
