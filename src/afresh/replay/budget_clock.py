"""When a budget has earned its polls: cost accrues evenly in open time and is then spent."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from afresh.policy.open_time import OpenTime
from afresh.values.arrays import Float64s

ROUNDING = 1e-12  # of the open time: what is earned at the very close of a window is spent before it closes


class BudgetClock:
    """Converts cost spent into moments; with windows the whole budget of ``length`` is spent in less time.

    >>> clock = BudgetClock(OpenTime.of([0.0, 24.0], [6.0, 30.0]), budget=0.5, length=48.0)
    >>> clock.moments(np.array([1.0, 12.0, 13.0, 24.0])).tolist()    # half an hour each
    [0.5, 6.0, 24.5, 30.0]
    >>> clock.now(12.0), clock.now(24.0)
    (24.0, None)
    """

    def __init__(self, open_time: OpenTime, budget: float, length: float) -> None:
        self.open_time = open_time
        self.before: Float64s = np.concatenate([[0.0], np.cumsum(open_time.closes - open_time.opens)])
        self.starts: list[float] = self.before[:-1].tolist()
        self.total = float(self.before[-1])
        self.per_cost = self.total / (budget * length)  # open time that earns a cost of 1

    def now(self, spent: float) -> float | None:
        """When the next poll may be decided on after spending so much; None when the time is over."""
        elapsed = spent * self.per_cost
        if elapsed >= self.total:
            return None
        at = bisect_right(self.starts, elapsed) - 1
        return float(self.open_time.opens[at]) + (elapsed - self.starts[at])

    def moments(self, spent: Float64s) -> Float64s:
        """When each cost has been earned, the close of a window included; infinite if never."""
        elapsed = spent * self.per_cost
        least = elapsed * (1.0 - ROUNDING)
        at = np.searchsorted(self.before[1:], least, side="left")
        never = at == self.open_time.opens.size
        at[never] = 0
        inside = self.open_time.opens[at] + (elapsed - self.before[at])
        return np.where(never, np.inf, np.minimum(inside, self.open_time.closes[at]))

    def share(self, spent: float) -> float:
        """The share of the open time that is over."""
        return min(spent * self.per_cost / self.total, 1.0)
