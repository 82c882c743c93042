"""The connections to one store: one that writes, one that reads, and their transactions.

Work is given as a function, because it may have to be run again: after a deadlock with another worker, or
after a connection that was lost before the transaction was committed. When it is lost *while* committing, the
server is asked what became of the transaction (``pg_xact_status``), so nothing is done twice or not at all;
if the server cannot be asked, ``CommitUnknownError`` carries what is needed to ask later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, TypeVar

import psycopg

from afresh.stores.postgres.address import Address
from afresh.stores.postgres.errors import is_lost, translate_error
from afresh.stores.postgres.lines import Connection, Line, rows
from afresh.stores.postgres.migrations import load_migrations, make_ready
from afresh.stores.postgres.queries import load_blocks
from afresh.values.errors import (
    StoreError,
    StoreLockedError,
    StoreMissingError,
    StoreReadOnlyError,
)

T = TypeVar("T")
Work = Callable[[Connection], T]

_SQL = load_blocks("database.sql")
_TRIES = 12  # of two in a deadlock one goes on, so all get through in the end
# Writing finds a few rows by their keys: to read a whole table for it is never right.
_WRITER = "SET enable_hashjoin = off; SET enable_mergejoin = off"
_CONFLICTS = ("40P01", "40001")  # deadlock, serialisation


class CommitUnknownError(StoreLockedError):
    """The connection was lost while transaction ``xid`` committed, and the server could not be asked."""

    def __init__(self, text: str, xid: str, process: int, result: Any) -> None:
        super().__init__(text)
        self.xid, self.process, self.result = xid, process, result


class PostgresDatabase:
    """One schema of one database. Any thread may use it; connections are shared under locks."""

    def __init__(
        self,
        address: Address,
        *,
        create: bool = True,
        read_only: bool = False,
        timeout_s: float = 5.0,
        migrations: tuple[str, ...] | None = None,
    ) -> None:
        """Connect, make or upgrade the store; ``timeout_s`` is how long to wait for other writers."""
        self.address, self.read_only, self.name = address, read_only, address.name
        self._write_lock, self._read_lock = RLock(), RLock()
        self._writer = Line(address, timeout_s, _WRITER)
        self._reader = Line(address, timeout_s, "SET default_transaction_read_only = on")
        self._closed = False
        scripts = load_migrations() if migrations is None else migrations
        try:
            self._open(scripts, create)
        except BaseException:
            self.close()
            raise

    def write(self, work: Work[T], *, durable: bool = True) -> T:
        """Run ``work`` as one transaction. Not ``durable``: power loss may undo it."""
        if self.read_only:
            raise StoreReadOnlyError(f"{self.name} was opened for reading only")
        with self._write_lock:
            return self._again(self._writer, lambda: self._transaction(work, durable))

    def read(self, work: Work[T]) -> T:
        """Run ``work``, which reads by one statement."""
        with self._read_lock:
            return self._again(self._reader, lambda: work(self._line(self._reader).connection()))

    def snapshot(self, work: Work[T]) -> T:
        """Run ``work``, which reads by several statements that see one moment."""
        with self._read_lock:
            return self._again(self._reader, lambda: self._moment(work))

    @contextmanager
    def apart(self) -> Iterator[Connection]:
        """A connection of its own that sees one moment, for what takes long."""
        line = self._line(self._reader).twin()
        try:
            connection = line.connection()
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield connection
        except psycopg.Error as error:
            raise translate_error(error, self.name) from error
        finally:
            line.drop()

    def alone(self, statement: str) -> None:
        """One statement outside any transaction, for what PostgreSQL will not do inside one."""
        if self.read_only:
            raise StoreReadOnlyError(f"{self.name} was opened for reading only")
        with self._write_lock:
            self._again(self._writer, lambda: rows(self._line(self._writer).connection(), statement))

    def was_committed(self, xid: str, process: int) -> bool:
        """What became of a transaction whose connection was lost while it committed."""
        with self._write_lock:
            return self._again(self._writer, lambda: self._verdict(xid, process))

    def close(self) -> None:
        """Hang up."""
        with self._write_lock, self._read_lock:
            self._closed = True
            for line in (self._reader, self._writer):
                line.drop()

    def _open(self, migrations: tuple[str, ...], create: bool) -> None:
        line = self._reader if self.read_only else self._writer

        def prepare(connection: Connection) -> None:
            make_ready(connection, self.address, migrations, create=create, read_only=self.read_only)

        try:
            (self.snapshot if self.read_only else self.write)(prepare)
        except StoreReadOnlyError as error:
            if isinstance(error.__cause__, psycopg.Error):
                raise StoreMissingError(str(error)) from error.__cause__
            raise
        except BaseException:
            line.drop()
            raise

    def _again(self, line: Line, work: Callable[[], T]) -> T:
        """Run ``work``, once more on a new connection if the old one was lost, and after deadlocks."""
        for remaining in reversed(range(_TRIES)):
            known = line.is_made
            try:
                return work()
            except psycopg.Error as error:
                lost = is_lost(error)
                if lost:
                    line.drop()
                worth_it = (lost and known) or error.sqlstate in _CONFLICTS
                if not remaining or not worth_it:
                    raise translate_error(error, self.name) from error
        raise AssertionError  # the loop returns or raises

    def _transaction(self, work: Work[T], durable: bool) -> T:
        connection = self._line(self._writer).connection()
        xid, process = _begin(connection, durable)
        try:
            result = work(connection)
        except BaseException:
            self._roll_back(connection)
            raise
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if not is_lost(error):
                raise
            self._writer.drop()
            if not self._ask(xid, process, result, error):
                raise
        return result

    def _ask(self, xid: str, process: int, result: Any, error: psycopg.Error) -> bool:
        """Whether the transaction was committed after all."""
        try:
            return self._verdict(xid, process)
        except psycopg.Error:
            self._writer.drop()
            words = (
                f"{translate_error(error, self.name)}; it is not known yet whether the last commit was done"
            )
            raise CommitUnknownError(words, xid, process, result) from error

    def _verdict(self, xid: str, process: int) -> bool:
        connection = self._line(self._writer).connection()
        given = {"xid": xid, "process": process}
        ((status,),) = rows(connection, _SQL["status"], given)
        if status == "in progress":
            # Its server process has not noticed that we are gone: end it, and ask again.
            rows(connection, _SQL["terminate"], given)
            ((status,),) = rows(connection, _SQL["status"], given)
        if status not in ("committed", "aborted"):
            raise StoreError(f"{self.name}: the server does not know what became of transaction {xid}")
        return bool(status == "committed")

    def _moment(self, work: Work[T]) -> T:
        connection = self._line(self._reader).connection()
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            return work(connection)
        finally:
            self._roll_back(connection)

    def _roll_back(self, connection: Connection) -> None:
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            # Lost: the server rolls back by itself, and the next call makes a new connection.
            connection.close()

    def _line(self, line: Line) -> Line:
        if self._closed:
            raise StoreError(f"{self.name} is closed")
        return line


def _begin(connection: Connection, durable: bool) -> tuple[str, int]:
    """Start a transaction; its number and the server's process."""
    cursor = connection.execute((_SQL["begin"] if durable else _SQL["begin_lightly"]).encode())
    while cursor.nextset():
        pass
    row = cursor.fetchone()
    assert row is not None
    return str(row[0]), int(row[1])
