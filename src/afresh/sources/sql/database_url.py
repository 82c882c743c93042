"""Addresses of databases, ``sqlite:PATH`` and ``postgresql://…``. Error messages never show passwords."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from afresh.sources.secrets import Resolver, Secret, resolve
from afresh.values.errors import UsageError

POSTGRES = ("postgresql://", "postgres://")
_SQLITE = "sqlite:"


def check_address(url: str) -> None:
    """Raise ``UsageError`` if ``url`` is not a database address. The error hides it, as it may be secret.

    >>> check_address("mysql://localhost")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: url: no database: write sqlite:PATH, postgresql://… or env:NAME
    """
    if not url.startswith((_SQLITE, *POSTGRES, "env:")) or url == _SQLITE:
        raise UsageError("url: no database: write sqlite:PATH, postgresql://… or env:NAME")


def resolve_address(source: str, url: str, resolver: Resolver) -> Secret:
    """Return the database address of a source. ``env:NAME`` is replaced by the value of that variable."""
    found = resolve(f"source {source!r}, url", url, resolver)
    text = found.reveal()
    if text.startswith("env:"):
        raise UsageError(f"source {source!r}, url: the variable holds another name: give the address itself")
    check_address(text)
    return found


def check_library(source: str) -> None:
    """Raise ``UsageError`` if the client library of PostgreSQL is not installed.

    >>> check_library("stock")
    """
    if find_spec("psycopg") is None:
        raise UsageError(f"source {source!r}: PostgreSQL needs more: pip install 'afresh[postgres]'")


def usable_address(source: str, url: str, resolver: Resolver) -> tuple[Secret, Path | None]:
    """Return a tuple (address, path of the SQLite file). The path is None for PostgreSQL. Raise
    ``UsageError`` if the client library of PostgreSQL is needed but not installed."""
    address = resolve_address(source, url, resolver)
    path = sqlite_path(address.reveal())
    if path is None:
        check_library(source)
    return address, path


def sqlite_path(url: str) -> Path | None:
    """Return the file of a ``sqlite:`` address, or None for other databases.

    >>> sqlite_path("sqlite:stock.db"), sqlite_path("postgresql://localhost/x")
    (PosixPath('stock.db'), None)
    """
    return Path(url.removeprefix(_SQLITE)) if url.startswith(_SQLITE) else None


def passwords(address: Secret) -> list[Secret]:
    """Return the whole address and its password as secrets, because messages must show neither of them."""
    try:
        password = urlsplit(address.reveal()).password
    except ValueError:
        password = None
    return [address, *([Secret(password)] if password else [])]
