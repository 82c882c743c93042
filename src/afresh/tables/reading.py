"""Read a table at once or in batches of rows, with the same checks.

    with InputFile("items.csv.gz") as source:
        for batch in scan_table(source, ITEMS, unique="item"):
            ...

A wrong cell, a row of wrong length, a missing or repeated column, a repeated key or a truncated file raises
an ``InputError`` that names the file, row, line and column. Repeated keys are found after the last batch, by
their 64-bit hashes. For 1e7 keys this needs 80 MB of memory, and twice as much during the sort, whatever the
length of the keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from afresh.tables.cells import BadCell, CellBatch, format_value
from afresh.tables.columns import Column, match_header
from afresh.tables.input_file import InputFile
from afresh.tables.plain.plain_cells import PlainBatch, check_cells
from afresh.tables.row_reader import RowReader, open_rows
from afresh.tables.text_columns import Texts, join_texts, repeat_text
from afresh.values.arrays import Bools, Float64s, Floats, Ints
from afresh.values.errors import InputError

BATCH_ROWS = 1 << 18
Kind = TypeVar("Kind", bound=np.generic)


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """Consecutive rows of a file, with checked values: a batch, or the whole table.

    It has ``rows`` rows, starting at row ``first_row`` of the file (counted from 0). ``given`` names the
    declared columns that the file has; for other columns, the methods return the defaults. ``share`` is the
    share of the file, from 0 to 1, that was read after this batch, for progress bars."""

    path: str
    first_row: int
    rows: int
    given: frozenset[str]
    share: float
    values: Mapping[str, Any] = field(repr=False)
    empty_values: Mapping[str, Any] = field(repr=False)
    line_of: Callable[[int], int | None] = field(repr=False)

    def __contains__(self, name: str) -> bool:
        return name in self.given

    def numbers(self, name: str) -> Floats:
        """Return a column of kind ``number``: float32 if a Parquet file stores float32, else float64."""
        return self._column(name, np.float64)

    def times(self, name: str) -> Float64s:
        return self._column(name, np.float64)

    def counts(self, name: str) -> Ints:
        return self._column(name, np.int64)

    def flags(self, name: str) -> Bools:
        return self._column(name, np.bool_)

    def column(self, column: Column) -> Any:
        """Return the values of a column, as the method for its kind does."""
        kinds = {"count": np.int64, "flag": np.bool_}
        return (
            self.text(column.name)
            if column.is_text
            else self._column(column.name, kinds.get(column.kind, np.float64))
        )

    def text(self, name: str) -> Texts:
        """Return a column of kind ``text``."""
        if name in self.values:
            column: Texts = self.values[name]
            return column
        return repeat_text(self.empty_values[name], self.rows)

    def fault(self, index: int, column: str, problem: str) -> InputError:
        """Return an error about one cell. ``index`` is the row within this batch, counted from 0."""
        row = self.first_row + index + 1
        return InputError(problem, path=self.path, row=row, line=self.line_of(row), column=column)

    def _column(self, name: str, kind: type[Kind]) -> npt.NDArray[Kind]:
        if name not in self.values:
            return np.full(self.rows, self.empty_values[name], dtype=kind)
        column: npt.NDArray[Kind] = self.values[name]
        return column


def read_table(
    path: str | Path | InputFile,
    columns: Sequence[Column],
    *,
    unique: str | None = None,
    format: str | None = None,  # noqa: A002
) -> CheckedTable:
    """Read a whole table. ``unique`` is the name of a text column in which every value must be unique.

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
    """Yield a table in batches of at most ``batch_rows`` rows. A table without rows yields one empty batch.
    If ``path`` is an ``InputFile``, it stays open, so that it can be scanned again."""
    opened = nullcontext(path) if isinstance(path, InputFile) else InputFile(path, format=format)
    with opened as source:
        rows = open_rows(source, columns, batch_rows)
        present = match_header(source.name, rows.names, columns)
        # In JSONL a column may first appear after the first line; in files with a header it cannot.
        wanted = list(columns) if source.layout == "jsonl" else present
        hashes: list[Ints] = []
        for batch in _check_batches(source, rows, columns, wanted, batch_rows):
            if unique is not None:
                hashes.append(hash_keys(batch.text(unique)))
            yield batch
        if unique is not None:
            _refuse_repeats(source, rows, next(c for c in columns if c.name == unique), hashes)


