"""Apache Nutch's adaptive rule: the interval × 0.8 after a change, × 1.4 otherwise.

With sync: where δ, the time since the last change seen, exceeds the interval I, then I = δ, and the next poll
is at now − 0.3δ + I.
"""

from __future__ import annotations

import numpy as np

from afresh.policy.policy import PolicyInput
from afresh.policy.rivals.overdue import IntervalPolicy
from afresh.values.arrays import ArrayLike, Bools, Float64s, Ints

DECREASE, INCREASE, SYNC = 0.8, 1.4, 0.3
LEAST, MOST = 2.3e-5, 12.2  # of the interval in rounds: a minute and a year to its first, 30 days, by default


class Nutch(IntervalPolicy):
    """Multiplies intervals; without sync.

    >>> policy = Nutch(PolicyInput.of(2, 1.0))
    >>> policy.observe([0, 1], 2.0, [True, False]); policy.interval.round(6).tolist()
    [1.6, 2.8]
    """

    sync = False

    def __init__(self, start: PolicyInput) -> None:
        super().__init__(start)
        self.interval: Float64s = np.full(start.items, self.round)
        self.seen: Float64s = np.full(start.items, start.now)

    def after(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        """The rule."""
        interval = self.interval[items] * np.where(changed, DECREASE, INCREASE)
        interval = np.clip(interval, LEAST * self.round, MOST * self.round)
        self.seen[items] = np.where(changed, now, self.seen[items])
        reference = now
        if self.sync:
            delta = now - self.seen[items]
            interval = np.maximum(interval, delta)
            reference = now - SYNC * delta
        # I = δ has no upper limit: cut off, what has long been quiet would be due in the past, for ever.
        self.interval[items] = interval
        return np.asarray(reference + self.interval[items])

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        """New items start with an interval of one round."""
        numbers = super().add(weights, costs, now, families)
        self.interval = np.concatenate([self.interval, np.full(numbers.size, self.round)])
        self.seen = np.concatenate([self.seen, np.full(numbers.size, now)])
        return numbers


class NutchSync(Nutch):
    """The same with sync."""

    sync = True
