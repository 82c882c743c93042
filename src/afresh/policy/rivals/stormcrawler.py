"""StormCrawler's rule: after a change the interval halves its distance to the least, otherwise × 1.5."""

from __future__ import annotations

import numpy as np

from afresh.policy.policy import PolicyInput
from afresh.policy.rivals.overdue import IntervalPolicy
from afresh.values.arrays import ArrayLike, Bools, Float64s, Ints

INCREASE = 1.5
LEAST, MOST = 1 / 24, 14.0  # of the interval in rounds: an hour and two weeks to a first of a day


class StormCrawler(IntervalPolicy):
    """Changed: (I + min)/2. Unchanged: 1.5·I up to max.

    >>> policy = StormCrawler(PolicyInput.of(2, 1.0))
    >>> policy.observe([0, 1], 2.0, [True, False]); policy.interval.round(6).tolist()
    [1.041667, 3.0]
    """

    def __init__(self, start: PolicyInput) -> None:
        super().__init__(start)
        self.interval: Float64s = np.full(start.items, self.round)

    def after(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        """The rule."""
        interval = self.interval[items]
        longer = np.minimum(INCREASE * interval, MOST * self.round)
        self.interval[items] = np.where(changed, (interval + LEAST * self.round) / 2.0, longer)
        return np.asarray(now + self.interval[items])

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        """New items start with an interval of one round."""
        numbers = super().add(weights, costs, now, families)
        self.interval = np.concatenate([self.interval, np.full(numbers.size, self.round)])
        return numbers
