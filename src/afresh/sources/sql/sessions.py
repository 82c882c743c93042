"""The SQL statements of the ``sql`` source, for SQLite and for PostgreSQL.

The query of the settings is used as a subquery, without changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from afresh.sources.secrets import Secret
from afresh.sources.sql.connections import (
    KeyedRecord,
    PostgresConnection,
    SqliteConnection,
    keyed_records,
)
from afresh.sources.sql.errors import SqlError
from afresh.sources.sql.settings import SqlSettings
from afresh.values.storable_text import is_storable, replace_unstorable

_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class KeyListing:
    """The keys that a query lists. ``marks`` holds the cursor value of each key. ``keyless`` is the number of
    rows without a key, ``refused`` of rows whose key is not text that can be stored (a BLOB, or text with NUL
    or invalid UTF-8). ``cut`` is True if the query has more rows than were read. ``cells`` has the further
    columns of each key, if there are any."""

    marks: dict[str, str]
    keyless: int
    cut: bool
    refused: int = 0
    cells: dict[str, Sequence[object]] = field(default_factory=dict)


def quote_identifier(name: str) -> str:
    """Return the name of a column or table as an SQL identifier.

    >>> quote_identifier('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def row_limit(keys: list[str]) -> int:
    """Return how many rows to read for these keys: more than one each, to detect keys that are not unique."""
    return 2 * len(keys) + 1


def gather_keys(rows: Iterable[Sequence[object]], most: int) -> KeyListing:
    """Collect tuples (key, cursor value, further cells …) from the first ``most`` of the ``rows``.

    >>> gather_keys([("a", "1"), (None, "2"), (b"blob", "3"), ("b", None)], 3)
    KeyListing(marks={'a': '1'}, keyless=1, cut=True, refused=1, cells={})
    """
    marks: dict[str, str] = {}
    cells: dict[str, Sequence[object]] = {}
    keyless = refused = 0
    for read, (key, mark, *further) in enumerate(rows):
        if read == most:
            return KeyListing(marks, keyless, cut=True, refused=refused, cells=cells)
        if key is None or key == "":
            keyless += 1
        elif not isinstance(key, str) or not is_storable(key):
            refused += 1
        else:
            marks[key] = replace_unstorable(str(mark)) if mark else ""
            if further:
                cells[key] = further
    return KeyListing(marks, keyless, cut=False, refused=refused, cells=cells)


def check_columns(names: list[str], settings: SqlSettings) -> None:
    """Raise ``SqlError`` if the query lacks a column that a setting names, or has two columns of one name."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SqlError(f"query: gives two columns {twice!r}: rename one with AS")
    wanted = [("key", settings.key), ("cursor", settings.cursor)]
    wanted += [("weight, rate", name) for name in settings.numbers.columns]
    for setting, name in (*wanted, *(("ignore_columns", name) for name in settings.ignore_columns)):
        if name and name not in names:
            raise SqlError(f"{setting}: the query has no column {name!r}, only {', '.join(names)}")


def _further_columns(settings: SqlSettings) -> str:
    return "".join(f", q.{quote_identifier(name)}" for name in settings.numbers.columns)


class SqliteSession(SqliteConnection):
    """A SQLite connection with the statements of the source. All methods may raise ``SqlError``. Other
    programs may write to the file at the same time."""

    def __init__(self, path: Path, settings: SqlSettings) -> None:
        super().__init__(path)
        self._settings = settings
        self._key, self._cursor = quote_identifier(settings.key), quote_identifier(settings.cursor)
        self._from = f"FROM (\n{settings.select}\n) AS q"
        # Text that is not UTF-8 must not make a whole row unreadable.
        self._raw.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        try:
            self.run("PRAGMA query_only = 1")
            check_columns(self.table(f"SELECT q.* {self._from} LIMIT 0", ())[0], settings)
        except SqlError:
            self.close()
            raise

    def rows(self, keys: list[str]) -> list[KeyedRecord]:
        """Return the rows with these keys, in any sequence, at most ``row_limit(keys)`` rows. Keys are
        compared as texts and, if they look like numbers, as numbers too, because SQLite columns may hold
        both."""
        values = (*keys, *(_as_number(key) for key in keys if _NUMBER.fullmatch(key)))
        marks = ",".join("?" * len(values))
        text = (
            f"SELECT CAST(q.{self._key} AS TEXT), q.* {self._from} "
            f"WHERE q.{self._key} IN ({marks}) LIMIT {row_limit(keys)}"
        )
        return keyed_records(self.table(text, values))

    def newest(self) -> object:
        """Return the highest value of the cursor column, or None if there is none."""
        return self.table(f"SELECT max(q.{self._cursor}) {self._from}", ())[1][0][0]

    def list_keys(self, since: object) -> KeyListing:
        """Return the keys of the rows whose cursor value is at least ``since``; of all rows if it is None."""
        settings = self._settings
        mark = f"CAST(q.{self._cursor} AS TEXT)" if settings.cursor else "''"
        # A BLOB stays one, so that it is refused: no text would find its row again.
        key = (
            f"CASE typeof(q.{self._key}) WHEN 'blob' THEN q.{self._key} ELSE CAST(q.{self._key} AS TEXT) END"
        )
        text = f"SELECT {key}, {mark}{_further_columns(settings)} {self._from}"
        if since is not None:
            text += f" WHERE q.{self._cursor} >= ?"
        values = () if since is None else (since,)
        with closing(self.stream(f"{text} LIMIT {settings.max_rows + 1}", values)) as rows:
            return gather_keys(rows, settings.max_rows)


class PostgresSession(PostgresConnection):
    """A PostgreSQL connection with the statements of the source. All methods may raise ``SqlError``. Keys are
    converted to the type of their column, so that PostgreSQL can use the column's index."""

    def __init__(self, address: Secret, settings: SqlSettings) -> None:
        super().__init__(address, timeout_s=settings.timeout, lock_s=settings.timeout, read_only=True)
        self._settings = settings
        self._key, self._cursor = quote_identifier(settings.key), quote_identifier(settings.cursor)
        # A single percent sign would be a placeholder for a value.
        self._from = f"FROM (\n{settings.select}\n) AS q".replace("%", "%%")
        try:
            self._types = self._column_types()
        except SqlError:
            self.close()
            raise

    def rows(self, keys: list[str]) -> list[KeyedRecord]:
        text = (
            f"SELECT q.{self._key}::text, q.* {self._from} "
            f"WHERE q.{self._key} = ANY (%s::text[]::{self._types[self._settings.key]}[]) "
            f"LIMIT {row_limit(keys)}"
        )
        return keyed_records(self.table(text, (keys,)))

    def newest(self) -> object:
        return self.query(f"SELECT max(q.{self._cursor})::text {self._from}")[0][0]

    def list_keys(self, since: object) -> KeyListing:
        settings = self._settings
        mark = f"q.{self._cursor}::text" if settings.cursor else "''"
        further = _further_columns(settings).replace("%", "%%")
        text = f"SELECT q.{self._key}::text, {mark}{further} {self._from}"
        if since is not None:
            text += f" WHERE q.{self._cursor} >= %s::text::{self._types[settings.cursor]}"
        values = () if since is None else (since,)
        return gather_keys(self.stream(f"{text} LIMIT {settings.max_rows + 1}", values), settings.max_rows)

    def _column_types(self) -> dict[str, str]:
        found = self.columns(f"SELECT q.* {self._from} LIMIT 0")
        check_columns([name for name, _ in found], self._settings)
        wanted = [(name, code) for name, code in found if name in (self._settings.key, self._settings.cursor)]
        types = self.query(
            "SELECT format_type(oid, NULL) FROM unnest(%s::oid[]) WITH ORDINALITY AS t (oid, at) ORDER BY at",
            ([code for _, code in wanted],),
        )
        return {name: kind[0] for (name, _), kind in zip(wanted, types, strict=True)}


class SqlSession(Protocol):
    """What the source needs from a database. All methods may raise ``SqlError``."""

    def rows(self, keys: list[str]) -> list[KeyedRecord]: ...
    def newest(self) -> object: ...
    def list_keys(self, since: object) -> KeyListing: ...
    def interrupt(self) -> None: ...
    def close(self) -> None: ...


def _as_number(key: str) -> float:
    try:
        number = int(key)
    except ValueError:
        return float(key)
    return number if -(2**63) <= number < 2**63 else float(key)
