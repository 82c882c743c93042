"""A table, or a batch of one: checked columns by name, which know their rows in the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from afresh.values.arrays import Bools, Float64s, Floats, Ints
from afresh.values.errors import InputError


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """``rows`` rows of a file from ``first_row`` (0 is the file's first), every declared column checked.

    ``given`` names the columns that the file has; the others are filled with their default on request.
    ``share`` is the share of the file read up to the end of this batch, for progress bars.
    """

    path: str
    first_row: int
    rows: int
    given: frozenset[str]
    share: float
    values: Mapping[str, Any] = field(repr=False)
    empty_values: Mapping[str, Any] = field(repr=False)
    line_of: Callable[[int], int | None] = field(repr=False)

    def __contains__(self, name: str) -> bool:
        """Return whether the file has the column."""
        return name in self.given

    def numbers(self, name: str) -> Floats:
        """Return a column of kind number: float64, or float32 where a Parquet file stores that."""
        column: Floats = self._column(name, np.float64)
        return column

    def times(self, name: str) -> Float64s:
        """Return a column of kind time: Unix seconds."""
        column: Float64s = self._column(name, np.float64)
        return column

    def counts(self, name: str) -> Ints:
        """Return a column of kind count."""
        column: Ints = self._column(name, np.int64)
        return column

    def flags(self, name: str) -> Bools:
        """Return a column of kind flag."""
        column: Bools = self._column(name, np.bool_)
        return column

    def text(self, name: str) -> pa.LargeStringArray:
        """Return a column of kind text, as a pyarrow array without nulls."""
        if name in self.values:
            return self.values[name]
        return pa.repeat(pa.scalar(self.empty_values[name], pa.large_string()), self.rows)

    def fault(self, index: int, column: str, problem: str) -> InputError:
        """Return the error to raise about the cell at ``index`` of this table."""
        row = self.first_row + index + 1
        return InputError(problem, path=self.path, row=row, line=self.line_of(row), column=column)

    def _column(self, name: str, kind: type[np.generic]) -> Any:
        if name in self.values:
            return self.values[name]
        return np.full(self.rows, self.empty_values[name], dtype=kind)
