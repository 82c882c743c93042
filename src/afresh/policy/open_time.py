"""Windows in which polling is allowed (synchronization points, Cho & Garcia-Molina 2000, §3).

Open time runs only while a window is open. A budget spread evenly over open time is spent exactly, and never
outside a window.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import ArrayLike, Float64s
from afresh.values.errors import InputError


@dataclass(frozen=True, slots=True)
class OpenTime:
    """Spans ``[opens[j], closes[j])`` in order, apart from each other.

    >>> nights = OpenTime.of([0.0, 24.0], [6.0, 30.0])
    >>> nights.is_open(3.0), nights.is_open(6.0), nights.elapsed(25.0)
    (True, False, 7.0)
    >>> nights.moment([3.0, 6.5]).tolist()
    [3.0, 24.5]
    """

    opens: Float64s
    closes: Float64s

    @classmethod
    def of(cls, opens: ArrayLike, closes: ArrayLike) -> OpenTime:
        """From lists of beginnings and ends; refuses what is empty, unsorted or overlapping."""
        begin, end = np.asarray(opens, dtype=np.float64), np.asarray(closes, dtype=np.float64)
        if begin.shape != end.shape or begin.ndim != 1 or begin.size == 0:
            raise InputError("windows need as many closing as opening times, one at least")
        if not (np.all(begin < end) and np.all(end[:-1] <= begin[1:])):
            raise InputError("windows must close after they open and follow each other")
        return cls(begin, end)

    @classmethod
    def always(cls, start: float, end: float) -> OpenTime:
        """Open from start to end."""
        return cls.of([start], [end])

    def is_open(self, now: float) -> bool:
        """Whether polling is allowed at this moment."""
        at = int(np.searchsorted(self.opens, now, side="right")) - 1
        return bool(at >= 0 and now < self.closes[at])

    @property
    def total(self) -> float:
        """All open time."""
        return float((self.closes - self.opens).sum())

    def elapsed(self, now: float) -> float:
        """Open time before ``now``."""
        return float(np.clip(now - self.opens, 0.0, self.closes - self.opens).sum())

    def moment(self, elapsed: ArrayLike) -> Float64s:
        """When so much open time has passed; infinite beyond the last window."""
        wanted = np.asarray(elapsed, dtype=np.float64)
        before = np.concatenate([[0.0], np.cumsum(self.closes - self.opens)])
        at = np.minimum(np.searchsorted(before, wanted, side="right") - 1, self.opens.size - 1)
        inside = self.opens[at] + (wanted - before[at])
        return np.asarray(np.where(wanted < before[-1], inside, np.inf))
