"""Lets one step of writing files fail once: opening, writing, closing, syncing or renaming, the n-th made."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Self
from unittest.mock import patch

ERRORS = (errno.EIO, errno.ENOMEM, errno.ENOSPC)


class WriteFaults:
    """Counts steps; the step number ``at`` (the first is 0) fails with ``code``. ``steps`` names them."""

    def __init__(self, at: int | None = None, code: int = errno.EIO) -> None:
        self.at, self.code, self.steps = at, code, list[str]()

    def check(self, step: str) -> None:
        self.steps.append(step)
        if self.at == len(self.steps) - 1:
            raise OSError(self.code, os.strerror(self.code))


class _FaultyFile:
    """A file that is written through ``faults``; also a failed close closes it, as the system does."""

    def __init__(self, file: Any, faults: WriteFaults) -> None:
        self._file, self._faults = file, faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def write(self, data: Any) -> Any:
        self._faults.check("write")
        return self._file.write(data)

    def close(self) -> None:
        is_open = not self._file.closed
        self._file.close()
        if is_open:
            self._faults.check("close")


@contextmanager
def failing_writes(faults: WriteFaults) -> Iterator[None]:
    """Files that are opened for writing meanwhile, and whatever is synced and renamed, ask ``faults``."""
    plain_open = io.open

    def open_file(place: Any, mode: str = "r", *words: Any, **named: Any) -> Any:
        if not set(mode) & set("wxa"):
            return plain_open(place, mode, *words, **named)
        faults.check("open")
        return _FaultyFile(plain_open(place, mode, *words, **named), faults)

    def checked(step: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def work(*words: Any, **named: Any) -> Any:
            faults.check(step)
            return call(*words, **named)

        return work

    with ExitStack() as stack:
        stack.enter_context(patch.object(io, "open", open_file))
        for step in ("fsync", "replace", "mkdir"):
            stack.enter_context(patch.object(os, step, checked(step, getattr(os, step))))
        yield
