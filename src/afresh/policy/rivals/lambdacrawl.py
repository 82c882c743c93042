"""LambdaCrawl (Kolobov et al. 2019), without notices: maximum likelihood, then the memoryless optimum.

The rate is the maximum of the likelihood of an item's polls with one pseudo-interval of each kind, a change
and none within one mean interval. Frequencies are the memoryless optimum for these rates (the harmonic one
where that is the objective), planned again twenty times in a round of all items.
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.allocate import allocate
from afresh.policy.policy import PolicyInput
from afresh.policy.rivals.ranking_policy import IntervalPolicy
from afresh.values.arrays import ArrayLike, Bools, Float64s, Ints

PLANS_PER_ROUND = 20
SPREAD, POINTS = 1e4, 60  # the likelihood is kept on a grid of rates this far around the mean frequency


class LambdaCrawl(IntervalPolicy):
    """Plans for estimated rates as if they were known.

    >>> policy = LambdaCrawl(PolicyInput.of(2, 1.0))
    >>> policy.rates().round(1).tolist()                 # one change, one none in a time of 2: ln 2 / 2
    [0.3, 0.3]
    """

    def __init__(self, start: PolicyInput) -> None:
        super().__init__(start)
        self.is_harmonic = start.objective == "harmonic"
        self.log_rates: Float64s = np.linspace(-1.0, 1.0, POINTS) * np.log(SPREAD) - np.log(self.round)
        self.likelihood = self._initial_likelihood(start.items)
        self.last_plan = start.now

    def next_due(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        """One interval later, by the current plan."""
        elapsed = np.maximum(now - self.items.last_poll[items], 0.0)
        self.likelihood[items] += _log_likelihood(elapsed, changed, self.log_rates)
        self.items.last_poll[items] = now
        if now.size and now.max() - self.last_plan > self.round / PLANS_PER_ROUND:
            self.refit(float(now.max()))
        return np.asarray(now + self.interval[items])

    def rates(self) -> Float64s:
        """The maximum of each likelihood, by the parabola through the highest point and its neighbours."""
        peak = np.clip(self.likelihood.argmax(axis=1), 1, POINTS - 2)
        rows = np.arange(len(peak))
        left, top, right = (self.likelihood[rows, peak + step].astype(np.float64) for step in (-1, 0, 1))
        bend = left - 2.0 * top + right
        shift = np.where(bend < 0, 0.5 * (left - right) / np.minimum(bend, -1e-300), 0.0)
        step = self.log_rates[1] - self.log_rates[0]
        return np.asarray(np.exp(self.log_rates[peak] + np.clip(shift, -1.0, 1.0) * step))

    def refit(self, now: float) -> None:
        """Plan the memoryless optimum for the rates as they are estimated now."""
        objective = "harmonic" if self.is_harmonic else "freshness"
        weight = np.where(self.items.alive, self.items.weight, 0.0)
        plan = allocate(
            self.rates(),
            self.items.budget,
            weights=weight,
            costs=self.items.cost,
            objective=objective,
            order="random",
        )
        self.interval = 1.0 / np.maximum(np.asarray(plan.frequency, dtype=np.float64), 1e-6 / self.round)
        self.due = self.items.last_poll + self.interval
        self.last_plan = now

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        """Add new items; returns their numbers."""
        numbers = super().add(weights, costs, now, families)
        self.likelihood = np.concatenate([self.likelihood, self._initial_likelihood(numbers.size)])
        return numbers

    def set_budget(self, budget: float, now: float) -> None:
        """Set another budget and plan for it."""
        super().set_budget(budget, now)
        self.refit(now)

    def _initial_likelihood(self, items: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        both = _log_likelihood(np.full(2, self.round), np.array([True, False]), self.log_rates).sum(axis=0)
        return np.tile(both.astype(np.float32), (items, 1))


def _log_likelihood(elapsed: Float64s, changed: Bools, log_rates: Float64s) -> Float64s:
    """ln(1 − e^{−λt}) or −λt, a row per poll."""
    expected = elapsed[:, None] * np.exp(log_rates)
    found = np.log(-np.expm1(-np.maximum(expected, 1e-300)))
    return np.asarray(np.where(changed[:, None], found, -expected))
