"""Connections to SQLite (read-only) and PostgreSQL (with time-outs, in UTC). They raise ``SqlError``."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afresh.sources.secrets import Secret, redactor
from afresh.sources.sql.database_url import passwords
from afresh.sources.sql.errors import SqlError, postgres_error
from afresh.values.formatting import one_line

if TYPE_CHECKING:
    import psycopg

_CONNECT_S = 10
_SILENCE_S = 30  # a broken network is detected within this time
_AS_TEXT = ("date", "time", "timetz", "timestamp", "timestamptz", "interval", "json")
_BUSY_S = 5.0


@dataclass(frozen=True, slots=True)
class KeyedRecord:
    """One database row of a result: the text of its key, and the values of its columns by name."""

    key: str
    fields: Mapping[str, object]


def keyed_records(table: tuple[list[str], list[tuple[Any, ...]]]) -> list[KeyedRecord]:
    """Return the records of a result ``table``, a tuple (column names, rows). The first column is the key."""
    names, rows = table
    return [KeyedRecord(str(row[0]), dict(zip(names[1:], row[1:], strict=True))) for row in rows]


class PostgresConnection:
    """One PostgreSQL connection in autocommit mode; ``read_only`` makes its transactions read-only.

    A statement fails after ``timeout_s`` seconds, or after waiting ``lock_s`` seconds for a lock. Times are
    returned as text in UTC, because Python cannot represent all times of PostgreSQL (infinity, the year
    20000)."""

    def __init__(self, address: Secret, *, timeout_s: float, lock_s: float, read_only: bool) -> None:
        self._hide = redactor(passwords(address))
        self._raw: psycopg.Connection[tuple[Any, ...]] | None = None
        import psycopg

        with self._translate_errors():
            self._raw = psycopg.connect(
                address.reveal(),
                autocommit=True,
                connect_timeout=_CONNECT_S,
                keepalives_idle=_SILENCE_S // 3,
                keepalives_interval=_SILENCE_S // 3,
                keepalives_count=2,
                tcp_user_timeout=_SILENCE_S * 1000,
                application_name="afresh",
                prepare_threshold=None,  # a prepared plan fails after ALTER TABLE and behind poolers
            )
        try:
            with self._translate_errors():
                _read_as_text(self._raw)
                self._set("TimeZone", "UTC")
                self._set("DateStyle", "ISO")
                self._set("statement_timeout", f"{max(1, round(timeout_s * 1000))}")
                self._set("lock_timeout", f"{max(1, round(lock_s * 1000))}")
                if read_only:
                    self._set("default_transaction_read_only", "on")
        except SqlError:
            self.close()
            raise

    def query(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """Return all database rows of a statement, with ``values`` in place of each ``%s``."""
        return list(self.stream(statement, values))

    def stream(self, statement: str, values: tuple[object, ...] = ()) -> Iterator[tuple[Any, ...]]:
        with self._translate_errors(), self._open.execute(statement.encode(), values) as cursor:
            yield from cursor

    def columns(self, statement: str) -> list[tuple[str, int]]:
        """Return a tuple (name, type oid) for each column of the result of a statement."""
        with self._translate_errors(), self._open.execute(statement.encode(), ()) as cursor:
            return [(column.name, column.type_code) for column in cursor.description or ()]

    def table(self, statement: str, values: tuple[object, ...]) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the result of a statement as a tuple (column names, rows)."""
        with self._translate_errors(), self._open.execute(statement.encode(), values) as cursor:
            return [column.name for column in cursor.description or ()], cursor.fetchall()

    def run(self, statement: str) -> None:
        with self._translate_errors():
            self._open.execute(statement.encode())

    def interrupt(self) -> None:
        with suppress(SqlError), self._translate_errors():
            self._open.cancel_safe(timeout=_CONNECT_S)

    def close(self) -> None:
        if self._raw is not None:
            self._raw.close()

    @property
    def _open(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._raw is None:
            raise SqlError("no connection", is_connection_lost=True)
        return self._raw

    def _set(self, name: str, value: str) -> None:
        self._open.execute("SELECT set_config(%s, %s, false)", (name, value))

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raw = self._raw
            connected = raw is not None and not raw.closed and not raw.broken
            raise postgres_error(error, self._hide, connected=connected) from None
        except (ValueError, UnicodeError) as error:
            # Python cannot represent a value, or a key is not valid text for the server.
            raise SqlError(one_line(self._hide(str(error))), state="22021") from None


def _read_as_text(connection: psycopg.Connection[Any]) -> None:
    from psycopg.types.json import set_json_loads
    from psycopg.types.string import TextLoader

    set_json_loads(partial(json.loads, parse_float=Decimal, parse_int=Decimal), connection)
    for name in _AS_TEXT:
        connection.adapters.register_loader(name, TextLoader)


class SqliteConnection:
    """One read-only SQLite connection. Only ``interrupt`` may be called while another thread uses it."""

    def __init__(self, path: Path) -> None:
        with translate_errors():
            self._raw = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=ro",
                uri=True,
                timeout=_BUSY_S,
                check_same_thread=False,
                isolation_level=None,
            )

    def table(self, statement: str, values: tuple[object, ...]) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the result of a statement as a tuple (column names, rows)."""
        with translate_errors(), closing(self._raw.execute(statement, values)) as cursor:
            return [column[0] for column in cursor.description], cursor.fetchall()

    def stream(self, statement: str, values: tuple[object, ...]) -> Generator[tuple[Any, ...], None, None]:
        with translate_errors(), closing(self._raw.execute(statement, values)) as cursor:
            yield from cursor

    def run(self, statement: str) -> None:
        with translate_errors():
            self._raw.execute(statement)

    def interrupt(self) -> None:
        with suppress(sqlite3.Error):
            self._raw.interrupt()

    def close(self) -> None:
        self._raw.close()


@contextmanager
def translate_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        message = one_line(error)
        if message == "interrupted":
            raise SqlError("took longer than its time-out allows") from None
        lost = message.startswith(("unable to open", "disk I/O", "database is locked"))
        raise SqlError(message, is_connection_lost=lost) from None
    except sqlite3.Error as error:
        lost = isinstance(error, sqlite3.DatabaseError)
        raise SqlError(one_line(error), is_connection_lost=lost) from None
