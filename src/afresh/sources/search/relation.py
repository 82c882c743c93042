"""Read the local relation of a ``search`` source: keys, keywords, weights and expected rates of records.

A table is written FILE#TABLE (SQLite), postgresql://…#TABLE or env:NAME#TABLE. An error names the file, row
and column. A relation with an error is not used."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from afresh.probes.keyword_index import KeywordAttribute, KeywordIndex, index_relation
from afresh.sources.context import no_secrets
from afresh.sources.record_expression import RecordExpression, is_usable
from afresh.sources.secrets import Resolver, Secret
from afresh.sources.sql.connections import PostgresConnection
from afresh.sources.sql.database_url import POSTGRES, check_library, resolve_address
from afresh.sources.sql.errors import SqlError
from afresh.sources.sql.sessions import quote_identifier
from afresh.values.arrays import Float64s
from afresh.values.errors import InputError, UsageError, did_you_mean
from afresh.values.formatting import one_line
from afresh.values.listing import ListingEntry
from afresh.values.units import number_or_nan

_TIMEOUT_S, _LOCK_S = 60.0, 5.0
_COLUMNS = """
SELECT attname::text FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
Rows = list[tuple[Any, ...]]
_LONGEST = 1_000_000  # characters of a keyword field; a longer field is a document or has an unclosed quote


def is_postgres(place: str) -> bool:
    """Return whether the relation at ``place`` is a table of PostgreSQL.

    >>> is_postgres("postgresql://localhost/shop#papers"), is_postgres("papers.db#papers")
    (True, False)
    """
    return place.startswith((*POSTGRES, "env:"))


def display_place(place: str) -> str:
    """Return the address of a relation for messages, without parts that may be secret.

    >>> display_place("postgresql://me:secret@localhost/shop#papers"), display_place("papers.csv")
    ('table papers', 'papers.csv')
    """
    return f"table {place.rpartition('#')[2]}" if is_postgres(place) else place


def table_rows(place: str, names: Sequence[str], resolver: Resolver) -> Rows:
    address, mark, table = place.rpartition("#")
    if not mark or not table:
        raise UsageError("relation: name the table, as in postgresql://…#papers or FILE.db#papers")
    if not is_postgres(place):
        return _sqlite_rows(place, address, table, names)
    check_library("relation")
    return _postgres_rows(resolve_address("relation", address, resolver), place, table, names)


def _sqlite_rows(place: str, path: str, table: str, names: Sequence[str]) -> Rows:
    if not Path(path).is_file():
        raise InputError("does not exist", path=path)
    try:
        with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as database:
            known = [row[1] for row in database.execute(f"PRAGMA table_info({quote_identifier(table)})")]
            if not known:
                tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
                raise InputError(f"has no table {table!r}{did_you_mean(table, tables)}", path=path)
            check_names(place, names, known)
            return database.execute(f"SELECT {_list(names)} FROM {quote_identifier(table)}").fetchall()
    except sqlite3.Error as error:
        raise InputError(f"cannot be read as SQLite: {one_line(error)}", path=path) from None


def _postgres_rows(address: Secret, place: str, table: str, names: Sequence[str]) -> Rows:
    shown = display_place(place)
    of_table = ".".join(quote_identifier(part) for part in table.split("."))
    try:
        connection = PostgresConnection(address, timeout_s=_TIMEOUT_S, lock_s=_LOCK_S, read_only=True)
        with closing(connection):
            known = [row[0] for row in connection.query(_COLUMNS, (of_table,))]
            if not known:
                raise InputError("there is no such table", path=shown)
            check_names(shown, names, known)
            return connection.query(f"SELECT {_list(names)} FROM {of_table}".replace("%", "%%"))
    except SqlError as error:
        raise InputError(f"cannot be read: {error}", path=shown) from None


def check_names(path: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"has no column {name}{did_you_mean(name, known)}", path=path)


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(quote_identifier, names))


@dataclass(frozen=True, slots=True, eq=False)
class TextColumns:
    """The columns of a relation as lists of texts, by name. A missing value is an empty text."""

    path: str
    texts: dict[str, list[str]]

    def __len__(self) -> int:
        return len(next(iter(self.texts.values()), []))

    def digest(self) -> bytes:
        found = blake2b(digest_size=16)
        for column in self.texts.values():
            for text in column:
                found.update(text.encode("utf-8", "backslashreplace") + b"\x00")
        return found.digest()


@dataclass(frozen=True, slots=True, eq=False)
class LocalRelation:
    """The keys, keywords (``index``) and weights of the records. ``rows`` maps each key to its row. If a
    later reading has the same ``digest``, the relation has not changed. ``rates`` are the changes per second
    that are expected of each record before it is observed, NaN if unknown; None if of no record."""

    keys: list[str]
    index: KeywordIndex
    weights: Float64s
    rows: dict[str, int]
    digest: bytes = b""
    rates: Float64s | None = None

    def entries(self) -> tuple[ListingEntry, ...]:
        """Return the records as entries of a listing, with their expected rates."""
        if self.rates is None:
            return tuple(map(ListingEntry, self.keys))
        rates = (rate if rate > 0 else None for rate in self.rates.tolist())
        return tuple(
            ListingEntry(key, prior_rate_per_s=rate) for key, rate in zip(self.keys, rates, strict=True)
        )


