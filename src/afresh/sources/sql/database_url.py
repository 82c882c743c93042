"""Addresses of databases. Error messages never show passwords.

``sqlite:PATH``, ``postgresql://…`` and ``duckdb:PATH`` are opened by the libraries of these databases, all
other addresses (``mysql+pymysql://…``) by SQLAlchemy."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from afresh.sources.secrets import Resolver, Secret, resolve
from afresh.values.errors import UsageError

POSTGRES = ("postgresql://", "postgres://")
_SQLITE, _DUCKDB = "sqlite:", "duckdb:"
_SQLALCHEMY = re.compile(r"(?!https?:|ftp:|file:)[a-z][a-z0-9_+.]*://.*", re.DOTALL)
_EXTRAS = {"postgresql": "psycopg", "duckdb": "duckdb", "sqlalchemy": "sqlalchemy"}
_NAMES = {"postgresql": "PostgreSQL", "duckdb": "DuckDB", "sqlalchemy": "this database"}

DatabaseKind: TypeAlias = Literal["sqlite", "postgresql", "duckdb", "sqlalchemy"]
"""The library that opens a database."""


def database_kind(url: str) -> DatabaseKind | None:
    """Return which library opens the database of an address, or None if it is not an address.

    >>> [database_kind(url) for url in ("sqlite:a.db", "duckdb:a.db", "mysql+pymysql://u@h/d", "a.db")]
    ['sqlite', 'duckdb', 'sqlalchemy', None]
    """
    if url.startswith(POSTGRES):
        return "postgresql"
    if url.startswith((_SQLITE, _DUCKDB)):
        kind, _, path = url.partition(":")
        return ("sqlite" if kind == "sqlite" else "duckdb") if path else None
    return "sqlalchemy" if _SQLALCHEMY.fullmatch(url) else None


def check_address(url: str, *, any_database: bool = False) -> None:
    """Raise ``UsageError`` if ``url`` is not a database address. The error hides it, as it may be secret.
    Without ``any_database``, only SQLite and PostgreSQL are accepted.

    >>> check_address("mysql://localhost", any_database=True)
    >>> check_address("mysql://localhost")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: url: no database: write sqlite:PATH, postgresql://… or env:NAME
    """
    kind = database_kind(url)
    known = ("sqlite", "postgresql", *(("duckdb", "sqlalchemy") if any_database else ()))
    if kind not in known and not url.startswith("env:"):
        more = " duckdb:PATH, an address of SQLAlchemy such as mysql+pymysql://…" if any_database else ""
        words = f"sqlite:PATH, postgresql://…{',' if more else ''}{more}"
        raise UsageError(f"url: no database: write {words} or env:NAME")


def resolve_address(source: str, url: str, resolver: Resolver, *, any_database: bool = False) -> Secret:
    """Return the database address of a source. ``env:NAME`` is replaced by the value of that variable."""
    found = resolve(f"source {source!r}, url", url, resolver)
    text = found.reveal()
    if text.startswith("env:"):
        raise UsageError(f"source {source!r}, url: the variable holds another name: give the address itself")
    check_address(text, any_database=any_database)
    return found


def check_library(source: str, kind: DatabaseKind = "postgresql") -> None:
    """Raise ``UsageError`` if the library that opens databases of this kind is not installed.

    >>> check_library("stock")
    """
    if kind in _EXTRAS and find_spec(_EXTRAS[kind]) is None:
        extra = "postgres" if kind == "postgresql" else kind
        raise UsageError(f"source {source!r}: {_NAMES[kind]} needs more: pip install 'afresh[{extra}]'")


def open_any_address(source: str, url: str, resolver: Resolver) -> tuple[Secret, DatabaseKind]:
    """Return a tuple (address, kind) for a database of any kind. Raise ``UsageError`` if the library that
    opens it is not installed."""
    address = resolve_address(source, url, resolver, any_database=True)
    kind = database_kind(address.reveal())
    assert kind is not None
    check_library(source, kind)
    return address, kind


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


def duckdb_path(url: str) -> Path:
    """Return the file of a ``duckdb:`` address, which may be written as for SQLAlchemy.

    >>> duckdb_path("duckdb:house.duckdb"), duckdb_path("duckdb:////srv/house.duckdb")
    (PosixPath('house.duckdb'), PosixPath('/srv/house.duckdb'))
    """
    return Path(url.removeprefix(_DUCKDB).removeprefix("///"))


def passwords(address: Secret) -> list[Secret]:
    """Return the whole address and its password as secrets, because messages must show neither of them."""
    try:
        password = urlsplit(address.reveal()).password
    except ValueError:
        password = None
    return [address, *([Secret(password)] if password else [])]
