"""A SQLite database of somebody else, opened to be read, its failures in words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from afresh.sources.sql.errors import SqlError, one_line

_BUSY_S = 5.0


def open_read_only(path: Path) -> sqlite3.Connection:
    """A connection for one thread at a time; others may write meanwhile."""
    with translate_errors():
        return sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro",
            uri=True,
            timeout=_BUSY_S,
            check_same_thread=False,
            isolation_level=None,
        )


@contextmanager
def translate_errors() -> Iterator[None]:
    """Whatever SQLite refuses, as a ``SqlError``."""
    try:
        yield
    except sqlite3.OperationalError as error:
        words = one_line(str(error))
        if words == "interrupted":
            raise SqlError("took longer than its time-out allows") from None
        lost = words.startswith(("unable to open", "disk I/O", "database is locked"))
        raise SqlError(words, lost=lost) from None
    except sqlite3.Error as error:
        raise SqlError(one_line(str(error)), lost=isinstance(error, sqlite3.DatabaseError)) from None
