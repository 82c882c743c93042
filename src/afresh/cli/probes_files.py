"""The files of ``afresh probes``: the relation, the server's records and a proxy, as indexes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from afresh.probes.keyword_index import KeywordIndex, index_corpus, index_relation
from afresh.probes.splitters import KeywordAttribute, parse_keywords
from afresh.probes.update_models import expected_lag
from afresh.sources.search.relation import display_place, is_postgres, table_rows
from afresh.tables.columns import Column
from afresh.tables.reading import CheckedTable, read_table
from afresh.values.arrays import Float64s
from afresh.values.errors import InputError, UsageError

_LONGEST = 1_000_000  # characters of one keyword field: more is a document, or a broken quote


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """The local relation and what its tuples are worth, the server's records if they are at hand, a proxy.

    ``weighed``: the worths are not all 1 by default.
    """

    keys: list[str]
    relation: KeywordIndex
    values: Float64s
    server_keys: list[str]
    server: KeywordIndex | None
    proxy: KeywordIndex | None
    weighed: bool = False

    @property
    def tuples(self) -> int:
        """How many local records there are."""
        return len(self.keys)


def read_world(
    relation: str,
    server: str | None,
    proxy: str | None,
    *,
    key: str,
    keywords: Sequence[str],
    scoped: bool,
    columns: tuple[str | None, str | None, str | None],
    on_read: Callable[[float], None] = lambda _: None,
) -> World:
    """Read and index everything; ``columns`` name weight, rate and elapsed time, where given.

    ``server`` is None where it is to be asked itself.
    """
    attributes = [parse_keywords(text) for text in keywords]
    if len({attribute.name for attribute in attributes}) < len(attributes):
        raise UsageError("--keywords: each column once")
    numbers = [name for name in columns if name is not None]
    table = _read(relation, key, attributes, numbers)
    on_read(0.1)
    own = index_relation(_texts(table, attributes), attributes, scoped=scoped)
    if table.rows and not own.keywords:
        names = ", ".join(attribute.name for attribute in attributes)
        raise InputError(f"no record has a keyword in {names}: name a column with words", path=table.path)
    indexed, server_keys = None, []
    if server is not None:
        remote = _read(server, key, attributes, [], unique=False)
        on_read(0.4)
        indexed = index_corpus(own, _texts(remote, attributes), attributes, scoped=scoped)
        server_keys = remote.text(key).to_pylist()
    on_read(0.7)
    sample = None
    if proxy is not None:
        like = _read(proxy, None, attributes, [], unique=False)
        sample = index_corpus(own, _texts(like, attributes), attributes, scoped=scoped)
    on_read(1.0)
    values = _values(table, columns)
    return World(table.text(key).to_pylist(), own, values, server_keys, indexed, sample, bool(numbers))


def in_database(place: str) -> bool:
    """Whether records are in a table of a database.

    >>> in_database("papers.csv"), in_database("papers.db#papers")
    (False, True)
    """
    return "#" in place or is_postgres(place)


def _read(
    path: str,
    key: str | None,
    attributes: Sequence[KeywordAttribute],
    numbers: Sequence[str],
    unique: bool = True,
) -> CheckedTable:
    wanted = [] if key is None else [Column(key, "text", required=True, what="the record's key")]
    taken = {key}
    for attribute in attributes:
        if attribute.name not in taken:
            wanted.append(Column(attribute.name, "text", what="keywords"))
            taken.add(attribute.name)
    wanted += [Column(name, "number", required=True, minimum=0) for name in numbers if name not in taken]
    if in_database(path):
        rows = table_rows(path, [column.name for column in wanted], os.environ.get)
        table = _as_table(display_place(path), wanted, rows)
    else:
        table = read_table(path, wanted, unique=key if unique else None)
    for column in wanted:
        if column.name not in table:
            read_table(path, [replace(column, required=True)])  # which says what columns there are
    if in_database(path) and key is not None and unique:
        _refuse_repeats(table, key)
    for attribute in attributes:
        _refuse_long(table, attribute.name)
    return table


def _as_table(place: str, wanted: Sequence[Column], rows: list[tuple[object, ...]]) -> CheckedTable:
    values: dict[str, object] = {}
    for index, column in enumerate(wanted):
        cells = [row[index] for row in rows]
        for row, cell in enumerate(cells, 1):
            if column.required and (cell is None or cell == ""):
                raise InputError(
                    f"is empty: must be {column.requirement}", path=place, row=row, line=0, column=column.name
                )
        if column.kind == "text":
            texts = ["" if cell is None else str(cell) for cell in cells]
            values[column.name] = pa.array(texts, pa.large_string())
        else:
            values[column.name] = _numbers(place, column, cells)
    empty_values = {column.name: column.empty_value for column in wanted}
    return CheckedTable(place, 0, len(rows), frozenset(values), 1.0, values, empty_values, lambda _: 0)


def _numbers(place: str, column: Column, cells: Sequence[object]) -> Float64s:
    for row, cell in enumerate(cells, 1):
        if not isinstance(cell, int | float) or not 0 <= cell < np.inf:
            raise InputError(
                f"is {cell!r}: must be {column.requirement}", path=place, row=row, line=0, column=column.name
            )
    return np.array(cells, dtype=np.float64)


def _refuse_repeats(table: CheckedTable, key: str) -> None:
    seen: dict[str, int] = {}
    for row, value in enumerate(table.text(key).to_pylist()):
        if value in seen:
            problem = f"{value!r} stands twice, first in row {seen[value] + 1}: each must be its own"
            raise table.fault(row, key, problem)
        seen[value] = row


def _refuse_long(table: CheckedTable, name: str) -> None:
    lengths = pc.utf8_length(table.text(name)).to_numpy(zero_copy_only=False)
    if lengths.size and lengths.max() > _LONGEST:
        index = int(lengths.argmax())
        problem = f"holds {lengths[index]:,} characters: a keyword field has at most {_LONGEST:,}"
        raise table.fault(index, name, problem)


def _texts(table: CheckedTable, attributes: Sequence[KeywordAttribute]) -> dict[str, list[str]]:
    return {attribute.name: table.text(attribute.name).to_pylist() for attribute in attributes}


def _values(table: CheckedTable, columns: tuple[str | None, str | None, str | None]) -> Float64s:
    """w·F: weight times expected lag; 1 where neither is given."""
    weight, rate, elapsed = columns
    values = np.ones(table.rows) if weight is None else _column(table, weight)
    if rate is not None and elapsed is not None:
        values = values * expected_lag(_column(table, rate), _column(table, elapsed))
    return np.asarray(values, dtype=np.float64)


def _column(table: CheckedTable, name: str) -> Float64s:
    """The numbers of a column, also of one that is the key or keywords and was read as text."""
    if isinstance(table.values[name], np.ndarray):
        return np.asarray(table.numbers(name), dtype=np.float64)
    found = np.empty(table.rows)
    for row, text in enumerate(table.text(name).to_pylist()):
        try:
            found[row] = float(text)
        except ValueError:
            found[row] = -1.0
        if not 0 <= found[row] < np.inf:
            raise table.fault(row, name, f"is {text!r}: must be a number of 0 or more")
    return found