def _check_batches(
    source: InputFile, rows: RowReader, columns: Sequence[Column], wanted: Sequence[Column], batch_rows: int
) -> Iterator[CheckedTable]:
    empty_values = {column.name: column.empty_value for column in columns}

    def line_of(row: int) -> int | None:
        return rows.line_of(row) if source.is_readable else None

    def table(cells: CellBatch, share: float) -> CheckedTable:
        given = frozenset(
            column.name for column in wanted if column.name in rows.names or cells.has_values(column.name)
        )
        values = {}
        for column in sorted(wanted, key=lambda column: bool(column.if_set)):
            if column.name not in given:
                continue
            try:
                values[column.name] = cells.check(column)
                if column.if_set:
                    needed = values.get(column.if_set, np.ones(cells.rows, dtype=bool))
                    cells.refuse_empty_where(column, needed)
            except BadCell as bad:
                row = done + bad.index + 1
                where: dict[str, Any] = {"row": row, "line": line_of(row), "column": column.name}
                raise InputError(bad.problem, path=source.name, **where) from None
        return CheckedTable(source.name, done, cells.rows, given, share, values, empty_values, line_of)

    done = 0
    for large, share in rows.batches(wanted):
        for start in range(0, large.rows, batch_rows):
            batch = table(large.part(start, batch_rows), share)
            yield batch
            done += batch.rows
    if done == 0:
        yield table(PlainBatch({column.name: [] for column in wanted}, 0), 1.0)


def check_rows(path: str, columns: Sequence[Column], rows: Sequence[tuple[Any, ...]]) -> CheckedTable:
    """Check rows of a database, with a value for each of ``columns``, like those of a file. None is empty.

    >>> check_rows("papers", [Column("year", "number")], [(1999,), (None,)]).numbers("year")
    array([1999.,   nan])
    """
    values = {}
    for place, column in enumerate(columns):
        texts = ["" if row[place] is None else str(row[place]) for row in rows]
        try:
            values[column.name] = check_cells(column, texts)
        except BadCell as bad:
            where: dict[str, Any] = {"row": bad.index + 1, "line": 0, "column": column.name}
            raise InputError(bad.problem, path=path, **where) from None
    empty_values = {column.name: column.empty_value for column in columns}
    return CheckedTable(path, 0, len(rows), frozenset(values), 1.0, values, empty_values, lambda _: 0)


def _refuse_repeats(source: InputFile, rows: RowReader, key: Column, hashes: list[Ints]) -> None:
    suspects = find_repeated(hashes)
    if not suspects.size:
        return
    keys = (cells.check(key) for cells, _ in rows.batches([key]))
    found = first_repeat(keys, suspects)
    if found is not None:
        value, first, second = found
        problem = f"{format_value(value)} occurs twice, first in row {first + 1}: it must be unique"
        line = rows.line_of(second + 1)
        raise InputError(problem, path=source.name, row=second + 1, line=line, column=key.name)


def _join_batches(name: str, batches: Sequence[CheckedTable], columns: Sequence[Column]) -> Any:
    column = next(column for column in columns if column.name == name)
    parts = [batch.column(column) for batch in batches]
    return join_texts(parts) if column.is_text else np.concatenate(parts)


def hash_keys(keys: Texts) -> Ints:
    # Python's SipHash has 64 bits and a random key per process, so that nobody can construct collisions.
    return np.fromiter(map(hash, keys.tolist()), dtype=np.int64, count=len(keys))


def find_repeated(parts: list[Ints]) -> Ints:
    """Return the hashes that occur more than once, sorted. ``parts`` is emptied to free memory.

    >>> from afresh.tables.text_columns import as_texts
    >>> batches = [as_texts(["a", "b"]), as_texts(["c", "a"])]
    >>> first_repeat(batches, find_repeated([hash_keys(keys) for keys in batches]))
    ('a', 0, 3)
    """
    hashes = np.concatenate(parts)
    parts.clear()
    hashes.sort()
    return np.unique(hashes[1:][hashes[1:] == hashes[:-1]])


def first_repeat(batches: Iterable[Texts], suspects: Ints) -> tuple[str, int, int] | None:
    """Return a tuple (key, row, row) for the first key that occurs twice; rows count from 0. ``suspects`` are
    hashes that occur more than once. The result is None if different keys have the same hash."""
    first: dict[str, int] = {}
    start = 0
    for keys in batches:
        for index in np.flatnonzero(np.isin(hash_keys(keys), suspects)):
            key, row = keys[int(index)], start + int(index)
            if key in first:
                return key, first[key], row
            first[key] = row
        start += len(keys)
    return None
