"""Care for a PostgreSQL store: check it, give space back, back it up, and copy it to another store."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar

from afresh.stores.copying import copy_store
from afresh.stores.postgres.connection import Connection, fetch_rows
from afresh.stores.postgres.database import PostgresDatabase, key_hash
from afresh.stores.sql.groups import SqlUpkeep
from afresh.stores.sql.transfer import TABLES, Counters, Homes, SqlTables, same_columns
from afresh.stores.sqlite.store import SqliteStore
from afresh.stores.sqlite.upkeep import write_then_replace
from afresh.values.stored import StoreStats

_ITEM, _AUDIT = TABLES["item"].columns, TABLES["audit"].columns


class PostgresUpkeep(SqlUpkeep[Connection]):
    """Implements ``Upkeep``; backups are SQLite files."""

    _database: PostgresDatabase
    contradictions = ("tally", "references", "newest", "orphans", "sizes")

    def check(self, sample: int | None = None) -> list[str]:
        return self._database.snapshot(lambda connection: list(self._problems(connection, sample)))

    def vacuum(self) -> None:
        # PostgreSQL gives the empty ends of tables back to the machine.
        for (table,) in self._fetch("tables"):
            self._database.execute_outside_transaction(f"VACUUM (ANALYZE) {table}")

    def backup(self, target: Path) -> None:
        with write_then_replace(target) as file, SqliteStore(file) as copy:
            copy_store(PostgresTables(self._database), copy.tables)

    def stats(self) -> StoreStats:
        # PostgreSQL uses the free space inside its tables again and does not tell how much there is.
        (counts,) = self._fetch("stats")
        return StoreStats(*(*counts, 0))

    def _count_contents(self, connection: Connection) -> int:
        return int(self._rows(connection, "stats", {})[0][3])


class PostgresTables(SqlTables[Connection]):
    """A PostgreSQL schema that can be copied from and to."""

    homes: ClassVar[Mapping[str, Homes]] = {
        "item": {
            "item": {**same_columns(*_ITEM[:5], *_ITEM[7:12]), "key_hash": lambda row: key_hash(row[1])},
            "state": {"item_id": "id", **same_columns(*_ITEM[5:7], *_ITEM[12:])},
        },
        "content": {
            "content": same_columns("id", "hash", "size", "refs"),
            "payload": {"content_id": "id", "data": "data"},
        },
        "ledger": {"ledger": {**same_columns(*TABLES["ledger"].columns), "shard": lambda _: 0}},
        # SQLite has no booleans, only 0 and 1.
        "audit": {
            "audit": {**same_columns(*_AUDIT), "changed": lambda row: bool(row[_AUDIT.index("changed")])}
        },
    }
    database: PostgresDatabase
    parameter = "%({})s"

    def snapshot(self) -> AbstractContextManager[Connection]:
        return self.database.separate_snapshot()

    def _insert(
        self, connection: Connection, home: str, columns: list[str], rows: list[list[object]]
    ) -> None:
        with connection.cursor().copy(f"COPY {home} ({', '.join(columns)}) FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def _set_counters(self, connection: Connection, counters: Counters) -> None:
        # The sizes are counted here, which others count while they write.
        for name in ("set_marks", "set_counters", "set_pace", "set_sizes"):
            fetch_rows(connection, self.sql[name], dict(counters))

    def _clear(self, connection: Connection, homes: list[str]) -> None:
        fetch_rows(connection, f"TRUNCATE {', '.join(homes)}, size")
