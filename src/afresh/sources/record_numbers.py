"""Weight and expected rate of new items, computed from the columns of their records (``api`` and ``sql``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from afresh.sources.record_expression import RecordExpression, is_usable
from afresh.values.arrays import Float64s
from afresh.values.listing import ListingEntry


@dataclass(frozen=True, slots=True)
class RecordNumbers:
    """The expressions of the settings ``weight`` and ``rate``; None without one.

    >>> numbers = RecordNumbers.parse("price * 2", "sold / 4 / d")
    >>> numbers.columns
    ('price', 'sold')
    >>> entry = numbers.entries({"a": "mark"}, {"a": ("3.5", 8)})[0]
    >>> entry.weight, round(entry.prior_rate_per_s * 86400)
    (7.0, 2)
    """

    weight: RecordExpression | None = None
    rate: RecordExpression | None = None

    @classmethod
    def parse(cls, weight: str, rate: str) -> RecordNumbers:
        """Read the expressions; raise ``UsageError`` if one is wrong."""
        return cls(
            RecordExpression.parse("weight", weight) if weight else None,
            RecordExpression.parse("rate", rate, per_time=True) if rate else None,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the expressions need."""
        found = (one.columns for one in (self.weight, self.rate) if one is not None)
        return tuple(dict.fromkeys(name for names in found for name in names))

    def entries(
        self, marks: Mapping[str, str], cells: Mapping[str, Sequence[object]]
    ) -> tuple[ListingEntry, ...]:
        """Return an entry for each key of ``marks``. ``cells`` has the cells of ``columns`` by key. Where a
        number cannot be computed, or is below 0, the entry has none."""
        if not self.columns:
            return tuple(ListingEntry(key, mark) for key, mark in marks.items())
        empty = (None,) * len(self.columns)
        rows = zip(*(cells.get(key, empty) for key in marks), strict=True)
        table = {
            name: np.array([_number(cell) for cell in column], dtype=np.float64)
            for name, column in zip(self.columns, rows, strict=False)
        }
        weights, rates = (self._values(one, table, len(marks)) for one in (self.weight, self.rate))
        return tuple(
            ListingEntry(key, mark, prior_rate_per_s=_or_none(rate), weight=_or_none(weight))
            for (key, mark), weight, rate in zip(marks.items(), weights, rates, strict=True)
        )

    @staticmethod
    def _values(expression: RecordExpression | None, table: Mapping[str, Float64s], size: int) -> list[float]:
        if expression is None or not size:
            return [float("nan")] * size
        values = expression.values(table)
        found: list[float] = np.where(is_usable(values), values, np.nan).tolist()
        return found


def _number(cell: object) -> float:
    """Return a cell as a number; NaN if it is none."""
    if isinstance(cell, bool) or cell is None:
        return float("nan")
    try:
        return float(str(cell))
    except ValueError:
        return float("nan")


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value
