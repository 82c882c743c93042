"""Care for a SQLite store: check it, give space back, copy it while it works."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from afresh.stores.replaced_file import write_then_replace
from afresh.stores.sql.upkeep import SqlUpkeep
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.errors import translate_errors
from afresh.values.errors import InputError, StoreCorruptError
from afresh.values.stored import StoreStats

_PAGES_PER_STEP = 4096


class SqliteUpkeep(SqlUpkeep[sqlite3.Connection]):
    """Implements ``Upkeep``."""

    contradictions = ("tally", "references", "newest", "payloads")

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database)
        self._file = database

    def check(self, sample: int | None = None) -> list[str]:
        try:
            with self._file.separate_connection() as connection:
                connection.execute("BEGIN")
                # Contents of a file that SQLite itself finds broken are not worth reading.
                return list(_damage(connection)) or list(self._problems(connection, sample))
        except StoreCorruptError as error:
            return [str(error)]

    def vacuum(self) -> None:
        with self._file.outside_transaction() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def backup(self, target: Path) -> None:
        if target.exists() and target.samefile(self._file.path):
            raise InputError(f"{target} is the store itself: give the backup another name")
        with write_then_replace(target) as file:
            self._copy_to(file)

    def stats(self) -> StoreStats:
        def work(connection: sqlite3.Connection) -> tuple[int, ...]:
            counts = connection.execute(self._sql["stats"]).fetchone()
            pragmas = ("freelist_count", "page_size")
            free, page = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas)
            path = self._file.path
            parts = (path, path.with_name(path.name + "-wal"))
            return (*counts, sum(part.stat().st_size for part in parts if part.exists()), free * page)

        return StoreStats(*self._database.snapshot(work))

    def _count_contents(self, connection: sqlite3.Connection) -> int:
        count: int = connection.execute(self._sql["count_contents"]).fetchone()[0]
        return count

    def _copy_to(self, target: Path) -> None:
        with self._file.separate_connection() as source, translate_errors(target):
            copy = sqlite3.connect(target)
            try:
                # In steps: between them Python code runs, and with it whoever asks for an end.
                source.backup(copy, pages=_PAGES_PER_STEP, progress=lambda *_: None)
            finally:
                copy.close()


def _damage(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield what SQLite itself finds wrong with the file."""
    for (line,) in connection.execute("PRAGMA integrity_check(20)"):
        if line != "ok":
            yield f"damaged: {line}"
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"{table} row {row} refers to a {parent} that is not there"
