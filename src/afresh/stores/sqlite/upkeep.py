"""Maintenance of a SQLite store: check it, free space, back it up, and copy it to another store."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from afresh.stores.rows import Row
from afresh.stores.sql.transfer import RESERVATIONS, Counters, SqlTables
from afresh.stores.sql.upkeep_part import SqlUpkeep
from afresh.stores.sqlite.commit import drop_contents
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.errors import translate_errors
from afresh.tables.atomic_output import replaced_file
from afresh.values.errors import InputError, OutputError, StoreCorruptError
from afresh.values.stored import StoreStats

_PAGES_PER_STEP = 4096
_SEQUENCES = ("item", "edit", "event", "audit")
_COUNTERS = ("lease", "notice", "change", "told", "epoch")
_SQLITE_ENDINGS = ("-wal", "-shm", "-journal")  # of the files that SQLite creates beside a database


class SqliteUpkeep(SqlUpkeep[sqlite3.Connection]):
    _database: SqliteDatabase
    contradictions = ("tally", "references", "newest", "payloads")

    def check(self, sample: int | None = None) -> list[str]:
        try:
            with self._database.separate_connection() as connection:
                connection.execute("BEGIN")
                # If SQLite itself finds damage, the contents are not read.
                return list(_damage(connection)) or list(self._problems(connection, sample))
        except StoreCorruptError as error:
            return [str(error)]

    def vacuum(self) -> None:
        with self._database.outside_transaction() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def backup(self, target: Path) -> None:
        own = self._database.path
        if target.exists() and own.exists() and target.samefile(own):
            raise InputError(f"{target} is the store itself: give the backup another name")
        with (
            write_then_replace(target) as file,
            self._database.separate_connection() as source,
            translate_errors(file),
            closing(sqlite3.connect(file)) as copy,
        ):
            # Python code runs only between steps, so many small steps let a signal stop the backup.
            source.backup(copy, pages=_PAGES_PER_STEP, progress=lambda *_: None)

    def stats(self) -> StoreStats:
        def work(connection: sqlite3.Connection) -> tuple[int, ...]:
            counts = connection.execute(self._sql["stats"]).fetchone()
            pragmas = ("freelist_count", "page_size")
            free, page = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas)
            path = self._database.path
            parts = (path, path.with_name(path.name + "-wal"))
            return (*counts, sum(part.stat().st_size for part in parts if part.exists()), free * page)

        return StoreStats(*self._database.snapshot(work))

    def used_bytes(self) -> int:
        def work(connection: sqlite3.Connection) -> int:
            pragmas = ("page_count", "freelist_count", "page_size")
            pages, free, page = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas)
            return int((pages - free) * page)

        return self._database.snapshot(work)

    def _drop_versions(self, connection: sqlite3.Connection, versions: Sequence[Row]) -> None:
        connection.executemany(self._sql["drop_version"], [version[:2] for version in versions])
        drop_contents(connection, [content_id for _, _, content_id in versions])

    def _named(self, connection: sqlite3.Connection, digests: Sequence[bytes]) -> set[bytes]:
        return {digest for digest in digests if self._rows(connection, "named", {"hash": digest})}

    def _count_contents(self, connection: sqlite3.Connection) -> int:
        return int(self._rows(connection, "count_contents", {})[0][0])


def _damage(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield one line per problem that SQLite itself finds in the file."""
    for (line,) in connection.execute("PRAGMA integrity_check(20)"):
        if line != "ok":
            yield f"damaged: {line}"
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"{table} row {row} refers to a {parent} that is not there"


class SqliteTables(SqlTables[sqlite3.Connection]):
    """The tables of a SQLite store, which can be copied to another store or filled from one."""

    database: SqliteDatabase
    parameter = ":{}"

    @property
    def name(self) -> str:
        return str(self.database.path.absolute())

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        with self.database.separate_connection() as connection:
            connection.execute("BEGIN")
            yield connection

    def _columns(self, connection: sqlite3.Connection, relation: str) -> list[str]:
        return [column[0] for column in connection.execute(f"SELECT * FROM {relation} LIMIT 0").description]

    def _insert(
        self, connection: sqlite3.Connection, storage_table: str, columns: Sequence[str], rows: Iterable[Row]
    ) -> None:
        self.database.insert(connection, storage_table, columns, rows)

    def _set_counters(self, connection: sqlite3.Connection, counters: Counters) -> None:
        for name in _SEQUENCES:
            connection.execute(self.sql["drop_sequence"], (name,))
            connection.execute(self.sql["set_sequence"], (name, counters[name]))
        for name in _COUNTERS:
            connection.execute(self.sql["set_counter"], (counters[name], name))
        connection.execute(self.sql["set_pace"], [counters[name] for name in RESERVATIONS])

    def _clear(self, connection: sqlite3.Connection, storage_tables: list[str]) -> None:
        for storage_table in storage_tables:
            connection.execute(f"DELETE FROM {storage_table}")


@contextmanager
def write_then_replace(target: Path) -> Iterator[Path]:
    """Yield the path of a new SQLite file, which replaces ``target`` if the ``with`` block does not raise."""
    try:
        with replaced_file(target, *_SQLITE_ENDINGS) as part:
            # The file may contain copies of private pages, so only the user may read it.
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            yield part
    except OSError as error:
        raise OutputError(f"{target} cannot be written: {error.strerror}") from error
