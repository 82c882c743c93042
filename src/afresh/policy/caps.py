"""Caps on the cost per time of groups of items, such as a host's politeness.

Each group has an allowance that fills at the rate of its cap and is spent by its polls. It never holds more
than one batch or one poll, whichever is more, so that idle time is not saved up for a burst.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import Bools, Float64s, Ints


@dataclass(slots=True)
class CapAllowances:
    """What each capped group may spend; item i is in ``group[i]``. Groups past ``cap`` have no limit.

    >>> caps = CapAllowances.of(np.array([0, 0, 1]), np.array([0.5]), np.ones(3), 0.0)
    >>> caps.allowed(np.array([0, 1, 2]), 4.0).tolist()       # cap · 4 = 2 polls
    [True, True, True]
    >>> caps.spend(np.array([0, 1]))
    >>> caps.allowed(np.array([0, 1, 2]), 5.0).tolist()
    [False, False, True]
    """

    group: Ints
    cap: Float64s
    cost: Float64s
    largest: Float64s
    allowance: Float64s
    at: float

    @classmethod
    def of(cls, group: Ints, cap: Float64s, cost: Float64s, now: float) -> CapAllowances:
        """Every group starts with an allowance of one poll."""
        largest = np.zeros(cap.size + 1)
        np.maximum.at(largest, np.minimum(group, cap.size), cost)
        return cls(group, cap, cost, largest[:-1], largest[:-1].copy(), now)

    def allowed(self, items: Ints, now: float) -> Bools:
        """Which of these items their groups can pay for; earlier items are paid for first."""
        if now > self.at:  # asked again at the same moment, the allowance is still there
            filled = self.cap * (now - self.at)
            self.allowance = np.minimum(self.allowance + filled, np.maximum(filled, self.largest))
            self.at = now
        group = np.minimum(self.group[items], self.cap.size)
        order = np.argsort(group, kind="stable")
        spent = np.cumsum(self.cost[items][order])
        starts = np.searchsorted(group[order], np.arange(self.cap.size + 1))
        before = np.concatenate([[0.0], spent])[starts]
        within = spent - before[group[order]]
        fits = within <= np.append(self.allowance, np.inf)[group[order]] * (1 + 1e-12)
        result = np.empty(items.size, dtype=bool)
        result[order] = fits
        return result

    def spend(self, items: Ints) -> None:
        """Pay for polls of these items."""
        group = np.minimum(self.group[items], self.cap.size)
        self.allowance -= np.bincount(group, self.cost[items], minlength=self.cap.size + 1)[:-1]

    def grow(self, cost: Float64s) -> None:
        """Add new items without a limit."""
        self.group = np.concatenate([self.group, np.full(cost.size, self.cap.size)])
        self.cost = np.concatenate([self.cost, cost])
