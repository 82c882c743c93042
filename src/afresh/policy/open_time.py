"""Open time: the windows in which polling is allowed (Cho & Garcia-Molina 2000, §3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import ArrayLike, Float64s
from afresh.values.errors import InputError


@dataclass(frozen=True, slots=True)
class OpenTime:
    """Windows ``[opens[j], closes[j])`` in order, which do not overlap.

    >>> nights = OpenTime.of([0.0, 24.0], [6.0, 30.0])
    >>> nights.is_open(3.0), nights.is_open(6.0)
    (True, False)
    """

    opens: Float64s
    closes: Float64s

    @classmethod
    def of(cls, opens: ArrayLike, closes: ArrayLike) -> OpenTime:
        """From lists of beginnings and ends; refuses empty, unsorted and overlapping windows."""
        begin, end = np.asarray(opens, dtype=np.float64), np.asarray(closes, dtype=np.float64)
        if begin.shape != end.shape or begin.ndim != 1 or begin.size == 0:
            raise InputError("windows need as many closing as opening times, one at least")
        if not (np.all(begin < end) and np.all(end[:-1] <= begin[1:])):
            raise InputError("windows must close after they open and follow each other")
        return cls(begin, end)

    def is_open(self, now: float) -> bool:
        """Whether polling is allowed at this moment."""
        at = int(np.searchsorted(self.opens, now, side="right")) - 1
        return bool(at >= 0 and now < self.closes[at])
