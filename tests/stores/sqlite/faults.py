"""Lets one call of SQLite, or one operation of SQLite on its files, fail once: the n-th that is made.

``failing_calls`` fails calls of Python's ``sqlite3``, before SQLite hears of them. ``failing_files`` fails
operations of SQLite itself on its database, log and shared memory, as a broken or full disk does: it stands
between SQLite and the operating system (https://sqlite.org/vfs.html).
"""

from __future__ import annotations

import _sqlite3
import ctypes
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from typing import Any, Literal
from unittest.mock import patch

Kind = Literal["io", "memory", "full"]
KINDS: tuple[Kind, ...] = ("io", "memory", "full")

_CODES = {"io": sqlite3.SQLITE_IOERR_READ, "memory": sqlite3.SQLITE_NOMEM, "full": sqlite3.SQLITE_FULL}
_WORDS = {"io": "disk I/O error", "memory": "out of memory", "full": "database or disk is full"}


class Faults:
    """Counts calls; the call number ``at`` (the first is 0) fails, all others do not. ``names`` says what was
    called."""

    def __init__(self, at: int | None = None, kind: Kind = "io") -> None:
        self.at, self.kind, self.is_counting = at, kind, True
        self.names: list[str] = []

    @property
    def has_failed(self) -> bool:
        return self.at is not None and self.at < len(self.names)

    def is_next(self, name: str) -> bool:
        """Count a call, and return whether it must fail."""
        if not self.is_counting:
            return False
        self.names.append(name)
        return self.at == len(self.names) - 1

    def check(self, name: str) -> None:
        """Raise what Python raises if SQLite reports this kind of error."""
        if not self.is_next(name):
            return
        if self.kind == "memory":
            raise MemoryError
        error = sqlite3.OperationalError(_WORDS[self.kind])
        error.sqlite_errorcode = _CODES[self.kind]
        raise error


@contextmanager
def failing_calls(faults: Faults) -> Iterator[None]:
    """Connections that are opened meanwhile ask ``faults`` before each call."""

    class FaultyCursor(sqlite3.Cursor):
        def fetchall(self) -> list[Any]:
            faults.check("fetchall")
            return super().fetchall()

        def fetchone(self) -> Any:
            faults.check("fetchone")
            return super().fetchone()

    class FaultyConnection(sqlite3.Connection):
        def cursor(self, _factory: object = None) -> sqlite3.Cursor:  # type: ignore[override]
            return super().cursor(FaultyCursor)

        def execute(self, sql: str, given: Any = (), /) -> sqlite3.Cursor:
            faults.check(sql)
            return super().execute(sql, given)

        def executemany(self, sql: str, given: Any, /) -> sqlite3.Cursor:
            faults.check(sql)
            return super().executemany(sql, given)

        def executescript(self, script: str, /) -> sqlite3.Cursor:
            faults.check(script)
            return super().executescript(script)

    original = sqlite3.connect

    def connect(*words: Any, **named: Any) -> sqlite3.Connection:
        faults.check("connect")
        return original(*words, **named, factory=FaultyConnection)

    with patch.object(sqlite3, "connect", connect):
        yield


class _Vfs(Structure):
    """The beginning of ``sqlite3_vfs``; the rest is copied as it is."""

    _fields_ = (
        ("version", c_int),
        ("file_size", c_int),
        ("longest_path", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", c_void_p),
        ("rest", c_void_p * 17),
    )


_METHODS = (
    *("close", "read", "write", "truncate", "sync", "size", "lock", "unlock", "reserved", "control"),
    *("sector", "device", "shm_map", "shm_lock", "shm_barrier", "shm_unmap", "fetch", "unfetch"),
)


class _Methods(Structure):
    """``sqlite3_io_methods``."""

    _fields_ = (
        ("version", c_int),
        *((name, c_void_p) for name in _METHODS),
    )


class _File(Structure):
    _fields_ = (("methods", POINTER(_Methods)),)


# The name is passed as it is: SQLite keeps the pointer, and finds options behind the name.
_OPEN = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(_File), c_int, c_void_p)
# Operations by name: their types, and the code of their I/O error.
_OPERATIONS: dict[str, tuple[Any, int]] = {
    "read": (ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64), sqlite3.SQLITE_IOERR_READ),
    "write": (ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64), sqlite3.SQLITE_IOERR_WRITE),
    "truncate": (ctypes.CFUNCTYPE(c_int, c_void_p, c_int64), sqlite3.SQLITE_IOERR_TRUNCATE),
    "sync": (ctypes.CFUNCTYPE(c_int, c_void_p, c_int), sqlite3.SQLITE_IOERR_FSYNC),
    "size": (ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p), sqlite3.SQLITE_IOERR_FSTAT),
    "shm_map": (
        ctypes.CFUNCTYPE(c_int, c_void_p, c_int, c_int, c_int, c_void_p),
        sqlite3.SQLITE_IOERR_SHMMAP,
    ),
}
_KEPT: list[object] = []  # SQLite calls these functions as long as the process lives


@contextmanager
def failing_files(faults: Faults) -> Iterator[None]:
    """Files that SQLite opens meanwhile ask ``faults`` before each operation."""
    # The library that Python itself uses, whatever it is linked with.
    library = ctypes.CDLL(_sqlite3.__file__)
    library.sqlite3_vfs_find.restype = POINTER(_Vfs)
    plain = library.sqlite3_vfs_find(None)
    ours = _Vfs.from_buffer_copy(plain.contents)
    original_open = _OPEN(plain.contents.open)
    methods: dict[int, _Methods] = {}

    def open_file(_vfs: int, name: int | None, file: Any, flags: int, out: int) -> int:
        result: int = original_open(ctypes.cast(plain, c_void_p), name, file, flags, out)
        if result == sqlite3.SQLITE_OK and file.contents.methods:
            place = ctypes.addressof(file.contents.methods.contents)
            if place not in methods:
                methods[place] = _faulty_methods(file.contents.methods.contents, faults)
            file.contents.methods = ctypes.pointer(methods[place])
        return result

    callback = _OPEN(open_file)
    ours.open, ours.name = ctypes.cast(callback, c_void_p), b"faulty%d" % len(_KEPT)
    _KEPT.extend([ours, callback, methods])
    library.sqlite3_vfs_register(ctypes.byref(ours), 1)
    try:
        yield
    finally:
        library.sqlite3_vfs_register(plain, 1)
        library.sqlite3_vfs_unregister(ctypes.byref(ours))


def _faulty_methods(plain: _Methods, faults: Faults) -> _Methods:
    made = _Methods.from_buffer_copy(plain)
    for name, (kind, io_code) in _OPERATIONS.items():
        place = getattr(plain, name)
        if place:
            callback = kind(_failing(kind(place), name, io_code, faults))
            _KEPT.append(callback)
            setattr(made, name, ctypes.cast(callback, c_void_p))
    return made


def _failing(original: Callable[..., int], name: str, io_code: int, faults: Faults) -> Callable[..., int]:
    codes = {"io": io_code, "memory": sqlite3.SQLITE_IOERR_NOMEM, "full": sqlite3.SQLITE_FULL}

    def operation(*given: Any) -> int:
        return codes[faults.kind] if faults.is_next(name) else original(*given)

    return operation
