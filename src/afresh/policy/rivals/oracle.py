"""The oracle: it knows each item's mean rate. Not a rival, but the measure of how much there is to gain.

It polls the largest w·λ^{−p}·marginal(λτ)/c (for freshness w·g(λτ)/(cλ)), which runs the continuous optimum.
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.objectives.registry import objective_for
from afresh.policy.policy import PolicyInput, as_poll_arrays
from afresh.policy.rivals.ranking_policy import RankingPolicy
from afresh.values.arrays import ArrayLike, Float64s, Ints
from afresh.values.errors import UsageError


class Oracle(RankingPolicy):
    """Knows the rates and nothing else; ignores notices, needs no budget.

    >>> from dataclasses import replace
    >>> policy = Oracle(replace(PolicyInput.of(3, 1.0), rates=np.array([0.1, 1.0, 50.0])))
    >>> policy.next(1.0, 3).tolist()
    [1, 0, 2]
    """

    def __init__(self, start: PolicyInput) -> None:
        if start.rates is None:
            raise UsageError("the oracle needs the true rates")
        super().__init__(start)
        self.rate: Float64s = np.asarray(start.rates, dtype=np.float64)
        self.objective = objective_for(start.objective, "fixed")

    def urgency(self, now: float) -> Float64s:
        """The poll value of every item."""
        elapsed = np.maximum(now - self.items.last_poll, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = self.objective.marginal(self.rate * elapsed) / self.rate**self.objective.power
        return np.asarray(np.where(self.rate > 0, gain, 0.0) * self.items.weight / self.items.cost)

    def observe(self, items: ArrayLike, now: ArrayLike, changed: ArrayLike) -> None:
        """Note when items were polled; there is nothing to learn."""
        which, when, _ = as_poll_arrays(items, now, changed)
        self.items.last_poll[which] = when

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        """Add new items, which are taken to change like the mean of the others; returns their numbers."""
        numbers = super().add(weights, costs, now, families)
        self.rate = np.concatenate([self.rate, np.full(numbers.size, self.rate.mean())])
        return numbers
