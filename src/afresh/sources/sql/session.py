"""One connection to a database, as the ``sql`` source uses it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from afresh.sources.sql.errors import SqlError
from afresh.sources.sql.settings import SqlSettings


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the query: its key as text, and its columns by name."""

    key: str
    columns: tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class KeyListing:
    """Keys and what the cursor says of each; ``keyless`` rows had none. ``cut``: there were more."""

    marks: dict[str, str]
    keyless: int
    cut: bool


class SqlSession(Protocol):
    """Used by one thread at a time, but for ``interrupt``; every method may raise ``SqlError``."""

    def rows(self, keys: list[str]) -> list[Row]:
        """The rows with these keys, in any order; one more than twice as many at most."""

    def newest(self) -> object:
        """The highest value of the cursor, None where there is none; to be handed to ``listed``."""

    def listed(self, since: object) -> KeyListing:
        """All rows, or those whose cursor is ``since`` or higher."""

    def interrupt(self) -> None:
        """End the statement under way, which then raises; from any thread, and without a word."""

    def close(self) -> None:
        """Let go of the connection."""


def quoted(name: str) -> str:
    """A column's name as SQL.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def most_rows(keys: list[str]) -> int:
    """How many rows are read for so many keys: enough to see that a key is not unique."""
    return 2 * len(keys) + 1


def gather_keys(rows: Iterable[tuple[str | None, str | None]], most: int) -> KeyListing:
    """Rows of key and mark as a listing.

    >>> gather_keys([("a", "1"), (None, "2"), ("b", None)], 2)
    KeyListing(marks={'a': '1'}, keyless=1, cut=True)
    """
    marks: dict[str, str] = {}
    keyless = 0
    for read, (key, mark) in enumerate(rows):
        if read == most:
            return KeyListing(marks, keyless, cut=True)
        if key is None or key == "":
            keyless += 1
        else:
            marks[key] = mark or ""
    return KeyListing(marks, keyless, cut=False)


def check_columns(names: list[str], settings: SqlSettings) -> None:
    """Refuse a query that lacks the columns that the settings name, or has one twice."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SqlError(f"query: gives two columns {twice!r}: rename one with AS")
    for setting in ("key", "cursor"):
        name = getattr(settings, setting)
        if name and name not in names:
            raise SqlError(f"{setting}: the query has no column {name!r}, only {', '.join(names)}")
    for name in settings.ignore_columns:
        if name not in names:
            raise SqlError(f"ignore_columns: the query has no column {name!r}, only {', '.join(names)}")
