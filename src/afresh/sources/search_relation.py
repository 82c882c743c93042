"""The local relation of a ``search`` source, from CSV, Parquet or SQLite: keys, texts of keywords, weights.

What is wrong with it is said with file, row and column, and nothing is taken from it then.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from afresh.probes.keyword_index import KeywordIndex, index_relation
from afresh.probes.splitters import KeywordAttribute
from afresh.sources.sql_error import one_line
from afresh.sources.sql_session import quoted
from afresh.values.errors import InputError, did_you_mean

_LONGEST = 1_000_000  # characters of one keyword field: more is a document, or a broken quote
_BLOCK_BYTES = 1 << 26  # read at once: the longest row that can be read


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Columns of texts, all of one length; an empty text where there was nothing."""

    path: str
    texts: dict[str, list[str]]

    def __len__(self) -> int:
        """How many rows."""
        return len(next(iter(self.texts.values()), []))


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """The records: their keys, their keywords, what each weighs; ``places`` are the rows of the keys."""

    keys: list[str]
    index: KeywordIndex
    weights: npt.NDArray[np.float64]
    places: dict[str, int]


def read_columns(path: str, names: Sequence[str]) -> Columns:
    """The columns ``names`` of a CSV or Parquet file, or of FILE#TABLE in SQLite."""
    file = path.partition("#")[0] if "#" in path else path
    if not Path(file).is_file():
        raise InputError("does not exist", path=file)
    found = _of_sqlite(path, names) if "#" in path else _of_arrow(path, names)
    return Columns(path, found)


def read_relation(
    path: str, key: str, attributes: Sequence[KeywordAttribute], weight: str, *, scoped: bool
) -> Relation:
    """The relation, checked: every record has a key of its own, some have keywords, weights are numbers."""
    words = [attribute.name for attribute in attributes]
    names = list(dict.fromkeys([key, *words, *([weight] if weight else [])]))
    columns = read_columns(path, names)
    places = checked_keys(columns, key)
    for name in words:
        for row, text in enumerate(columns.texts[name], 1):
            if len(text) > _LONGEST:
                words_ = f"holds {len(text):,} characters: a keyword field has at most {_LONGEST:,}"
                raise InputError(words_, path=path, row=row, line=0, column=name)
    index = index_relation(columns.texts, attributes, scoped=scoped)
    if len(columns) and not index.keywords:
        raise InputError(f"no record has a keyword in {', '.join(words)}", path=path)
    weights = _weights(columns, weight) if weight else np.ones(len(columns))
    return Relation(columns.texts[key], index, weights, places)


def checked_keys(columns: Columns, key: str) -> dict[str, int]:
    """The row of each key; none may be empty or stand twice."""
    places: dict[str, int] = {}
    for row, text in enumerate(columns.texts[key]):
        if not text:
            raise InputError("is empty: every record needs a key", path=columns.path, row=row + 1, column=key)
        if text in places:
            problem = f"{text!r} stands twice, first in row {places[text] + 1}: each must be its own"
            raise InputError(problem, path=columns.path, row=row + 1, line=0, column=key)
        places[text] = row
    return places


def _weights(columns: Columns, name: str) -> npt.NDArray[np.float64]:
    values = []
    for row, text in enumerate(columns.texts[name], 1):
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            problem = f"is {text!r}: a weight is a number of 0 or more"
            raise InputError(problem, path=columns.path, row=row, line=0, column=name)
        values.append(value)
    return np.array(values, dtype=np.float64)


def _of_arrow(path: str, names: Sequence[str]) -> dict[str, list[str]]:
    import pyarrow as pa

    try:
        table = _parquet(path, names) if path.endswith(".parquet") else _csv(path, names)
        columns = {name: table.column(name).cast(pa.large_string()).to_pylist() for name in names}
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {one_line(str(error))}", path=path) from None
    return {name: [text or "" for text in column] for name, column in columns.items()}


def _parquet(path: str, names: Sequence[str]) -> Any:
    import pyarrow.parquet as pq

    _check_names(path, names, pq.read_schema(path).names)
    return pq.read_table(path, columns=list(names))


def _csv(path: str, names: Sequence[str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    reading = csv.ReadOptions(block_size=_BLOCK_BYTES)
    parsing = csv.ParseOptions(newlines_in_values=True)
    types = {name: pa.large_string() for name in names}
    converting = csv.ConvertOptions(
        column_types=types, strings_can_be_null=False, quoted_strings_can_be_null=False
    )
    table = csv.read_csv(path, read_options=reading, parse_options=parsing, convert_options=converting)
    _check_names(path, names, table.column_names)
    return table


def _of_sqlite(place: str, names: Sequence[str]) -> dict[str, list[str]]:
    path, _, name = place.partition("#")
    try:
        with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as database:
            known = [row[1] for row in database.execute(f"PRAGMA table_info({quoted(name)})")]
            if not known:
                tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
                raise InputError(f"has no table {name!r}{did_you_mean(name, tables)}", path=path)
            _check_names(place, names, known)
            wanted = ", ".join(f"CAST({quoted(column)} AS TEXT)" for column in names)
            rows = database.execute(f"SELECT {wanted} FROM {quoted(name)}").fetchall()
    except sqlite3.Error as error:
        raise InputError(f"cannot be read as SQLite: {one_line(str(error))}", path=path) from None
    return {column: [row[at] or "" for row in rows] for at, column in enumerate(names)}


def _check_names(path: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"has no column {name}{did_you_mean(name, known)}", path=path)
