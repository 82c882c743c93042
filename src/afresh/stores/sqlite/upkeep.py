"""Care for the store: check it, give space back, copy it while it works."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from afresh.stores.addresses import unpacked
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.errors import translate_errors
from afresh.stores.sqlite.queries import load_blocks
from afresh.values.errors import InputError, OutputError, StoreCorruptError
from afresh.values.stored import StoreStats

_SQL = load_blocks("upkeep.sql")
_REFERENCES = ("tally", "references", "newest", "payloads")


class SqliteUpkeep:
    """``Upkeep`` in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        """On one database."""
        self._database = database

    def check(self, sample: int | None = None) -> list[str]:
        """The file, what refers to what, the counts, the contents."""
        try:
            with self._database.apart() as connection:
                connection.execute("BEGIN")
                problems = list(_structure(connection))
                # Contents of a file that SQLite itself finds broken are not worth reading.
                return problems or [*_references(connection), *self._contents(connection, sample)]
        except StoreCorruptError as error:
            return [str(error)]

    def vacuum(self) -> None:
        """Rewrite the file without the holes."""
        with self._database.alone() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def backup(self, target: Path) -> None:
        """One snapshot, written beside the target, synced, then renamed."""
        if target.exists() and target.samefile(self._database.path):
            raise InputError(f"{target} is the store itself: give the backup another name")
        try:
            handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            try:
                self._copy_to(Path(name))
                os.fsync(handle)
                Path(name).replace(target)
            except BaseException:
                Path(name).unlink()
                raise
            finally:
                os.close(handle)
        except OSError as error:
            raise OutputError(f"{target} cannot be written: {error.strerror}") from error

    def stats(self) -> StoreStats:
        """Sizes."""
        with self._database.read() as connection:
            counts = connection.execute(_SQL["stats"]).fetchone()
            free, page = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _FREE)
        path = self._database.path
        parts = (path, path.with_name(path.name + "-wal"))
        size = sum(part.stat().st_size for part in parts if part.exists())
        return StoreStats(*(*counts, size, free * page))

    def _copy_to(self, target: Path) -> None:
        with self._database.apart() as source, translate_errors(target):
            copy = sqlite3.connect(target)
            try:
                source.backup(copy)
            finally:
                copy.close()

    def _contents(self, connection: sqlite3.Connection, sample: int | None) -> Iterator[str]:
        contents = connection.execute(_SQL["count_contents"]).fetchone()[0]
        every = 1 if sample is None else max(1, -(-contents // max(1, sample)))
        for size, address, data in connection.execute(_SQL["sample"], (every,)):
            try:
                unpacked(data, size, address, str(self._database.path))
            except StoreCorruptError as error:
                yield str(error)


_FREE = ("freelist_count", "page_size")


def _structure(connection: sqlite3.Connection) -> Iterator[str]:
    for (line,) in connection.execute("PRAGMA integrity_check(20)"):
        if line != "ok":
            yield f"damaged: {line}"
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"{table} row {row} refers to a {parent} that is not there"


def _references(connection: sqlite3.Connection) -> Iterator[str]:
    for name in _REFERENCES:
        for (line,) in connection.execute(_SQL[name]):
            yield line
