"""Opens a store by its address: ``memory:``, ``sqlite:PATH`` or a path alone, ``postgresql://…``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

from afresh.stores.copying import PROGRESS, unfinished_copy_error
from afresh.stores.sqlite.memory_store import MemoryStore
from afresh.stores.sqlite.store import SqliteStore
from afresh.stores.store import OpenOptions, Retention, Store
from afresh.values.errors import UsageError
from afresh.values.printable_text import hide_credentials

if TYPE_CHECKING:
    from afresh.stores.postgres.store import PostgresStore


class CopiesPlace(NamedTuple):
    """Where new copies are kept: an address such as ``s3://bucket/prefix``, or "" for the database; and for
    how many seconds an object stays that no version uses any more."""

    address: str
    grace_s: float


def open_store(
    url: str,
    *,
    base: Path = Path(),
    retention: Retention | None = None,
    copies: CopiesPlace | None = None,
    **options: Unpack[OpenOptions],
) -> Store:
    """Open the store at ``url``. The path of a SQLite file is relative to the folder ``base``. New copies
    are kept in the database, or in ``copies``. Raise ``InputError`` for an unfinished copy.

    >>> with open_store("memory:") as store:
    ...     store.items.counts()
    []
    >>> open_store("mysql://user:secret@example.org/store")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: unknown kind of store 'mysql': use sqlite:PATH, postgresql://… or memory:
    """
    store = _open(url, base, retention, **options)
    try:
        problem = unfinished_copy_error(store.state.get(PROGRESS), hide_credentials(url))
        if problem is not None:
            raise problem
        if copies is not None and copies.address:
            from afresh.stores.object_copies import ObjectCopies

            store.keep_copies_in(ObjectCopies(copies.address, base=base, grace_s=copies.grace_s))
    except BaseException:
        store.close()
        raise
    return store


def open_for_copying(url: str, *, base: Path = Path(), create: bool = True) -> SqliteStore | PostgresStore:
    """Open a store to copy from it or to it. Unlike ``open_store``, this also opens an unfinished copy."""
    store = _open(url, base, None, create=create, timeout_s=60.0)
    if isinstance(store, MemoryStore):
        raise UsageError("a store in memory cannot be copied: give a file or a database")
    return store


def _open(
    url: str, base: Path, retention: Retention | None, **options: Unpack[OpenOptions]
) -> MemoryStore | SqliteStore | PostgresStore:
    scheme, colon, rest = url.partition(":")
    if not colon:
        scheme, rest = "sqlite", url
    if scheme == "memory" and not rest:
        return MemoryStore(retention=retention)
    if scheme in ("postgresql", "postgres"):
        try:
            from afresh.stores.postgres.store import PostgresStore
        except ImportError as error:
            words = f"a store in PostgreSQL needs 'pip install afresh[postgres]' ({error})"
            raise UsageError(words) from error
        return PostgresStore(url, retention=retention, **options)
    # Other programs write an absolute path as sqlite:///path.
    path = rest.removeprefix("//")
    if scheme != "sqlite" or not path:
        # The rest of the address may contain a password, so it is not shown.
        raise UsageError(f"unknown kind of store {scheme!r}: use sqlite:PATH, postgresql://… or memory:")
    return SqliteStore(base / path, retention=retention, **options)
