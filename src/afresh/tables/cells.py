"""Check the cells of a column that were read from a file, and convert them into values.

pyarrow converts a whole column at once. Only if that fails, the first wrong cell is searched for. A wrong
cell raises ``BadCell``, which contains the cell's index in the batch. The caller adds the file and the row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from afresh.tables.columns import Column
from afresh.values.arrays import Bools
from afresh.values.units import time_or_nan

Values: TypeAlias = Any  # a NumPy array, or for text a pyarrow LargeStringArray

_MICRO = 1e6
_LONGEST_SHOWN = 60
_LARGEST_EXACT = 2.0**53  # above this number, a double cannot hold every whole number
_FLAGS = {"0": False, "1": True, "false": False, "true": True, "no": False, "yes": True}


class BadCell(Exception):  # noqa: N818 (it never leaves this layer)
    """Cell ``index`` of a batch is wrong. ``problem`` says what the cell contains and what it must be."""

    def __init__(self, index: int, problem: str) -> None:
        super().__init__(problem)
        self.index, self.problem = index, problem


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
        return _check_texts(column, cells)
    if is_text(cells.type):
        cells = _blank_to_null(cells)
    if column.required and not column.if_set and cells.null_count:
        index = pc.index(pc.is_null(cells), True).as_py()
        raise BadCell(index, f"is empty: must be {column.requirement}")
    if column.kind == "flag":
        return _check_flags(column, cells)
    numbers = _cast_times(column, cells) if column.kind == "time" else _cast_numbers(column, cells)
    return _check_bounds(column, numbers)


def format_value(value: object) -> str:
    """Format a wrong value for a message. Text is quoted, and cut if it is long.

    >>> format_value("abc"), format_value(-3.0), format_value(float("nan"))
    ("'abc'", '-3', 'nan')
    """
    if isinstance(value, float):
        return f"{value:.17g}" if value != float(f"{value:g}") else f"{value:g}"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _bad_cell(column: Column, cells: pa.Array, index: int) -> BadCell:
    return BadCell(index, f"is {format_value(cells[index].as_py())}: must be {column.requirement}")


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
            problem = (
                f"is empty, which it may be only where {column.if_set} is 0: must be {column.requirement}"
            )
            raise BadCell(int(np.argmax(wrong)), problem)


def _refuse_bytes(cells: pa.Array) -> None:
    """Raise ``BadCell`` if text is not UTF-8. Of the readers, only the CSV reader checks this itself."""
    try:
        cells.validate(full=True)
    except pa.ArrowInvalid:
        index = _first_failing_cell(cells, lambda part: part.validate(full=True))
        raise BadCell(index, "is not UTF-8: save the file as UTF-8") from None


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
        raise BadCell(pc.index(empty, True).as_py(), f"is empty: must be {column.requirement}")
    return pc.if_else(empty, pa.scalar(str(column.empty_value), pa.large_string()), texts)


def _check_flags(column: Column, cells: pa.Array) -> Bools:
    if not pa.types.is_boolean(cells.type):
        words = pc.utf8_lower(cells.cast(pa.string()))
        place = pc.index_in(words, value_set=pa.array(_FLAGS))
        wrong = pc.and_(pc.is_null(place), pc.is_valid(cells))
        if pc.any(wrong).as_py():
            raise _bad_cell(column, cells, pc.index(wrong, True).as_py())
        cells = pc.take(pa.array(_FLAGS.values()), place)
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


def first_failing(rows: int, attempt: Callable[[int, int], object], error: type[Exception]) -> int:
    """Return the first of ``rows`` rows with which ``attempt`` raises ``error``, found by bisection.
    ``attempt(low, end)`` is called when the rows before ``low`` are right, to test those up to ``end``."""
    low, high = 0, rows
    while high - low > 1:
        middle = (low + high) // 2
        try:
            attempt(low, middle)
            low = middle
        except error:
            high = middle
    return low


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
    wrong = ~_is_allowed(column, every)
    if numbers.null_count:
        wrong &= pc.is_valid(numbers).to_numpy(zero_copy_only=False)
    if wrong.any():
        raise _bad_cell(column, numbers, int(np.argmax(wrong)))
    if numbers.null_count:
        every = pc.fill_null(numbers, pa.scalar(float(column.empty_value), numbers.type)).to_numpy()
    return every.astype(np.int64) if column.kind == "count" else every


def _is_allowed(column: Column, values: npt.NDArray[Any]) -> Bools:
    allowed = (values >= column.minimum) & (values <= column.maximum)  # NaN fails every comparison
    if column.above > -math.inf:
        allowed &= values > column.above
    if column.finite or column.kind == "count":
        allowed &= np.isfinite(values)
    if column.kind == "count" or column.whole:
        allowed &= (np.abs(values) <= _LARGEST_EXACT) & (values == np.floor(values))
    return allowed
