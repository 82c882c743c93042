"""Reads tables as a whole or in batches, with the same checks.

    with InputFile("items.csv.gz") as source:
        for batch in scan_table(source, ITEMS, unique="item"):
            ...

A wrong cell, a row of another length, a missing or double column, a repeated key, a half-written file: each
raises an ``InputError`` that names file, row, line and column. Repeated keys are found after the last batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from afresh.tables.cells import BadCell, check_cells, format_value, refuse_empty_where
from afresh.tables.checked_table import CheckedTable
from afresh.tables.columns import Column
from afresh.tables.csv_reader import CsvReader
from afresh.tables.header import match_header
from afresh.tables.input_file import InputFile
from afresh.tables.jsonl_reader import JsonlReader
from afresh.tables.keys import KeyHashes, first_repeat
from afresh.tables.parquet_reader import ParquetReader
from afresh.values.errors import InputError

BATCH_ROWS = 1 << 18


class RowReader(Protocol):
    """What the reader of each layout offers."""

    names: list[str]

    def batches(self, wanted: Sequence[Column]) -> Iterator[tuple[pa.RecordBatch, float]]:
        """Yield batches of cells, named as ``wanted``, with the share of the file read so far."""
        ...

    def line_of(self, row: int) -> int:
        """Return the line on which data row ``row`` (from 1) starts, 0 where a layout has no lines."""
        ...


def read_table(
    path: str | Path | InputFile,
    columns: Sequence[Column],
    *,
    unique: str | None = None,
    format: str | None = None,  # noqa: A002
) -> CheckedTable:
    """Read a whole table. ``unique`` names a text column in which no value may repeat.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("item,rate\\na,0.5\\nb,inf\\n"); file.flush()
    ...     table = read_table(file.name, [Column("rate", "number", finite=False)])
    >>> table.rows, table.numbers("rate")
    (2, array([0.5, inf]))
    """
    batches = list(scan_table(path, columns, unique=unique, format=format))
    if len(batches) == 1:
        return batches[0]
    given: frozenset[str] = frozenset().union(*(batch.given for batch in batches))
    values = {name: _join_batches(name, batches, columns) for name in sorted(given)}
    rows = sum(batch.rows for batch in batches)
    last = batches[-1]
    return CheckedTable(last.path, 0, rows, given, 1.0, values, last.empty_values, last.line_of)


def scan_table(
    path: str | Path | InputFile,
    columns: Sequence[Column],
    *,
    unique: str | None = None,
    format: str | None = None,  # noqa: A002
    batch_rows: int = BATCH_ROWS,
) -> Iterator[CheckedTable]:
    """Yield a table in batches of at most ``batch_rows`` rows; at least one batch, even if it is empty.

    A path is opened and closed here; an ``InputFile`` stays open, so that it can be scanned again.
    """
    opened = nullcontext(path) if isinstance(path, InputFile) else InputFile(path, format=format)
    with opened as source:
        rows = _open_reader(source, columns, batch_rows)
        present = match_header(source.name, rows.names, columns)
        # Objects may bring a column later than in the first line; files with a header cannot.
        wanted = list(columns) if source.layout == "jsonl" else present
        hashes = KeyHashes() if unique else None
        for batch in _check_batches(source, rows, columns, wanted, batch_rows):
            if hashes is not None and unique is not None:
                hashes.add(batch.text(unique))
            yield batch
        if hashes is not None and unique is not None:
            _refuse_repeats(source, rows, next(c for c in columns if c.name == unique), hashes)


def _open_reader(source: InputFile, columns: Sequence[Column], batch_rows: int) -> RowReader:
    if source.layout == "parquet":
        return ParquetReader(source, batch_rows)
    return JsonlReader(source) if source.layout == "jsonl" else CsvReader(source, columns)


def _check_batches(
    source: InputFile, rows: RowReader, columns: Sequence[Column], wanted: Sequence[Column], batch_rows: int
) -> Iterator[CheckedTable]:
    empty_values = {column.name: column.empty_value for column in columns}

    def line_of(row: int) -> int | None:
        return rows.line_of(row) if source.is_readable else None

    def table(cells: pa.RecordBatch, share: float) -> CheckedTable:
        given = frozenset(
            column.name
            for column in wanted
            if column.name in rows.names or cells.column(column.name).null_count < cells.num_rows
        )
        values = {}
        for column in sorted(wanted, key=lambda column: bool(column.if_set)):
            if column.name not in given:
                continue
            try:
                values[column.name] = check_cells(column, cells.column(column.name))
                if column.if_set:
                    needed = values.get(column.if_set, np.ones(cells.num_rows, dtype=bool))
                    refuse_empty_where(column, cells.column(column.name), needed)
            except BadCell as bad:
                row = done + bad.index + 1
                where: dict[str, Any] = {"row": row, "line": line_of(row), "column": column.name}
                raise InputError(bad.problem, path=source.name, **where) from None
        return CheckedTable(source.name, done, cells.num_rows, given, share, values, empty_values, line_of)

    done = 0
    for large, share in rows.batches(wanted):
        for start in range(0, large.num_rows, batch_rows):
            batch = table(large.slice(start, batch_rows), share)
            yield batch
            done += batch.rows
    if done == 0:
        empty = pa.RecordBatch.from_arrays(
            [pa.array([], pa.large_string()) for _ in wanted], names=[column.name for column in wanted]
        )
        yield table(empty, 1.0)


def _refuse_repeats(source: InputFile, rows: RowReader, key: Column, hashes: KeyHashes) -> None:
    suspects = hashes.find_repeated()
    if not suspects.size:
        return
    keys = (check_cells(key, cells.column(0)) for cells, _ in rows.batches([key]))
    found = first_repeat(keys, suspects)
    if found is not None:
        value, first, second = found
        problem = f"{format_value(value)} stands twice, first in row {first + 1}: each must be its own"
        line = rows.line_of(second + 1)
        raise InputError(problem, path=source.name, row=second + 1, line=line, column=key.name)


def _join_batches(name: str, batches: Sequence[CheckedTable], columns: Sequence[Column]) -> Any:
    kind = next(column.kind for column in columns if column.name == name)
    if kind == "text":
        return pa.concat_arrays([batch.text(name) for batch in batches])
    take = {
        "number": CheckedTable.numbers,
        "time": CheckedTable.times,
        "count": CheckedTable.counts,
        "flag": CheckedTable.flags,
    }[kind]
    return np.concatenate([take(batch, name) for batch in batches])
