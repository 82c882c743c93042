"""The connections to one SQLite file: one that writes, one that reads, and their transactions.

The file has a write-ahead log, so that readers and the writer do not wait for each other; it is synced at
every commit, so that what was committed survives power loss.

A file that was deleted or moved away would go on taking what is written, for nobody to find. So each
transaction first checks that the file is still in its place. If another file was put there, it is opened
instead, unless the log of the old one still lies beside it: SQLite would take that for the new file's own.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar
from urllib.parse import quote

from afresh.stores.rows import Row
from afresh.stores.sql.dialect import Fetch, Parameters, SqlDatabase, T, load_migrations
from afresh.stores.sqlite.errors import READ_ONLY, translate_errors
from afresh.stores.sqlite.migrations import is_current, migrate
from afresh.values.errors import StoreError, StoreMissingError, StoreReadOnlyError

# A reader drops its cache with every commit of others, a millisecond for ten megabytes; the writer's lasts.
_WRITER_KIB, _READER_KIB = 64 * 1024, 8 * 1024
_LOG_PAGES = 16 * 1024  # written back to the file after 64 MiB: pages changed often go there once
_TRIES = 20
_IMMUTABLE = "ro&immutable=1"


class SqliteDatabase(SqlDatabase[sqlite3.Connection]):
    """One SQLite file. Any thread may use it; connections are shared under locks."""

    package = __package__
    survives_alone = False
    oldest: ClassVar[tuple[int, int]] = (3, 35)  # RETURNING

    def __init__(
        self,
        path: Path,
        *,
        create: bool = True,
        read_only: bool = False,
        timeout_s: float = 5.0,
        migrations: tuple[str, ...] | None = None,
    ) -> None:
        """Open the file, create or upgrade it; ``timeout_s`` is how long to wait for other writers."""
        if sqlite3.sqlite_version_info < self.oldest:
            needed = ".".join(map(str, self.oldest))
            raise StoreError(f"SQLite is {sqlite3.sqlite_version}: {needed} or newer is needed")
        if (read_only or not create) and not _exists(path):
            raise StoreMissingError(f"there is no store at {path}")
        self.path, self.name, self.read_only, self._timeout_s = path, str(path), read_only, timeout_s
        self._place = path.absolute()  # the process may change its folder
        self._write_lock, self._read_lock = RLock(), RLock()
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._closed, self._read_mode = False, "ro"
        self._file: tuple[int, int] | None = None  # the open file, by device and inode
        self._log: tuple[int, int] | None = None
        self._stamp = (0, 0)
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
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def snapshot(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return self.read(work)

    def rows(self, connection: sqlite3.Connection, statement: str, given: Parameters) -> list[Row]:
        return connection.execute(statement, given).fetchall()

    def run_many(
        self,
        connection: sqlite3.Connection,
        statement: str,
        columns: Sequence[str],  # noqa: ARG002 (the statement takes them in this order)
        table: Sequence[Row],
    ) -> None:
        connection.executemany(statement, table)

    def as_list(self, values: Collection[Any]) -> str:
        return json.dumps(list(values))  # read by json_each

    def key_parameter(self, key: str) -> str:
        return key

    def lock_states(self, connection: sqlite3.Connection, item_ids: Sequence[int]) -> None:
        """Do nothing: there is one writer at a time."""

    def _name_parameters(self, texts: Collection[str]) -> Parameters:
        return {"texts": self.as_list(sorted(texts))}

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Give the writing connection inside a transaction, which is committed when the block ends well."""
        with self.outside_transaction() as connection:
            # The next durable commit syncs the whole log, and so what came before it.
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # SQLite itself rolls back after some errors, a full disk among them.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def outside_transaction(self) -> Iterator[sqlite3.Connection]:
        """Give the writing connection outside any transaction, for what SQLite refuses to do inside one."""
        if self.read_only:
            raise StoreReadOnlyError(f"{self.path} was opened for reading only")
        self._ensure_in_place()
        with self._write_lock, translate_errors(self.path):
            yield self._require_open(self._writer)

    @contextmanager
    def separate_connection(self) -> Iterator[sqlite3.Connection]:
        """Give a new connection, for what takes long."""
        self._ensure_in_place()
        self._require_open(self._reader)
        with translate_errors(self.path):
            connection = self._connect(self._read_mode)
            try:
                yield connection
            finally:
                connection.close()

    @contextmanager
    def reader(self) -> Iterator[Fetch]:
        with self.separate_connection() as connection:
            yield lambda statement, given: self.rows(connection, statement, given)

    def close(self) -> None:
        """Close both connections; the last process to do so folds the log into the file."""
        with self._write_lock, self._read_lock:
            self._closed = True
            self._close_connections()

    def _close_connections(self) -> None:
        for connection in (self._reader, self._writer):
            if connection is not None:
                connection.close()
        self._reader = self._writer = self._file = None

    def _open(self) -> None:
        if self.read_only:
            self._reader = self._connect_to_read()
            if not is_current(self._reader, self.path, len(self._migrations)):
                raise StoreReadOnlyError(f"{self.path} needs an upgrade: open it once for writing")
        else:
            try:
                self._open_to_write()
            except sqlite3.OperationalError as error:
                # What cannot be opened though it is there lies in a folder that takes no log.
                if _primary(error) == sqlite3.SQLITE_CANTOPEN and _is_readable(self._place):
                    raise StoreReadOnlyError(f"{self.path} {READ_ONLY}") from error
                raise
        self._file, self._log = _identity(self._place), _identity(self._log_path)
        if self._read_mode == _IMMUTABLE:
            self._stamp, self._log = _stamp(self._place), None

    def _open_to_write(self) -> None:
        self._writer = self._connect("rwc", _WRITER_KIB)
        if not is_current(self._writer, self.path, len(self._migrations)):
            migrate(self._writer, self.path, self._migrations)
        self._switch_to_log(self._writer)
        self._writer.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        self._writer.execute(f"PRAGMA journal_size_limit = {8 * _LOG_PAGES * 4096}")
        # Debian's SQLite wipes what it deletes; that would double the writing.
        self._writer.execute("PRAGMA secure_delete = OFF")
        self._reader = self._connect("rw")
        self._reader.execute("PRAGMA query_only = ON")
        self._reader.execute("SELECT count(*) FROM sqlite_master").fetchone()  # so that there is a log

    def _ensure_in_place(self) -> None:
        """Make sure that the file is in its place; if another one was put there, open that one."""
        if self._is_in_place():
            return
        with self._write_lock, self._read_lock:
            if self._closed or self._is_in_place():
                return
            if not _exists(self._place) or self._place.stat().st_size == 0:
                raise StoreMissingError(f"{self.path} was deleted or moved: put it back, or a backup of it")
            if self._log is not None and _identity(self._log_path) == self._log:
                raise StoreMissingError(
                    f"{self.path} is another file, beside the log of the one before: remove "
                    f"{self._log_path.name} and {self.path.name}-shm"
                )
            self._close_connections()
            try:
                with translate_errors(self.path):
                    self._open()
            except StoreError as error:
                self._close_connections()
                raise StoreMissingError(f"{error}: it is not the file that was there before") from None

    def _is_in_place(self) -> bool:
        if self._read_mode == _IMMUTABLE and (_size(self._log_path) or _stamp(self._place) != self._stamp):
            return False  # somebody writes after all
        return self._file is not None and _identity(self._place) == self._file

    @property
    def _log_path(self) -> Path:
        return self._place.with_name(self._place.name + "-wal")

    def _switch_to_log(self, connection: sqlite3.Connection) -> None:
        """Switch to the write-ahead log. SQLite does not wait for other processes here, so we do."""
        for remaining in reversed(range(_TRIES)):
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if _primary(error) != sqlite3.SQLITE_BUSY or not remaining:
                    raise
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")

    def _connect_to_read(self) -> sqlite3.Connection:
        self._read_mode = "ro"
        try:
            connection = self._connect(self._read_mode)
            connection.execute("PRAGMA user_version").fetchone()
            return connection
        except sqlite3.OperationalError as error:
            # In a folder that may not be written the log cannot be joined; without a log none is needed.
            refused = _primary(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if not refused or not _is_readable(self._place):
                raise
            if _size(self._log_path):
                raise StoreReadOnlyError(
                    f"{self.path} cannot be read where nothing may be written: {self._log_path.name} holds "
                    "what is not yet in it; open it once where it may be written, or copy both there"
                ) from error
        self._read_mode = _IMMUTABLE
        return self._connect(self._read_mode)

    def _connect(self, mode: str, cache_kib: int = _READER_KIB) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._uri(mode),
            uri=True,
            timeout=self._timeout_s,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA cache_size = -{cache_kib}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _uri(self, mode: str) -> str:
        return f"file:{quote(str(self._place))}?mode={mode}"

    def _require_open(self, connection: sqlite3.Connection | None) -> sqlite3.Connection:
        if connection is None or self._closed:
            raise StoreError(f"{self.path} is closed")
        return connection


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116  # before every transaction: Path.stat takes twice as long
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _stamp(path: Path) -> tuple[int, int]:
    """Return when a file was written last, and how large it is."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _size(path: Path) -> int:
    return _stamp(path)[1]


def _is_readable(path: Path) -> bool:
    try:
        with path.open("rb"):
            return True
    except OSError:
        return False


def _primary(error: sqlite3.OperationalError) -> int:
    return error.sqlite_errorcode & 0xFF


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise StoreMissingError(f"{path} cannot be looked for: {error.strerror}") from error
