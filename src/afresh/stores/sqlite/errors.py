"""Translates errors of SQLite into errors of afresh, which name the file, the problem and a remedy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from afresh.values.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreMissingError,
    StoreReadOnlyError,
)

_LOCKED = "is locked by another process: try again when that one is done"
READ_ONLY = "may be read but not written: check the rights of the file and of its folder"
_FULL = "has no space left to grow: free some on its disk (or raise the quota) and go on"
_DAMAGED = "is damaged: restore a backup, or see what `check` finds"
_NO_MEMORY = "cannot be used for lack of memory: end other programs, or give this one more"
_OTHER_FILE = "is not a store of afresh, nor any SQLite database"
_CANNOT_OPEN = "cannot be opened: check that its folder exists and may be written"

_PRIMARY: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (StoreLockedError, _LOCKED),
    sqlite3.SQLITE_LOCKED: (StoreLockedError, _LOCKED),
    sqlite3.SQLITE_PROTOCOL: (StoreLockedError, _LOCKED),  # other processes began and ended all the time
    sqlite3.SQLITE_READONLY: (StoreReadOnlyError, READ_ONLY),
    sqlite3.SQLITE_PERM: (StoreReadOnlyError, READ_ONLY),
    sqlite3.SQLITE_FULL: (StoreFullError, _FULL),
    sqlite3.SQLITE_CORRUPT: (StoreCorruptError, _DAMAGED),
    sqlite3.SQLITE_NOTADB: (StoreCorruptError, _OTHER_FILE),
    sqlite3.SQLITE_CANTOPEN: (StoreMissingError, _CANNOT_OPEN),
}
# SQLite reports a quota or a limit on file sizes as a failed write, not as a full disk.
_EXTENDED: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_IOERR_WRITE: (StoreFullError, _FULL),
    sqlite3.SQLITE_IOERR_SHMSIZE: (StoreFullError, _FULL),
    sqlite3.SQLITE_IOERR_SHORT_READ: (StoreCorruptError, _DAMAGED),
}


def translate_error(error: sqlite3.Error, path: Path) -> StoreError:
    # Errors of Python's sqlite3 itself (a closed connection, a value too large) have no code.
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return StoreError(f"{path}: {error}")
    kind, text = _EXTENDED.get(code) or _PRIMARY.get(code & 0xFF) or (StoreError, f"failed: {error}")
    return kind(f"{path} {text}")


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise translate_error(error, path) from error
    except MemoryError as error:  # this is how Python reports SQLITE_NOMEM
        raise StoreError(f"{path} {_NO_MEMORY}") from error
