"""Notices: hints from outside that an item changed, of unknown recall and with false ones among them.

Changes of rate λ are each announced with probability ρ, false notices come at a rate ν. Given n notices in a
time τ, P(fresh) = e^{−E}, E = (1−ρ)λτ + n·ln(1+ρλ/ν). Both are learned from the polls: in an interval
without a change all notices are false, which gives ν; what is left over the changes expected gives ρ.
"""

from __future__ import annotations

import numpy as np

from afresh.rates.observations import Bools, Float64s, Ints

CAUTION = 3.0  # changes' worth of doubt
LEAST_FALSE = 1e-6  # of the mean frequency: notices are never beyond doubt


class Notices:
    """Counts of notices since each item's last poll, and what notices have been worth.

    >>> notices = Notices(2, frequency=1.0)
    >>> for _ in range(50):                                   # item 0 is announced and changes, 1 neither
    ...     notices.hear(np.array([0]))
    ...     notices.learn(np.array([0, 1]), np.ones(2), np.array([True, False]), np.array([1.0, 0.01]))
    >>> bool(notices.recall > 0.5), bool(notices.false_rate < 0.05)
    (True, True)
    """

    def __init__(self, items: int, frequency: float) -> None:
        self.frequency = frequency
        self.number: Float64s = np.zeros(items)
        self.heard = self.quiet_heard = self.quiet_time = self.time = self.changes = 0.0

    @property
    def false_rate(self) -> float:
        """ν, of one item."""
        prior = CAUTION * LEAST_FALSE * self.frequency
        rate = (self.quiet_heard + prior) / (self.quiet_time + CAUTION / self.frequency)
        return max(rate, LEAST_FALSE * self.frequency)

    @property
    def recall(self) -> float:
        """ρ; 0 until a notice has come."""
        if self.heard == 0:
            return 0.0
        told = self.heard - self.false_rate * self.time
        return float(np.clip(told / (self.changes + CAUTION), 0.0, 0.99))

    def hear(self, items: Ints) -> None:
        """Notices, one entry each."""
        np.add.at(self.number, items, 1.0)

    def expected(self, items: Ints, rates: Float64s) -> tuple[Float64s, float]:
        """n·ln(1+ρλ/ν) at each rate, a row per item, and ρ."""
        recall = self.recall
        each = np.log1p(recall * rates / self.false_rate)
        return np.asarray(self.number[items][:, None] * each), recall

    def learn(self, items: Ints, elapsed: Float64s, changed: Bools, rate: Float64s) -> None:
        """Polls of items; where a change was found, λτ/(1−e^{−λτ}) are expected."""
        number, expected = self.number[items], np.maximum(rate * elapsed, 1e-12)
        self.heard += float(number.sum())
        self.time += float(elapsed.sum())
        self.changes += float((expected / -np.expm1(-expected))[changed].sum())
        self.quiet_heard += float(number[~changed].sum())
        self.quiet_time += float(elapsed[~changed].sum())
        self.number[items] = 0.0

    def grow(self, items: int) -> None:
        """New items without notices."""
        self.number = np.concatenate([self.number, np.zeros(items)])