def read_columns(path: str, names: Sequence[str], resolver: Resolver = no_secrets) -> TextColumns:
    """Read the columns ``names`` of a CSV, Parquet or JSONL file, or of a SQLite or PostgreSQL table."""
    if "#" in path or is_postgres(path):
        rows = table_rows(path, names, resolver)
        found = {name: [_text(row[at]) for row in rows] for at, name in enumerate(names)}
        return TextColumns(display_place(path), found)
    from afresh.tables.columns import Column
    from afresh.tables.formats import ENDINGS
    from afresh.tables.reading import read_table

    if not Path(path).is_file():
        raise InputError("does not exist", path=path)
    named = path.removesuffix(".gz").removesuffix(".zst").endswith(tuple(ENDINGS))
    table = read_table(path, [Column(name, "any") for name in names], format=None if named else "csv")
    check_names(path, names, table.given)
    return TextColumns(path, {name: table.text(name).tolist() for name in names})


def read_relation(
    path: str,
    key: str,
    attributes: Sequence[KeywordAttribute],
    weight: RecordExpression | None = None,
    rate: RecordExpression | None = None,
    *,
    scoped: bool,
    resolver: Resolver = no_secrets,
    adopted: Mapping[str, Mapping[str, str]] | None = None,
) -> LocalRelation:
    """Read the relation. Check that keys are unique, keywords exist, and weights are numbers. ``key`` is a
    column name, ``attributes`` are the columns of keywords. ``weight`` and ``rate`` are computed from the
    columns of a record. With ``scoped``, the server can search for a keyword in one column; otherwise it
    searches in all. Records that were ``adopted`` (texts of columns by key) follow those of the relation,
    with the weight 1 and no stated rate."""
    words = [attribute.name for attribute in attributes]
    used = [name for one in (weight, rate) if one is not None for name in one.columns]
    names = list(dict.fromkeys([key, *words, *used]))
    columns = read_columns(path, names, resolver)
    rows = check_keys(columns, key)
    weights = np.ones(len(columns)) if weight is None else _read_numbers(columns, "weight", weight)
    rates = None if rate is None else _read_numbers(columns, "rate", rate)
    added = [own for own in adopted or {} if own not in rows]
    for own in added:
        rows[own] = len(rows)
        for name, column in columns.texts.items():
            column.append(own if name == key else (adopted or {})[own].get(name, ""))
    weights = np.append(weights, np.ones(len(added)))
    if rates is not None and added:
        rates = np.append(rates, np.full(len(added), np.nan))
    for name in words:
        for row, text in enumerate(columns.texts[name], 1):
            if len(text) > _LONGEST:
                problem = f"holds {len(text):,} characters: a keyword field has at most {_LONGEST:,}"
                raise InputError(problem, path=columns.path, row=row, line=0, column=name)
    index = index_relation(columns.texts, attributes, scoped=scoped)
    if len(columns) and not index.keywords:
        raise InputError(f"no record has a keyword in {', '.join(words)}", path=columns.path)
    return LocalRelation(columns.texts[key], index, weights, rows, columns.digest(), rates)


def check_keys(columns: TextColumns, key: str) -> dict[str, int]:
    """Return the row of each key. Raise ``InputError`` if a key is empty or not unique."""
    rows: dict[str, int] = {}
    for row, text in enumerate(columns.texts[key]):
        if not text:
            raise InputError("is empty: every record needs a key", path=columns.path, row=row + 1, column=key)
        if text in rows:
            problem = f"{text!r} occurs twice, first in row {rows[text] + 1}: it must be unique"
            raise InputError(problem, path=columns.path, row=row + 1, line=0, column=key)
        rows[text] = row
    return rows


def _read_numbers(columns: TextColumns, setting: str, expression: RecordExpression) -> Float64s:
    """Return the ``setting``, weight or rate, of each record. Where a cell that it needs is empty, the weight
    is 1 and the rate is unknown (NaN)."""
    numbers = {
        name: np.array([number_or_nan(text) for text in columns.texts[name]], dtype=np.float64)
        for name in expression.columns
    }
    values = expression.values(numbers)
    for row in np.flatnonzero(~is_usable(values)).tolist():
        texts = {name: columns.texts[name][row] for name in expression.columns}
        if not all(texts.values()):
            continue
        wrong = [name for name in texts if np.isnan(numbers[name][row])]
        if wrong or len(texts) == 1:
            name = (wrong or list(texts))[0]
            problem = f"is {texts[name]!r}: a {setting} is a number of 0 or more"
            raise InputError(problem, path=columns.path, row=row + 1, line=0, column=name)
        problem = f"{setting} = {expression.text!r} is {values[row]:g}: it must be a number of 0 or more"
        raise InputError(problem, path=columns.path, row=row + 1, line=0)
    return np.where(is_usable(values), values, 1.0 if setting == "weight" else np.nan)


def _text(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, bool | list | dict) else str(value)
