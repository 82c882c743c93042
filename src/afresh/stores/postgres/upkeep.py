"""Maintenance of a PostgreSQL store: check it, free space, back it up, and copy it to another store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar

from afresh.stores.copying import copy_store
from afresh.stores.postgres.binary_arrays import column_arrays
from afresh.stores.postgres.commit import SizeChange, drop_contents, save_size_change
from afresh.stores.postgres.connection import Connection, fetch_rows
from afresh.stores.postgres.database import PostgresDatabase, key_hash
from afresh.stores.rows import Row
from afresh.stores.sql.transfer import LINKS, Computed, Counters, SqlTables
from afresh.stores.sql.upkeep_part import SqlUpkeep
from afresh.stores.sqlite.store import SqliteStore
from afresh.stores.sqlite.upkeep import write_then_replace
from afresh.values.stored import StoreStats


class PostgresUpkeep(SqlUpkeep[Connection]):
    """Implements ``Upkeep``. A backup is a SQLite file."""

    _database: PostgresDatabase
    contradictions = ("tally", "references", "newest", "orphans", "sizes")

    def check(self, sample: int | None = None) -> list[str]:
        return self._database.snapshot(lambda connection: list(self._problems(connection, sample)))

    def vacuum(self) -> None:
        # VACUUM returns the empty end of a table to the operating system.
        for (table,) in self._fetch("tables"):
            self._database.execute_outside_transaction(f"VACUUM (ANALYZE) {table}")

    def backup(self, target: Path) -> None:
        with write_then_replace(target) as file, SqliteStore(file) as copy:
            copy_store(PostgresTables(self._database), copy.tables)

    def stats(self) -> StoreStats:
        # PostgreSQL reuses the free space in its tables and does not report how much there is.
        (counts,) = self._fetch("stats")
        return StoreStats(*(*counts, 0))

    def used_bytes(self) -> int:
        return int(self._fetch("used")[0][0])

    def _drop_versions(self, connection: Connection, versions: Sequence[Row]) -> None:
        sizes = SizeChange()
        given = column_arrays(("ids", "numbers"), [version[:2] for version in versions])
        dropped = fetch_rows(connection, self._sql["drop_old_versions"], given)
        sizes.versions -= len(dropped)
        drop_contents(connection, [content_id for (content_id,) in dropped], sizes)
        save_size_change(connection, sizes)

    def _named(self, connection: Connection, digests: Sequence[bytes]) -> set[bytes]:
        texts = [digest.hex() for digest in digests]
        found = self._rows(connection, "named", {"hashes": self._database.as_list(texts)})
        return {bytes(row[0]) for row in found}

    def _count_contents(self, connection: Connection) -> int:
        return int(self._rows(connection, "stats", {})[0][3])


class PostgresTables(SqlTables[Connection]):
    """The tables of a PostgreSQL store, which can be copied to another store or filled from one."""

    computed: ClassVar[Computed] = {
        **LINKS,
        "item": {**LINKS["item"], "key_hash": ("key", key_hash)},
        "ledger": {"shard": ("minute", lambda _: 0)},
    }
    database: PostgresDatabase
    parameter = "%({})s"

    def snapshot(self) -> AbstractContextManager[Connection]:
        return self.database.separate_snapshot()

    def _columns(self, connection: Connection, relation: str) -> list[str]:
        found = connection.execute(f"SELECT * FROM {relation} LIMIT 0".encode()).description or ()
        return [column.name for column in found]

    def _insert(
        self, connection: Connection, storage_table: str, columns: Sequence[str], rows: Iterable[Row]
    ) -> None:
        with connection.cursor().copy(
            f"COPY {storage_table} ({', '.join(columns)}) FROM STDIN".encode()
        ) as copy:
            for row in rows:
                copy.write_row(row)

    def _set_counters(self, connection: Connection, counters: Counters) -> None:
        # A commit updates the saved sizes, but copying does not, so the sizes are counted here.
        for name in ("set_marks", "set_counters", "set_pace", "set_sizes"):
            fetch_rows(connection, self.sql[name], dict(counters))

    def _clear(self, connection: Connection, storage_tables: list[str]) -> None:
        fetch_rows(connection, f"TRUNCATE {', '.join(storage_tables)}, size, content_text")
