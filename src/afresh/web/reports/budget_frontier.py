"""Computes the plan that the engine would reach at any budget, from its beliefs about the rates.

The engine polls an item when its poll value reaches the shadow price μ, which is τ(μ) seconds after the last
poll. So the plan at a budget is the price μ at which polling every item each τ(μ) seconds spends the budget
(τ differs from item to item). The belief about the rate λ of an item is a probability p for each rate of a
grid. The item's freshness is Σ p·F(λ, 1/τ) and its age Σ p·A(λ, 1/τ), where F is ``model.freshness`` and A is
``model.age``. The beliefs do not depend on the budget, so a larger budget never makes an item less fresh.

Plans are computed for prices that are powers of two. Between two such prices, frequencies are interpolated.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from afresh.engine.reporting.plan_sample import PlanSample
from afresh.policy.adaptive.poll_value import PollValue
from afresh.values.arrays import Float64s

_LOWEST, _HIGHEST = -120, 120  # the exponents of the lowest and the highest price, as powers of two
_LONGEST_S = 10 * 365.25 * 86400.0
_BLOCK_ROWS = 512  # bounds the memory that one call of PollValue takes


@dataclass(slots=True)
class BudgetFrontier:
    """Plans for any budget and one objective. Polls with a poll value below ``least_price`` are not made."""

    sample: PlanSample
    objective: str
    least_price: float = 0.0
    _frequencies: dict[int, Float64s] = field(default_factory=dict)

    def plan_at(self, budget: float) -> tuple[Float64s, float]:
        """Return a tuple (polls per second of each item, shadow price); the budget is in costs per second."""
        low, high = _LOWEST, _HIGHEST  # The budget pays for the price 2^high, and not for 2^low.
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._spend(middle) <= budget else (middle, high)
        less, more = self._spend(high), self._spend(low)
        share = min(max((budget - less) / (more - less), 0.0), 1.0) if more > less else 0.0
        price = 2.0 ** (high - share)
        if price < self.least_price:
            return self._frequency(self.least_price), self.least_price
        rarer, oftener = self._at_power(high), self._at_power(low)
        return rarer + share * (oftener - rarer), price

    def _spend(self, power: int) -> float:
        return float(self._at_power(power) @ self.sample.cost)

    def _at_power(self, power: int) -> Float64s:
        if power not in self._frequencies:
            self._frequencies[power] = self._frequency(2.0**power)
        return self._frequencies[power]

    def _frequency(self, price: float) -> Float64s:
        sample, posteriors = self.sample, self.sample.posteriors
        poll_value = PollValue(self.objective, posteriors.ladder)
        goal = price / np.maximum(sample.value_per_cost, 1e-270)
        blocks = [slice(begin, begin + _BLOCK_ROWS) for begin in range(0, goal.size, _BLOCK_ROWS)]
        after_s = np.concatenate(
            [
                poll_value.exact_time_to_reach(
                    posteriors.mass[rows], posteriors.rates[rows], goal[rows], _LONGEST_S
                )
                for rows in blocks
            ]
        )
        return np.asarray(1.0 / np.minimum(np.maximum(after_s, sample.min_interval_s), sample.max_interval_s))
