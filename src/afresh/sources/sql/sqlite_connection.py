"""A read-only connection to the SQLite database of somebody else; errors become ``SqlError``."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from afresh.sources.sql.errors import SqlError, one_line

_BUSY_S = 5.0


class SqliteConnection:
    """One connection, used by one thread at a time, except ``interrupt``; others may write meanwhile."""

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
        """Return the names of the columns, and all rows."""
        with translate_errors(), closing(self._raw.execute(statement, values)) as cursor:
            return [column[0] for column in cursor.description], cursor.fetchall()

    def stream(self, statement: str, values: tuple[object, ...]) -> Generator[tuple[Any, ...], None, None]:
        """Yield the rows one by one."""
        with translate_errors(), closing(self._raw.execute(statement, values)) as cursor:
            yield from cursor

    def run(self, statement: str) -> None:
        """Run a statement that gives no rows."""
        with translate_errors():
            self._raw.execute(statement)

    def interrupt(self) -> None:
        """End the statement under way."""
        with suppress(sqlite3.Error):
            self._raw.interrupt()

    def close(self) -> None:
        """Close the connection."""
        self._raw.close()


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise errors of SQLite as ``SqlError``."""
    try:
        yield
    except sqlite3.OperationalError as error:
        message = one_line(str(error))
        if message == "interrupted":
            raise SqlError("took longer than its time-out allows") from None
        lost = message.startswith(("unable to open", "disk I/O", "database is locked"))
        raise SqlError(message, is_connection_lost=lost) from None
    except sqlite3.Error as error:
        lost = isinstance(error, sqlite3.DatabaseError)
        raise SqlError(one_line(str(error)), is_connection_lost=lost) from None
