"""The connections to one SQLite file: one that writes, one that reads, and their transactions.

The file has a write-ahead log, so that readers and the writer do not wait for each other. The log is synced
to disk at every commit, so that committed data survives power loss.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar

from afresh.stores.rows import Row
from afresh.stores.sql.dialect import Fetch, Parameters, SqlDatabase, T, load_migrations
from afresh.stores.sqlite.database_file import CREATE, WRITER_KIB, DatabaseFile, exists, primary_code
from afresh.stores.sqlite.errors import READ_ONLY, translate_errors
from afresh.stores.sqlite.migrations import is_current, migrate
from afresh.values.errors import StoreError, StoreMissingError, StoreReadOnlyError

# The log is written back to the file after 64 MiB. A page that changed often by then is written back once.
_LOG_PAGES = 16 * 1024
_TRIES = 20
# SQLite gives up the beginning of a read after ten seconds in which other processes, one after another,
# opened the log again: on a busy machine, when processes that use the store are killed again and again.
_READ_TRIES = 3


class SqliteDatabase(SqlDatabase[sqlite3.Connection]):
    """One SQLite file. Any thread may use it: locks protect the two connections."""

    package = __package__
    crashes_alone = False
    file_type: ClassVar[type[DatabaseFile]] = DatabaseFile
    oldest: ClassVar[tuple[int, int]] = (3, 35)  # the first SQLite with RETURNING

    def __init__(
        self,
        path: Path,
        *,
        create: bool = True,
        read_only: bool = False,
        timeout_s: float = 5.0,
        migrations: tuple[str, ...] | None = None,
    ) -> None:
        """Open, create or upgrade the file; wait at most ``timeout_s`` seconds for other writers."""
        if sqlite3.sqlite_version_info < self.oldest:
            needed = ".".join(map(str, self.oldest))
            raise StoreError(f"SQLite is {sqlite3.sqlite_version}: {needed} or newer is needed")
        if (read_only or not create) and not exists(path):
            raise StoreMissingError(f"there is no store at {path}")
        self.path, self.name, self.read_only = path, str(path), read_only
        self._file = self.file_type(path, timeout_s)
        self._write_lock, self._read_lock = RLock(), RLock()
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._closed = False
        self._migrations = load_migrations(__package__) if migrations is None else migrations
        try:
            with translate_errors(path):
                self._open()
        except BaseException:
            self.close()
            raise

    def write(self, work: Callable[[sqlite3.Connection], T], *, durable: bool = True) -> T:
        with self.transaction(durable=durable) as connection:
            return work(connection)

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        self._ensure_in_place()
        with self._read_lock, translate_errors(self.path):
            connection = self._require_open(self._reader)
            remaining = _READ_TRIES
            while True:
                remaining -= 1
                _roll_back(connection)
                connection.execute("BEGIN")
                try:
                    return work(connection)
                except sqlite3.OperationalError as error:
                    # With this code it is the first statement that failed: nothing was read yet.
                    if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_PROTOCOL or not remaining:
                        raise
                finally:
                    _roll_back(connection)

    def snapshot(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return self.read(work)

    def rows(self, connection: sqlite3.Connection, statement: str, given: Parameters) -> list[Row]:
        return connection.execute(statement, given).fetchall()

    def run_many(
        self,
        connection: sqlite3.Connection,
        statement: str,
        columns: Sequence[str],  # noqa: ARG002 (the statement has its parameters in this order)
        table: Sequence[Row],
    ) -> None:
        connection.executemany(statement, table)

    def insert(
        self, connection: sqlite3.Connection, table: str, columns: Sequence[str], rows: Iterable[Row]
    ) -> None:
        """Add rows, which have a value for each of ``columns``, to a table."""
        marks = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def as_list(self, values: Collection[Any]) -> str:
        return json.dumps(list(values))  # read by json_each

    def key_parameter(self, key: str) -> str:
        return key

    def lock_states(self, connection: sqlite3.Connection, item_ids: Sequence[int]) -> None:
        """Do nothing, because SQLite has one writer at a time."""

    def _name_parameters(self, texts: Collection[str]) -> Parameters:
        return {"texts": self.as_list(sorted(texts))}

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Yield the writing connection in a transaction. If the ``with`` block raises, it is rolled back."""
        with self.outside_transaction() as connection:
            _roll_back(connection)
            # A commit with NORMAL is not synced to disk at once. The next commit with FULL syncs it too.
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise

    @contextmanager
    def outside_transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the writing connection outside a transaction, as statements like VACUUM require."""
        if self.read_only:
            raise StoreReadOnlyError(f"{self.path} was opened for reading only")
        self._ensure_in_place()
        with self._write_lock, translate_errors(self.path):
            yield self._require_open(self._writer)

    @contextmanager
    def separate_connection(self) -> Iterator[sqlite3.Connection]:
        """Yield a new connection for a long read, which would otherwise block the shared connection."""
        self._ensure_in_place()
        self._require_open(self._reader)
        with translate_errors(self.path):
            connection = self._file.connect(self._file.read_mode)
            try:
                yield connection
            finally:
                connection.close()

    @contextmanager
    def reader(self) -> Iterator[Fetch]:
        with self.separate_connection() as connection:
            yield lambda statement, given: self.rows(connection, statement, given)

    def close(self) -> None:
        """Close both connections. The last process that closes the file writes the log back to it."""
        with self._write_lock, self._read_lock:
            self._closed = True
            self._close_connections()

    def _close_connections(self) -> None:
        for connection in (self._reader, self._writer):
            if connection is not None:
                connection.close()
        self._reader = self._writer = None
        self._file.forget()  # so that the next call opens the file again

    def _open(self) -> None:
        if self.read_only:
            self._reader = self._file.connect_for_reading()
            if not is_current(self._reader, self.path, len(self._migrations)):
                raise StoreReadOnlyError(f"{self.path} needs an upgrade: open it once for writing")
        else:
            try:
                self._open_to_write()
            except sqlite3.OperationalError as error:
                # A readable file that cannot be opened is in a folder in which SQLite cannot create the log.
                if primary_code(error) == sqlite3.SQLITE_CANTOPEN and self._file.is_readable():
                    raise StoreReadOnlyError(f"{self.path} {READ_ONLY}") from error
                raise
        self._file.remember()

    def _open_to_write(self) -> None:
        self._writer = self._file.connect(CREATE, WRITER_KIB)
        if not is_current(self._writer, self.path, len(self._migrations)):
            migrate(self._writer, self.path, self._migrations)
        _switch_to_log(self._writer)
        self._writer.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        self._writer.execute(f"PRAGMA journal_size_limit = {8 * _LOG_PAGES * 4096}")
        # Debian's SQLite overwrites deleted data with zeros by default, which would double the writing.
        self._writer.execute("PRAGMA secure_delete = OFF")
        self._reader = self._file.connect("rw")
        self._reader.execute("PRAGMA query_only = ON")
        # The first read creates the log if there is none, so that ``remember`` finds it.
        self._reader.execute("SELECT count(*) FROM sqlite_master").fetchone()

    def _ensure_in_place(self) -> None:
        """Open the file again if another file was put in its place; raise if there is no file."""
        if self._file.is_in_place():
            return
        with self._write_lock, self._read_lock:
            # Another thread may have opened or closed the file while this one waited for the locks.
            if self._closed or self._file.is_in_place():
                return
            self._file.check_replacement()
            self._close_connections()
            try:
                with translate_errors(self.path):
                    self._open()
            except StoreError as error:
                self._close_connections()
                raise StoreMissingError(f"{error}: it is not the file that was there before") from None

    def _require_open(self, connection: sqlite3.Connection | None) -> sqlite3.Connection:
        if connection is None or self._closed:
            raise StoreError(f"{self.path} is closed")
        return connection


def _roll_back(connection: sqlite3.Connection) -> None:
    """End the transaction, if there is one: after some errors, such as a full disk, SQLite has done so. It is
    also called before a transaction, because ending the one before may have failed."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _switch_to_log(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log. If another process locks the file, wait, because SQLite does not."""
    for remaining in reversed(range(_TRIES)):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or not remaining:
                raise
        # BEGIN IMMEDIATE waits until the other process has released its lock.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
