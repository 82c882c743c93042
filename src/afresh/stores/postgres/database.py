"""The connections to one PostgreSQL store: one that writes, one that reads, and their transactions.

Work is passed as a function, because it may have to run again: after a deadlock with another worker, or if
the connection is lost before the commit. If the connection is lost *during* the commit, the server is asked
whether the transaction was committed (``last_commits``), so that no work is lost or done twice. If the server
does not answer, ``CommitUnknownError`` is raised. It names the transaction, about which the server can be
asked later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b, md5
from threading import RLock
from typing import Any

import psycopg

from afresh.stores.postgres.binary_arrays import Array, column_arrays, to_array
from afresh.stores.postgres.connection import Connection, LazyConnection, PostgresAddress, fetch_rows
from afresh.stores.postgres.errors import is_lost, translate_error
from afresh.stores.postgres.last_commits import LastCommits, TransactionName
from afresh.stores.postgres.migrations import migrate
from afresh.stores.rows import Row
from afresh.stores.sql.dialect import Parameters, SqlDatabase, T, load_migrations, load_statements
from afresh.values.errors import StoreError, StoreLockedError, StoreMissingError, StoreReadOnlyError

_SQL = load_statements(__package__, "database")
_TRIES = 12  # PostgreSQL ends only one transaction of a deadlock, so every worker succeeds after some tries
# Statements that write find a few rows by key, so a hash or merge join, which reads a table, is never good.
_WRITER = "SET enable_hashjoin = off; SET enable_mergejoin = off"
_IDLE_SHARE = 0.8  # of the time that others wait for a lock
_UPGRADE = "BEGIN ISOLATION LEVEL READ COMMITTED"
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_CONFLICTS = ("40P01", "40001")  # deadlock, serialisation


class CommitUnknownError(StoreLockedError):
    """Raised if the connection is lost during the commit of ``transaction`` and the server does not answer.
    ``result`` is what the work returned."""

    def __init__(self, text: str, transaction: TransactionName, result: Any) -> None:
        super().__init__(text)
        self.transaction, self.result = transaction, result


class PostgresDatabase(SqlDatabase[Connection]):
    """One schema of one database. Any thread may use it: locks protect the two connections."""

    package = __package__
    crashes_alone = True

    def __init__(
        self,
        address: PostgresAddress,
        *,
        create: bool = True,
        read_only: bool = False,
        timeout_s: float = 5.0,
        migrations: tuple[str, ...] | None = None,
    ) -> None:
        """Connect, create or upgrade the store; wait at most ``timeout_s`` seconds for other writers."""
        self._address, self.read_only, self.name = address, read_only, address.name
        self._write_lock, self._read_lock = RLock(), RLock()
        # If a process stops in the middle of a transaction, the server ends the transaction before the others
        # give up waiting for its locks. Otherwise one suspended machine would stop all workers.
        idle_ms = max(1, round(_IDLE_SHARE * timeout_s * 1000))
        prelude = f"{_WRITER}; SET idle_in_transaction_session_timeout = {idle_ms}"
        self._writer = LazyConnection(address, timeout_s, prelude)
        self._reader = LazyConnection(address, timeout_s, "SET default_transaction_read_only = on")
        self._last_commits, self._closed = LastCommits(), False
        scripts = load_migrations(__package__) if migrations is None else migrations
        try:
            self._open(scripts, create)
        except BaseException:
            self.close()
            raise

    def write(self, work: Callable[[Connection], T], *, durable: bool = True) -> T:
        with self._write_lock:
            return self._retry(self._writer, lambda: self._transaction(work, durable))

    def read(self, work: Callable[[Connection], T]) -> T:
        with self._read_lock:
            return self._retry(self._reader, lambda: work(self._connection(self._reader)))

    def snapshot(self, work: Callable[[Connection], T]) -> T:
        def read() -> T:
            connection = self._connection(self._reader)
            connection.execute(_SNAPSHOT)
            try:
                return work(connection)
            finally:
                _roll_back(connection)

        with self._read_lock:
            return self._retry(self._reader, read)

    def rows(self, connection: Connection, statement: str, given: Parameters) -> list[Row]:
        return fetch_rows(connection, statement, given)

    def run_many(
        self, connection: Connection, statement: str, columns: Sequence[str], table: Sequence[Row]
    ) -> None:
        if table:
            fetch_rows(connection, statement, column_arrays(columns, table))

    def as_list(self, values: Collection[Any]) -> Array | list[Any]:
        return to_array(list(values))

    def key_parameter(self, key: str) -> bytes:
        return key_hash(key)

    def lock_states(self, connection: Connection, item_ids: Sequence[int]) -> None:
        fetch_rows(connection, _SQL["lock_states"], {"ids": list(item_ids)})

    def _name_parameters(self, texts: Collection[str]) -> Parameters:
        hashes = [md5(text.encode(), usedforsecurity=False).hexdigest() for text in texts]
        return {"texts": sorted(texts), "hashes": hashes}

    @contextmanager
    def separate_snapshot(self) -> Iterator[Connection]:
        """Yield a new connection that sees one state of the database, for long reads."""
        lazy = self._reader.copy()
        try:
            connection = self._connection(lazy)
            connection.execute(_SNAPSHOT)
            yield connection
        except psycopg.Error as error:
            raise translate_error(error, self.name) from error
        finally:
            lazy.close()

    def execute_outside_transaction(self, statement: str) -> None:
        """Run one statement outside a transaction, as statements like VACUUM require."""
        with self._write_lock:
            self._retry(self._writer, lambda: fetch_rows(self._connection(self._writer), statement))

    def was_committed(self, transaction: TransactionName) -> bool:
        """Return whether a transaction was committed whose ``CommitUnknownError`` named it."""
        with self._write_lock:
            return self._retry(self._writer, lambda: self._is_committed(transaction))

    def close(self) -> None:
        with self._write_lock, self._read_lock:
            self._closed = True
            for lazy in (self._reader, self._writer):
                lazy.close()

    def _open(self, migrations: tuple[str, ...], create: bool) -> None:
        lazy = self._reader if self.read_only else self._writer

        def prepare(connection: Connection) -> None:
            migrate(connection, self._address, migrations, create=create, read_only=self.read_only)

        def upgrade() -> None:
            # The table of the last commits may not exist yet. To upgrade twice does no harm.
            connection = self._connection(lazy)
            connection.execute(_UPGRADE)
            _work_or_roll_back(connection, prepare)
            connection.execute("COMMIT")

        try:
            if self.read_only:
                self.snapshot(prepare)
            else:
                self._retry(lazy, upgrade)
        except StoreReadOnlyError as error:
            if isinstance(error.__cause__, psycopg.Error):
                raise StoreMissingError(str(error)) from error.__cause__
            raise
        except BaseException:
            lazy.close()
            raise

    def _retry(self, lazy: LazyConnection, work: Callable[[], T]) -> T:
        """Run ``work``, and run it again if the connection was lost, or after a deadlock."""
        for remaining in reversed(range(_TRIES)):
            known = lazy.is_connected
            try:
                return work()
            except psycopg.Error as error:
                lost = is_lost(error)
                if lost:
                    lazy.close()
                can_retry = (lost and known) or error.sqlstate in _CONFLICTS
                if not remaining or not can_retry:
                    raise translate_error(error, self.name) from error
        raise AssertionError  # the loop returns or raises

    def _transaction(self, work: Callable[[Connection], T], durable: bool) -> T:
        connection = self._connection(self._writer)
        begin = partial(self._last_commits.begin, durable=durable)
        transaction = _work_or_roll_back(connection, begin)
        result = _work_or_roll_back(connection, work)
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if not is_lost(error):
                raise
            self._writer.close()
            if not self._resolve(transaction, result, error):
                raise
        return result

    def _resolve(self, transaction: TransactionName, result: Any, error: psycopg.Error) -> bool:
        """Return whether the transaction was committed, or raise ``CommitUnknownError``."""
        try:
            return self._is_committed(transaction)
        except psycopg.Error:
            self._writer.close()
            reason = translate_error(error, self.name)
            text = f"{reason}; it is not known yet whether the last commit was done"
            raise CommitUnknownError(text, transaction, result) from error

    def _is_committed(self, transaction: TransactionName) -> bool:
        return self._last_commits.is_committed(self._connection(self._writer), transaction)

    def _connection(self, lazy: LazyConnection) -> Connection:
        if self.read_only and lazy is self._writer:
            raise StoreReadOnlyError(f"{self.name} was opened for reading only")
        if self._closed:
            raise StoreError(f"{self.name} is closed")
        return lazy.connection()


def _work_or_roll_back(connection: Connection, work: Callable[[Connection], T]) -> T:
    try:
        return work(connection)
    except BaseException:
        _roll_back(connection)
        raise


def _roll_back(connection: Connection) -> None:
    try:
        connection.execute("ROLLBACK")
    except psycopg.Error:
        # The connection was lost. The server rolls back on its own, and the next call connects again.
        connection.close()


def key_hash(key: str) -> bytes:
    """Return the hash that identifies a key in the table of items (BLAKE2b, 128 bits).

    >>> key_hash("").hex()
    'cae66941d9efbd404e4d88758ea67670'
    """
    return blake2b(key.encode(), digest_size=16).digest()
