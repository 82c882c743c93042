"""Functions that parser processes call in tests: they take too much of everything, or end their process."""

from __future__ import annotations

import os
import signal


def describe(data: bytes, *more: object) -> tuple[int, bool, tuple[object, ...]]:
    """Return the size of the data, whether this is a process without secrets in its environment, and more."""
    return len(data), "PATH" not in os.environ, more


def spin(_data: bytes) -> None:
    while True:
        pass


def hoard(_data: bytes) -> None:
    kept = []
    while True:
        kept.append(bytes(1_000_000))


def crash(_data: bytes) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def refuse(data: bytes) -> None:
    raise KeyError(len(data))


def print_much(data: bytes) -> int:
    os.write(1, b"noise of a library\n" * 10)
    return len(data)
