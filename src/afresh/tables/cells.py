"""What the readers of all formats share: batches of cells that are not checked yet, and wrong cells.

Two implementations check cells and give the same values and messages: ``plain/plain_cells.py``, which needs
NumPy only, and ``arrow/arrow_cells.py`` for files read by pyarrow."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from afresh.tables.columns import Column
from afresh.values.arrays import Bools

Values: TypeAlias = Any  # a NumPy array, or for text an object of the class Texts

FLAGS: dict[str | None, bool] = {
    "0": False,
    "1": True,
    "false": False,
    "true": True,
    "no": False,
    "yes": True,
}
NOT_UTF8 = "is not UTF-8: save the file as UTF-8"
_LONGEST_SHOWN = 60
_LARGEST_EXACT = 2.0**53  # above this number, a double cannot hold every whole number


class BadCell(Exception):  # noqa: N818 (it never leaves this layer)
    """Cell ``index`` of a batch is wrong. ``problem`` says what the cell contains and what it must be."""

    def __init__(self, index: int, problem: str) -> None:
        super().__init__(problem)
        self.index, self.problem = index, problem

    @classmethod
    def wrong(cls, column: Column, index: int, value: object) -> Self:
        return cls(index, f"is {format_value(value)}: must be {column.requirement}")

    @classmethod
    def empty(cls, column: Column, index: int) -> Self:
        return cls(index, f"is empty: must be {column.requirement}")

    @classmethod
    def empty_where(cls, column: Column, wrong: Bools) -> Self:
        """``wrong`` marks the empty cells of rows in which ``column`` needs a value."""
        problem = f"is empty, which it may be only where {column.if_set} is 0: must be {column.requirement}"
        return cls(int(np.argmax(wrong)), problem)


class CellBatch(Protocol):
    """Consecutive rows as a reader gives them, with cells that are not checked yet."""

    @property
    def rows(self) -> int: ...

    def part(self, start: int, rows: int) -> CellBatch:
        """Return at most ``rows`` rows from row ``start`` on."""
        ...

    def has_values(self, name: str) -> bool:
        """Return whether any cell of the column has a value, even an empty text."""
        ...

    def check(self, column: Column) -> Values:
        """Return the values of a column as a float, int64 or bool array or as ``Texts``; empty cells become
        the default. Raise ``BadCell`` for the first wrong cell."""
        ...

    def refuse_empty_where(self, column: Column, needed: Bools) -> None:
        """Raise ``BadCell`` if a cell is empty in a row in which ``needed`` is True. ``needed`` is the flag
        column that ``column.if_set`` names."""
        ...


def format_value(value: object) -> str:
    """Format a wrong value for a message. Text is quoted, and cut if it is long.

    >>> format_value("abc"), format_value(-3.0), format_value(float("nan"))
    ("'abc'", '-3', 'nan')
    """
    if isinstance(value, float):
        return f"{value:.17g}" if value != float(f"{value:g}") else f"{value:g}"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


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


def is_allowed(column: Column, values: npt.NDArray[Any]) -> Bools:
    """Return for each number whether it is within the bounds of the column. NaN never is."""
    allowed: Bools = (values >= column.minimum) & (values <= column.maximum)  # NaN fails every comparison
    if column.above > -math.inf:
        allowed &= values > column.above
    if column.finite or column.kind == "count":
        allowed &= np.isfinite(values)
    if column.kind == "count" or column.whole:
        allowed &= (np.abs(values) <= _LARGEST_EXACT) & (values == np.floor(values))
    return allowed
