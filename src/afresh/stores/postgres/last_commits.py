"""Knows which transactions were committed, also after the connection was lost and the server crashed.

A client is one connection that writes. Each of its transactions begins by writing its number into the row of
its client in the table ``last_commit``. A client that lost its connection during a commit reads it there.

``pg_xact_status`` cannot replace this. A server that crashes gives the ids of transactions of which nothing
had reached its disk to other transactions. If such a one is committed, the lost one is called committed too.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid4

import psycopg

from afresh.stores.postgres.connection import Connection, fetch_rows
from afresh.stores.sql.dialect import load_statements

_SQL = load_statements(__package__, "last_commits")
_WAIT_MS = 200  # for which a lost transaction that is still under way is waited for, before it is ended


@dataclass(frozen=True, slots=True)
class TransactionName:
    """The client, the number of its transaction, and the server process that runs the transaction."""

    client: UUID
    number: int
    process: int


class LastCommits:
    """Begins the transactions of one connection after the other."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._last = TransactionName(uuid4(), 0, 0)

    def begin(self, connection: Connection, *, durable: bool) -> TransactionName:
        """Begin a transaction of ``connection``. If it is not ``durable``, a crash of the server may lose it
        within the first second after its commit."""
        is_new = connection is not self._connection
        # A new client for each connection: the server may still be in a transaction of the old one.
        client, number = (uuid4(), 1) if is_new else (self._last.client, self._last.number + 1)
        begin = _SQL["begin"] if durable else _SQL["begin_lightly"]
        number_it = _SQL["set"].format(client=client, number=number)
        connection.execute(f"{begin}; {number_it}".encode())
        if is_new:
            fetch_rows(connection, _SQL["forget_old_clients"])
        self._connection = connection
        self._last = TransactionName(client, number, connection.info.backend_pid)
        return self._last

    def is_committed(self, connection: Connection, transaction: TransactionName) -> bool:
        """Return whether a transaction of a connection that was lost is committed. If the server is still in
        it, because it has not noticed the loss, end it."""
        try:
            return self._number(connection, transaction) == transaction.number
        except psycopg.errors.LockNotAvailable:
            fetch_rows(connection, _SQL["terminate"], {"process": transaction.process})
        return self._number(connection, transaction) == transaction.number

    def _number(self, connection: Connection, transaction: TransactionName) -> int:
        """Return the number of the client's last committed transaction. Wait if one is under way."""
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = {_WAIT_MS}".encode())
            return int(fetch_rows(connection, _SQL["get"], {"client": transaction.client})[0][0])
