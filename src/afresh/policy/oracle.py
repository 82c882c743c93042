"""The oracle: the index rule knowing each item's mean rate. Not a rival: the yardstick of what is to gain.

It polls the largest w·λ^{−p}·marginal(λτ)/c (for freshness w·g(λτ)/(cλ)), which runs the continuous optimum.
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.objectives import objective_for
from afresh.policy.policy import Start, best, polls
from afresh.policy.roster import Roster
from afresh.rates.observations import Float64s, Ints
from afresh.values.arrays import ArrayLike
from afresh.values.errors import UsageError


class Oracle:
    """Knows the rates and nothing else.

    >>> from dataclasses import replace
    >>> policy = Oracle(replace(Start.of(3, 1.0), rates=np.array([0.1, 1.0, 50.0])))
    >>> policy.next(1.0, 3).tolist()
    [1, 0, 2]
    """

    def __init__(self, start: Start) -> None:
        if start.rates is None:
            raise UsageError("the oracle needs the true rates")
        self.items = Roster(start)
        self.rate: Float64s = np.asarray(start.rates, dtype=np.float64)
        self.objective = objective_for(start.objective, "fixed")

    def values(self, now: float) -> Float64s:
        """The index of every item."""
        elapsed = np.maximum(now - self.items.last, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = self.objective.marginal(self.rate * elapsed) / self.rate**self.objective.power
        worth = np.where(self.rate > 0, gain, 0.0) * self.items.weight / self.items.cost
        return np.asarray(np.where(self.items.alive, worth, -1.0))

    def next(self, now: float, k: int) -> Ints:
        """The k items with the largest index."""
        alive = self.items.number
        return self.items.pick(now, k, lambda n: best(self.values(now), min(n, alive)))

    def observe(self, items: ArrayLike, now: ArrayLike, changed: ArrayLike) -> None:
        """The rates are known: only the clocks start anew."""
        which, when, _ = polls(items, now, changed)
        self.items.last[which] = when

    def notice(self, items: ArrayLike, now: ArrayLike, source: str = "") -> None:
        """The oracle takes no hints."""

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        """New items are taken to change as the mean of the others."""
        del families
        numbers = self.items.add(weights, costs, now)
        self.rate = np.concatenate([self.rate, np.full(numbers.size, self.rate.mean())])
        return numbers

    def remove(self, items: ArrayLike) -> None:
        """Never polled again."""
        self.items.remove(items)

    def reweigh(self, items: ArrayLike, weights: ArrayLike, costs: ArrayLike) -> None:
        """Another importance and cost."""
        self.items.reweigh(items, weights, costs)

    def set_budget(self, budget: float, now: float) -> None:
        """The index needs no budget."""
        del now
        self.items.set_budget(budget)

    def refit(self, now: float) -> None:
        """Nothing to learn."""
