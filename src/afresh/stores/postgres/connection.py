"""A connection to PostgreSQL that is opened at its first use, and opened again after it was lost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from afresh.stores.postgres.binary_arrays import register_arrays
from afresh.stores.rows import Row
from afresh.values.errors import UsageError

_DEFAULT_SCHEMA = "afresh"
_LONGEST = 63  # bytes of a name in PostgreSQL


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """The address of a store. ``url`` is for libpq; ``name`` is for messages and contains no password."""

    url: str
    schema: str
    name: str


def parse_address(url: str) -> PostgresAddress:
    """Split the address of a store. Its option ``schema`` is not passed to libpq, which does not know it.

    >>> address = parse_address("postgresql://me:secret@db.example.org/copies?schema=web&sslmode=require")
    >>> address.schema, address.name
    ('web', 'postgresql://me@db.example.org/copies, schema web')
    >>> address.url
    'postgresql://me:secret@db.example.org/copies?sslmode=require'
    """
    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        # The message of urllib may quote the address, which may contain the password.
        raise UsageError(
            "the store's address cannot be read: give postgresql://USER@HOST/DATABASE?schema=NAME"
        ) from None
    schema = dict(options).get("schema", _DEFAULT_SCHEMA)
    if not schema or "\0" in schema or len(schema.encode("utf-8", "replace")) > _LONGEST:
        raise UsageError(f"the store's schema is {schema!r}: give a name of 1 to {_LONGEST} bytes")
    kept = urlencode([(key, value) for key, value in options if key != "schema"], quote_via=quote, safe="")
    user, at, place = parts.netloc.rpartition("@")
    where = place or dict(options).get("host", "")
    name = f"{parts.scheme}://{user.partition(':')[0]}{at}{where}{parts.path}, schema {schema}"
    return PostgresAddress(urlunsplit(parts._replace(query=kept)), schema, name)


Connection: TypeAlias = "psycopg.Connection[Row]"


def fetch_rows(connection: Connection, statement: str, given: Mapping[str, Any] | None = None) -> list[Row]:
    """Run one statement with the parameters ``given`` and return its rows, empty if it returns none."""
    cursor = connection.execute(statement.encode(), given, binary=True)
    return cursor.fetchall() if cursor.description is not None else []


def fetch_pipelined(
    connection: Connection, *statements: tuple[str, Mapping[str, Any] | None]
) -> list[list[Row]]:
    """Run several (statement, parameters) in one round trip to the server; return the rows of each."""
    with connection.pipeline():
        cursors = [connection.execute(text.encode(), given, binary=True) for text, given in statements]
    return [cursor.fetchall() if cursor.description is not None else [] for cursor in cursors]


# A network that loses every packet tells neither side. Over TCP, a connection whose other end is silent for
# half a minute counts as lost, instead of after the quarter of an hour of most systems.
_NOTICE_LOSS = {
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
}


class LazyConnection:
    """A connection in the store's schema, opened at its first use.

    ``prelude`` is SQL that every new connection executes first, such as ``SET`` statements."""

    def __init__(self, address: PostgresAddress, timeout_s: float, prelude: str = "") -> None:
        self._address, self._timeout_s, self._prelude = address, timeout_s, prelude
        self._connection: Connection | None = None

    def connection(self) -> Connection:
        """Return the connection; connect first if there is none, or if it is known to be lost."""
        if self._connection is None or self._connection.closed:
            self._connection = None
            self._connection = self._connect()
        return self._connection

    def copy(self) -> LazyConnection:
        """Return a new ``LazyConnection`` with the same settings, not connected yet."""
        return LazyConnection(self._address, self._timeout_s, self._prelude)

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection. A loss is noticed only when the connection is used."""
        return self._connection is not None and not self._connection.closed

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _connect(self) -> Connection:
        connection = psycopg.connect(
            self._address.url,
            **self._notice_loss(),
            autocommit=True,
            connect_timeout=max(2, math.ceil(self._timeout_s)),
            application_name="afresh",
        )
        try:
            register_arrays(connection)
            place = sql.SQL("SET search_path TO {}").format(sql.Identifier(self._address.schema))
            connection.execute(place)
            lock_timeout_ms = max(1, round(self._timeout_s * 1000))
            # Statements read and write few rows, so compiling them (JIT) would take longer than running them.
            connection.execute(
                f"SET lock_timeout = {lock_timeout_ms}; SET jit = off; {self._prelude}".encode()
            )
        except BaseException:
            connection.close()
            raise
        return connection

    def _notice_loss(self) -> dict[str, Any]:
        """Return the options that notice a silent network, but for those that the address has itself."""
        own = conninfo_to_dict(self._address.url)
        return {name: value for name, value in _NOTICE_LOSS.items() if name not in own}
