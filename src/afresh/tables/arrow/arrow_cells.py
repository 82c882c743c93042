"""Check cells that are Arrow arrays, and convert them into values.

pyarrow converts a whole column at once. Only if that fails, the first wrong cell is searched for. A wrong
cell raises ``BadCell``, which contains the cell's index in the batch. The caller adds the file and the row.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from afresh.tables.arrow.arrow_texts import ArrowTexts
from afresh.tables.cells import FLAGS, NOT_UTF8, BadCell, Values, first_failing, is_allowed
from afresh.tables.columns import Column
from afresh.values.arrays import Bools
from afresh.values.units import time_or_nan

_MICRO = 1e6


class ArrowBatch:
    """Implements ``CellBatch``. ``cells`` has one array for each column."""

    def __init__(self, cells: pa.RecordBatch) -> None:
        self._cells = cells

    @property
    def rows(self) -> int:
        return int(self._cells.num_rows)

    def part(self, start: int, rows: int) -> ArrowBatch:
        return ArrowBatch(self._cells.slice(start, rows))

    def has_values(self, name: str) -> bool:
        return bool(self._cells.column(name).null_count < self.rows)

    def check(self, column: Column) -> Values:
        return check_cells(column, self._cells.column(column.name))

    def refuse_empty_where(self, column: Column, needed: Bools) -> None:
        refuse_empty_where(column, self._cells.column(column.name), needed)


def check_cells(column: Column, cells: pa.Array) -> Values:
    """Return the values of ``cells`` as a float, int64, bool or text array. Empty cells become the default.

    >>> check_cells(Column("rate", "number", default=1), pa.array(["0.5", " 2.5 ", ""]))
    array([0.5, 2.5, 1. ])
    >>> check_cells(Column("changed", "flag"), pa.array(["yes", "0"]))
    array([ True, False])
    >>> check_cells(Column("time", "time"), pa.array(["1970-01-02", "1970-01-01T01:00:01.5Z"]))
    array([86400. ,  3601.5])
    """
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    _refuse_bytes(cells)
    if column.is_text:
        return ArrowTexts(_check_texts(column, cells))
    if is_text(cells.type):
        cells = _blank_to_null(cells)
    if column.required and not column.if_set and cells.null_count:
        raise BadCell.empty(column, pc.index(pc.is_null(cells), True).as_py())
    if column.kind == "flag":
        return _check_flags(column, cells)
    numbers = _cast_times(column, cells) if column.kind == "time" else _cast_numbers(column, cells)
    return _check_bounds(column, numbers)


def _bad_cell(column: Column, cells: pa.Array, index: int) -> BadCell:
    return BadCell.wrong(column, index, cells[index].as_py())


def refuse_empty_where(column: Column, cells: pa.Array, needed: Bools) -> None:
    """Raise ``BadCell`` if a cell is empty in a row in which ``needed`` is True. ``needed`` is the flag
    column that ``column.if_set`` names.

    >>> both = pa.array(["1", ""]), np.array([True, False])
    >>> refuse_empty_where(Column("changed", "flag", required=True, if_set="reached"), *both)
    """
    known = _blank_to_null(cells) if is_text(cells.type) else cells
    if known.null_count:
        wrong = pc.is_null(known).to_numpy(zero_copy_only=False) & needed
        if wrong.any():
            raise BadCell.empty_where(column, wrong)


def _refuse_bytes(cells: pa.Array) -> None:
    """Raise ``BadCell`` if text is not UTF-8. Of the readers, only the CSV reader checks this itself."""
    try:
        cells.validate(full=True)
    except pa.ArrowInvalid:
        index = _first_failing_cell(cells, lambda part: part.validate(full=True))
        raise BadCell(index, NOT_UTF8) from None


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _blank_to_null(cells: pa.Array) -> pa.Array:
    trimmed = pc.utf8_trim_whitespace(cells)
    blank = pc.equal(trimmed, "")
    return pc.if_else(blank, None, trimmed) if pc.any(blank).as_py() else trimmed


def _check_texts(column: Column, cells: pa.Array) -> pa.Array:
    texts = _cast_or_name_cell(column, cells, lambda part: part.cast(pa.large_string()))
    empty = pc.fill_null(pc.equal(texts, ""), True)
    if not pc.any(empty).as_py():
        return texts
    if column.required:
        raise BadCell.empty(column, pc.index(empty, True).as_py())
    return pc.if_else(empty, pa.scalar(str(column.empty_value), pa.large_string()), texts)


def _check_flags(column: Column, cells: pa.Array) -> Bools:
    if not pa.types.is_boolean(cells.type):
        words = pc.utf8_lower(cells.cast(pa.string()))
        place = pc.index_in(words, value_set=pa.array(FLAGS))
        wrong = pc.and_(pc.is_null(place), pc.is_valid(cells))
        if pc.any(wrong).as_py():
            raise _bad_cell(column, cells, pc.index(wrong, True).as_py())
        cells = pc.take(pa.array(FLAGS.values()), place)
    filled: Bools = pc.fill_null(cells, bool(column.empty_value)).to_numpy(zero_copy_only=False)
    return filled


def _cast_numbers(column: Column, cells: pa.Array) -> pa.Array:
    if pa.types.is_floating(cells.type):
        return cells if cells.type == pa.float32() else cells.cast(pa.float64())
    return _cast_or_name_cell(column, cells, lambda part: part.cast(pa.float64(), safe=is_text(part.type)))


def _cast_or_name_cell(column: Column, cells: pa.Array, cast: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return ``cast(cells)``. If it fails, raise ``BadCell`` for the first cell that cannot be cast."""
    try:
        return cast(cells)
    except pa.ArrowInvalid:
        raise _bad_cell(column, cells, _first_failing_cell(cells, cast)) from None


def _first_failing_cell(cells: pa.Array, attempt: Callable[[pa.Array], object]) -> int:
    return first_failing(len(cells), lambda low, end: attempt(cells.slice(low, end - low)), pa.ArrowInvalid)


def _cast_times(column: Column, cells: pa.Array) -> pa.Array:
    """Return Unix seconds from numbers, timestamps, dates or texts. Texts of one format are cast at once."""
    if pa.types.is_temporal(cells.type):
        return _to_seconds(cells)
    if not is_text(cells.type):
        return cells.cast(pa.float64(), safe=False)
    for spelling in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            cast = cells.cast(spelling)
        except pa.ArrowInvalid:
            continue
        return cast if spelling == pa.float64() else _to_seconds(cast)
    seconds = [None if text is None else time_or_nan(text) for text in cells.to_pylist()]
    for index, second in enumerate(seconds):
        if second is not None and math.isnan(second):
            raise _bad_cell(column, cells, index)
    return pa.array(seconds, pa.float64())


def _to_seconds(stamps: pa.Array) -> pa.Array:
    zone = getattr(stamps.type, "tz", None)
    micros = stamps.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    return pc.divide(micros.cast(pa.float64(), safe=False), _MICRO)


def _check_bounds(column: Column, numbers: pa.Array) -> Values:
    """Check the bounds of numbers and return them as a NumPy array. Empty cells become the default."""
    every = numbers.to_numpy(zero_copy_only=False)
    wrong = ~is_allowed(column, every)
    if numbers.null_count:
        wrong &= pc.is_valid(numbers).to_numpy(zero_copy_only=False)
    if wrong.any():
        raise _bad_cell(column, numbers, int(np.argmax(wrong)))
    if numbers.null_count:
        every = pc.fill_null(numbers, pa.scalar(float(column.empty_value), numbers.type)).to_numpy()
    return every.astype(np.int64) if column.kind == "count" else every
