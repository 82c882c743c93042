"""A store from its address: ``memory:``, ``sqlite:PATH``, or a path alone."""

from __future__ import annotations

from pathlib import Path

from afresh.stores.memory.store import MemoryStore
from afresh.stores.sqlite.store import SqliteStore
from afresh.stores.store import Retention, Store
from afresh.values.errors import UsageError


def open_store(
    url: str,
    *,
    base: Path = Path(),
    create: bool = True,
    read_only: bool = False,
    timeout_s: float = 5.0,
    retention: Retention | None = None,
) -> Store:
    """Open the store at ``url``; a relative path starts from ``base``.

    >>> with open_store("memory:") as store:
    ...     store.items.counts()
    []
    >>> open_store("mysql://user:secret@example.org/store")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: unknown kind of store 'mysql': use sqlite:PATH or memory:
    """
    scheme, colon, rest = url.partition(":")
    if not colon:
        scheme, rest = "sqlite", url
    if scheme == "memory" and not rest:
        return MemoryStore(retention=retention)
    # sqlite:///path is how others write an absolute path.
    path = rest.removeprefix("//")
    if scheme != "sqlite" or not path:
        # The rest may hold a password: say nothing of it.
        raise UsageError(f"unknown kind of store {scheme!r}: use sqlite:PATH or memory:")
    return SqliteStore(
        base / path, create=create, read_only=read_only, timeout_s=timeout_s, retention=retention
    )
