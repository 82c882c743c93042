"""A connection to any database that SQLAlchemy reaches. It raises ``SqlError``.

MySQL and MariaDB sessions are read-only, and the server ends statements after their time-out. Of other
databases nothing is known: give a role that may only read. A DuckDB file is open only during a statement,
because DuckDB lets no process write a file that another one has open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from afresh.sources.secrets import Secret, redactor
from afresh.sources.sql.database_url import database_kind, duckdb_path, passwords
from afresh.sources.sql.errors import SqlError
from afresh.values.formatting import one_line

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Executable

_MYSQL = ("mysql", "mariadb")


class SqlalchemyConnection:
    """One connection, which is opened at the first statement. Only ``interrupt`` may be called while another
    thread uses it. A statement fails after ``timeout_s`` seconds if the database can end it."""

    def __init__(self, address: Secret, *, timeout_s: float) -> None:
        self._hide = redactor(passwords(address))
        self._timeout_s = timeout_s
        self._raw: Connection | None = None
        self._engine = self._create_engine(address.reveal())
        self._stays_open = self._engine.dialect.name != "duckdb"

    def table(
        self, statement: str | Executable, values: Mapping[str, object] | None = None
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the result of a statement as a tuple (column names, rows). A text is sent as it is."""
        with self._running() as raw:
            if isinstance(statement, str):
                result = raw.exec_driver_sql(
                    statement.replace("%", "%%") if self._uses_percent else statement
                )
            else:
                result = raw.execute(statement, dict(values or {}))
            return list(result.keys()), [tuple(row) for row in result]

    def stream(
        self, statement: Executable, values: Mapping[str, object] | None = None
    ) -> Iterator[tuple[Any, ...]]:
        with self._running() as raw:
            options = {"stream_results": True, "max_row_buffer": 1000}
            result = raw.execution_options(**options).execute(statement, dict(values or {}))
            for row in result:
                yield tuple(row)

    def interrupt(self) -> None:
        """Cancel the running statement, if the driver of the database has a function for it."""
        raw = self._raw
        if raw is None:
            return
        with suppress(Exception):  # any driver may raise anything, and the statement may have ended
            driver: Any = raw.connection.driver_connection
            cancel: Callable[[], object] = getattr(driver, "interrupt", None) or driver.cancel
            cancel()

    def close(self) -> None:
        raw, self._raw = self._raw, None
        with suppress(Exception):  # a broken connection cannot be closed properly
            if raw is not None:
                raw.close()
        self._engine.dispose()

    @property
    def _uses_percent(self) -> bool:
        """Whether the driver takes a percent sign for the beginning of a placeholder."""
        return self._engine.dialect.paramstyle in ("format", "pyformat")

    def _create_engine(self, url: str) -> Engine:
        from sqlalchemy import create_engine
        from sqlalchemy.exc import ArgumentError, NoSuchModuleError
        from sqlalchemy.pool import NullPool

        if database_kind(url) == "duckdb":
            url = f"duckdb:///{duckdb_path(url)}"
        options = {"connect_args": {"read_only": True}} if url.startswith("duckdb") else {}
        try:
            return create_engine(url, poolclass=NullPool, **options)
        except NoSuchModuleError:
            scheme = url.partition(":")[0]
            raise SqlError(f"SQLAlchemy does not know {scheme}://: install its dialect") from None
        except ImportError as error:
            raise SqlError(f"the driver of the database is not installed: {error}") from None
        except ArgumentError as error:
            raise SqlError(f"url: {one_line(self._hide(str(error)))}") from None

    @contextmanager
    def _running(self) -> Iterator[Connection]:
        from sqlalchemy.exc import SQLAlchemyError

        try:
            raw = self._raw = self._raw or self._connect()
            with raw.begin():
                yield raw
        except SQLAlchemyError as error:
            raise self._translated(error) from None
        finally:
            if not self._stays_open and self._raw is not None:
                self._raw.close()
                self._raw = None

    def _connect(self) -> Connection:
        raw = self._engine.connect()
        if self._engine.dialect.name in _MYSQL:
            is_mariadb = bool(getattr(self._engine.dialect, "is_mariadb", False))
            limit = (
                f"max_statement_time = {max(self._timeout_s, 0.001):.3f}"
                if is_mariadb
                else f"max_execution_time = {max(round(self._timeout_s * 1000), 1)}"
            )
            raw.exec_driver_sql(f"SET SESSION {limit}")
            raw.exec_driver_sql("SET SESSION TRANSACTION READ ONLY")
            raw.exec_driver_sql("SET SESSION time_zone = '+00:00'")
            raw.commit()
        return raw

    def _translated(self, error: Exception) -> SqlError:
        from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError

        # The text of SQLAlchemy adds the statement and a link; the driver's own says what is wrong.
        said = one_line(self._hide(str(error.orig if isinstance(error, DBAPIError) else error)))
        was_open = self._raw is not None
        is_lost = isinstance(error, DisconnectionError | InterfaceError) or (
            isinstance(error, DBAPIError) and error.connection_invalidated
        )
        is_lost = is_lost or (not was_open and isinstance(error, OperationalError))
        return SqlError(f"no connection: {said}" if not was_open else said, is_connection_lost=is_lost)
