"""The file of a SQLite store: connects to it, and notices if it was deleted or replaced.

SQLite continues to write to a file that was deleted or moved, and all that it writes is lost. Therefore each
transaction first checks that the file is still in its place. If another file is there, that file is opened
instead. But if the write-ahead log of the old file is still there, an error is raised, because SQLite would
apply that log to the new file.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from afresh.values.errors import StoreMissingError, StoreReadOnlyError

# Every commit of another connection empties a reader's cache, which takes a millisecond for ten megabytes.
# The writer's cache is not emptied, so it can be larger.
WRITER_KIB, READER_KIB = 64 * 1024, 8 * 1024
CREATE = "rwc"
_IMMUTABLE = "ro&immutable=1"


class DatabaseFile:
    """The file at ``path``. Messages show ``path`` as the user wrote it."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        self.path, self._timeout_s = path, timeout_s
        self._place = path.absolute()  # because the process may change its working folder
        self.read_mode = "ro"  # the mode that the last ``connect_for_reading`` used
        self._file: tuple[int, int] | None = None  # the file that was opened, by device and inode
        self._log: tuple[int, int] | None = None
        self._stamp = (0, 0)

    @property
    def _log_path(self) -> Path:
        return self._place.with_name(self._place.name + "-wal")

    def is_readable(self) -> bool:
        try:
            with self._place.open("rb"):
                return True
        except OSError:
            return False

    def remember(self) -> None:
        """Remember which file was just opened, for ``is_in_place``."""
        self._file, self._log = _identity(self._place), _identity(self._log_path)
        if self.read_mode == _IMMUTABLE:
            self._stamp, self._log = _stamp(self._place), None

    def forget(self) -> None:
        self._file = None

    def is_in_place(self) -> bool:
        """Return whether the file at ``path`` is still the one that was opened."""
        # In immutable mode SQLite uses no locks, so it must open the file again if another process wrote it.
        if self.read_mode == _IMMUTABLE and (_stamp(self._log_path)[1] or _stamp(self._place) != self._stamp):
            return False
        return self._file is not None and _identity(self._place) == self._file

    def check_replacement(self) -> None:
        """Raise ``StoreMissingError`` if the file that is now at ``path`` cannot be opened in its place."""
        if not exists(self._place) or self._place.stat().st_size == 0:
            raise StoreMissingError(f"{self.path} was deleted or moved: put it back, or a backup of it")
        if self._log is not None and _identity(self._log_path) == self._log:
            raise StoreMissingError(
                f"{self.path} is another file, beside the log of the one before: remove "
                f"{self._log_path.name} and {self.path.name}-shm"
            )

    def connect_for_reading(self) -> sqlite3.Connection:
        """Return a connection that only reads. It also works in a folder that may not be written."""
        self.read_mode = "ro"
        try:
            connection = self.connect(self.read_mode)
            connection.execute("PRAGMA user_version").fetchone()
            return connection
        except sqlite3.OperationalError as error:
            # SQLite cannot use a log in a folder that may not be written. If the log is empty, the file has
            # all data and can be read in immutable mode, which uses no log.
            refused = primary_code(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if not refused or not self.is_readable():
                raise
            if _stamp(self._log_path)[1]:
                raise StoreReadOnlyError(
                    f"{self.path} cannot be read in a folder that may not be written, because "
                    f"{self._log_path.name} has changes that are not yet in the file: open the store once "
                    "where the folder may be written, or copy both files there"
                ) from error
        self.read_mode = _IMMUTABLE
        return self.connect(self.read_mode)

    def connect(self, mode: str, cache_kib: int = READER_KIB) -> sqlite3.Connection:
        if mode == CREATE:
            self._create()
        connection = sqlite3.connect(
            self._uri(mode),
            uri=True,
            timeout=self._timeout_s,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA cache_size = -{cache_kib}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _create(self) -> None:
        """Create the file, empty, if it does not exist. It will have copies of private pages, so only the
        user may read it and its log."""
        with suppress(OSError):  # it exists, or SQLite will say what is wrong
            os.close(os.open(self._place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def _uri(self, mode: str) -> str:
        return f"file:{quote(str(self._place))}?mode={mode}"


def exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise StoreMissingError(f"{path} cannot be looked for: {error.strerror}") from error


def primary_code(error: sqlite3.OperationalError) -> int:
    return error.sqlite_errorcode & 0xFF


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116  # before every transaction: Path.stat takes twice as long
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _stamp(path: Path) -> tuple[int, int]:
    """Return a tuple (time of the last change in nanoseconds, size in bytes) of a file; (0, 0) if missing."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
