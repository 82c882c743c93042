"""One connection to PostgreSQL that is made when it is needed, and made again after it was lost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import psycopg
from psycopg import sql

from afresh.stores.postgres.address import Address
from afresh.stores.postgres.arrays import register
from afresh.stores.rows import Row

Connection: TypeAlias = "psycopg.Connection[Row]"


def rows(connection: Connection, statement: str, given: Mapping[str, Any] | None = None) -> list[Row]:
    """Run one statement; its rows, if it has any. Lists are given as arrays."""
    cursor = connection.execute(statement.encode(), given, binary=True)
    return cursor.fetchall() if cursor.description is not None else []


def together(connection: Connection, *asked: tuple[str, Mapping[str, Any] | None]) -> list[list[Row]]:
    """Run several statements on one way to the server and back; the rows of each."""
    with connection.pipeline():
        cursors = [connection.execute(text.encode(), given, binary=True) for text, given in asked]
    return [cursor.fetchall() if cursor.description is not None else [] for cursor in cursors]


class Line:
    """A connection in the store's schema. ``prelude`` is set for its whole life."""

    def __init__(self, address: Address, timeout_s: float, prelude: str = "") -> None:
        """Nothing is asked yet."""
        self._address, self._timeout_s, self._prelude = address, timeout_s, prelude
        self._connection: Connection | None = None

    def connection(self) -> Connection:
        """The connection, a new one if there is none or it is known to be lost."""
        if self._connection is None or self._connection.closed:
            self._connection = None
            self._connection = self._connect()
        return self._connection

    def twin(self) -> Line:
        """Another one like it."""
        return Line(self._address, self._timeout_s, self._prelude)

    @property
    def is_made(self) -> bool:
        """Whether there is one, as far as is known here."""
        return self._connection is not None and not self._connection.closed

    def drop(self) -> None:
        """Let go of it."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _connect(self) -> Connection:
        connection = psycopg.connect(
            self._address.url,
            autocommit=True,
            connect_timeout=max(2, math.ceil(self._timeout_s)),
            application_name="afresh",
        )
        try:
            register(connection)
            place = sql.SQL("SET search_path TO {}").format(sql.Identifier(self._address.schema))
            connection.execute(place)
            patience_ms = max(1, round(self._timeout_s * 1000))
            # Plans are for a few rows out of millions: compiling them would take longer than running them.
            connection.execute(f"SET lock_timeout = {patience_ms}; SET jit = off; {self._prelude}".encode())
        except BaseException:
            connection.close()
            raise
        return connection
