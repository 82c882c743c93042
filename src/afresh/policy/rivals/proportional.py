"""Proportional: the frequency is proportional to the estimated rate (Cho & Garcia-Molina 2000, §4.3).

The rate is Cho's estimate −ln((n−X+½)/(n+½))·n/t from n polls over a time t with X changes found. It is what
intuition suggests, and by theory it is never fresher than uniform, whatever the rates.
"""

from __future__ import annotations

import numpy as np

from afresh.policy.policy import PolicyInput
from afresh.policy.rivals.ranking_policy import IntervalPolicy
from afresh.values.arrays import ArrayLike, Bools, Float64s, Ints


class Proportional(IntervalPolicy):
    """Intervals ∝ 1/rate; re-scaled to the budget at every refit.

    >>> policy = Proportional(PolicyInput.of(2, 1.0))
    >>> policy.observe([0, 1], 2.0, [True, False])
    >>> policy.refit(2.0); bool(policy.due[0] < policy.due[1])
    True
    """

    def __init__(self, start: PolicyInput) -> None:
        super().__init__(start)
        self.first_poll: Float64s = self.items.last_poll.copy()
        self.polled: Float64s = np.zeros(start.items)
        self.changed: Float64s = np.zeros(start.items)
        self.last_refit = start.now

    def next_due(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        """One interval later."""
        self.polled[items] += 1
        self.changed[items] += changed
        self.items.last_poll[items] = now
        if now.size and now.max() - self.last_refit > self.round:
            self.refit(float(now.max()))
        return np.asarray(now + self.interval[items])

    def rates(self) -> Float64s:
        """Cho's estimate of each rate; before any poll, what one round without a change would give."""
        polled = np.maximum(self.polled, 1.0)
        time = np.where(self.polled > 0, self.items.last_poll - self.first_poll, self.round)
        ratio = (polled - self.changed + 0.5) / (polled + 0.5)
        # Polls that found nothing give a rate of ln 1 = 0: half a change over all its time, or it would
        # starve.
        per_poll = np.maximum(-np.log(ratio), 0.5 / polled)
        return np.asarray(per_poll * polled / np.maximum(time, 1e-6 * self.round))

    def refit(self, now: float) -> None:
        """Set the intervals from all rates such that Σ c·f is the budget."""
        rate = np.where(self.items.alive, self.rates(), 0.0)
        scale = self.items.budget / max(float(self.items.cost @ rate), np.finfo(float).tiny)
        self.interval = 1.0 / np.maximum(rate * scale, 1e-3 / self.round)
        self.due = self.items.last_poll + self.interval
        self.last_refit = now

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        """Add new items; returns their numbers."""
        numbers = super().add(weights, costs, now, families)
        self.first_poll = np.concatenate([self.first_poll, np.full(numbers.size, now)])
        self.polled = np.concatenate([self.polled, np.zeros(numbers.size)])
        self.changed = np.concatenate([self.changed, np.zeros(numbers.size)])
        return numbers

    def set_budget(self, budget: float, now: float) -> None:
        """Set another budget and re-scale the intervals to it."""
        super().set_budget(budget, now)
        self.refit(now)
