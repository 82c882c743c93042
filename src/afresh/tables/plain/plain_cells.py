"""Check cells that are Python strings, and convert them into values.

The numbers of a whole column are converted at once. Only if that fails, cells are looked at one by one. None
is a cell without a value, as null is in JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from afresh.tables.cells import FLAGS, NOT_UTF8, BadCell, Values, is_allowed
from afresh.tables.columns import Column
from afresh.tables.text_columns import listed_texts
from afresh.values.arrays import Bools, Float64s
from afresh.values.units import time_or_nan

Cells = Sequence[str | None]


class PlainBatch:
    """Implements ``CellBatch``. ``cells`` has one sequence for each column."""

    def __init__(self, cells: Mapping[str, Cells], rows: int) -> None:
        self._cells, self.rows = cells, rows

    def part(self, start: int, rows: int) -> PlainBatch:
        if start == 0 and rows >= self.rows:
            return self
        cells = {name: column[start : start + rows] for name, column in self._cells.items()}
        return PlainBatch(cells, max(0, min(rows, self.rows - start)))

    def has_values(self, name: str) -> bool:
        return any(cell is not None for cell in self._cells[name])

    def check(self, column: Column) -> Values:
        return check_cells(column, self._cells[column.name])

    def refuse_empty_where(self, column: Column, needed: Bools) -> None:
        refuse_empty_where(column, self._cells[column.name], needed)


def check_cells(column: Column, cells: Cells) -> Values:
    """Return the values of ``cells`` as a float, int64 or bool array or as ``Texts``. Empty cells become the
    default.

    >>> check_cells(Column("rate", "number", default=1), ["0.5", " 2.5 ", ""])
    array([0.5, 2.5, 1. ])
    >>> check_cells(Column("changed", "flag"), ["yes", "0"])
    array([ True, False])
    >>> check_cells(Column("time", "time"), ["1970-01-02", "1970-01-01T01:00:01.5Z"])
    array([86400. ,  3601.5])
    """
    _refuse_bytes(cells)
    if column.is_text:
        return listed_texts(_check_texts(column, cells))
    if column.kind != "flag" and (numbers := _all_floats(cells)) is not None:
        return _check_bounds(column, numbers, None)
    trimmed = [None if cell is None else cell.strip() or None for cell in cells]
    if column.required and not column.if_set and None in trimmed:
        raise BadCell.empty(column, trimmed.index(None))
    if column.kind == "flag":
        return _check_flags(column, trimmed)
    numbers = _times(column, trimmed) if column.kind == "time" else _numbers(column, trimmed)
    return _check_bounds(column, numbers, np.array([cell is None for cell in trimmed], dtype=bool))


def refuse_empty_where(column: Column, cells: Cells, needed: Bools) -> None:
    """Raise ``BadCell`` if a cell is empty in a row in which ``needed`` is True. ``needed`` is the flag
    column that ``column.if_set`` names.

    >>> both = ["1", ""], np.array([True, False])
    >>> refuse_empty_where(Column("changed", "flag", required=True, if_set="reached"), *both)
    """
    empty = np.array([cell is None or not cell.strip() for cell in cells], dtype=bool)
    if (empty & needed).any():
        raise BadCell.empty_where(column, empty & needed)


def _refuse_bytes(cells: Cells) -> None:
    """Raise ``BadCell`` if a cell has bytes that are not UTF-8, which the readers turn into surrogates."""
    if None not in cells and "".join(cells).isascii():  # type: ignore[arg-type]
        return
    for index, cell in enumerate(cells):
        if cell is not None and not cell.isascii():
            try:
                cell.encode()
            except UnicodeEncodeError:
                raise BadCell(index, NOT_UTF8) from None


def _check_texts(column: Column, cells: Cells) -> list[str]:
    if "" not in cells and None not in cells:
        return list(cells)  # type: ignore[arg-type]
    if column.required:
        raise BadCell.empty(column, next(index for index, cell in enumerate(cells) if not cell))
    return [cell or str(column.empty_value) for cell in cells]


def _check_flags(column: Column, cells: Cells) -> Bools:
    known = {**FLAGS, None: bool(column.empty_value)}
    try:
        return np.array([known[cell and cell.lower()] for cell in cells], dtype=bool)
    except KeyError:
        index = next(index for index, cell in enumerate(cells) if (cell and cell.lower()) not in known)
        raise BadCell.wrong(column, index, cells[index]) from None


def _all_floats(cells: Cells) -> Float64s | None:
    """Return the numbers in the cells, or None if a cell may be anything else than an ordinary number."""
    try:
        numbers = np.fromiter(map(float, cells), np.float64, len(cells))  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return None
    letters = "".join(cells)  # type: ignore[arg-type]
    return numbers if _is_ordinary(letters) else None


def _is_ordinary(text: str) -> bool:
    """Return whether a text has no signs that only Python takes for parts of numbers."""
    return text.isascii() and "_" not in text


def _numbers(column: Column, cells: Cells) -> Float64s:
    numbers = np.full(len(cells), math.nan)
    for index, cell in enumerate(cells):
        if cell is not None:
            try:
                numbers[index] = float(cell)
            except ValueError:
                raise BadCell.wrong(column, index, cell) from None
            if not _is_ordinary(cell):
                raise BadCell.wrong(column, index, cell)
    return numbers


def _times(column: Column, cells: Cells) -> Float64s:
    """Return Unix seconds from numbers or ISO 8601 texts."""
    try:
        return _numbers(column, cells)
    except BadCell:
        pass  # not all are numbers
    seconds = np.array([math.nan if cell is None else time_or_nan(cell) for cell in cells])
    for index in np.flatnonzero(np.isnan(seconds)):
        if (cell := cells[int(index)]) is not None:
            raise BadCell.wrong(column, int(index), cell)
    return seconds


def _check_bounds(column: Column, numbers: Float64s, empty: Bools | None) -> Values:
    """Check the bounds of numbers. Empty cells become the default."""
    wrong = ~is_allowed(column, numbers)
    if empty is not None:
        wrong &= ~empty
    if wrong.any():
        index = int(np.argmax(wrong))
        raise BadCell.wrong(column, index, float(numbers[index]))
    if empty is not None:
        numbers[empty] = float(column.empty_value)
    return numbers.astype(np.int64) if column.kind == "count" else numbers
