"""What every budget gives, by what the engine itself believes and does.

The engine polls an item when its worth reaches a level μ; what is believed of a rate is a distribution p on a
ladder of rates. So the plan at a budget is the level at which polls so often, 1/τ(μ), spend it, and the
freshness and age then are Σ p·F(λ, 1/τ) and Σ p·A(λ, 1/τ) (``model.freshness``, ``model.age``). A belief does
not depend on the budget: more of it never makes anything less fresh.

Levels are powers of two, whatever the budget; between two of them frequencies are taken as linear.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from afresh.allocation.allocate import allocate
from afresh.engine.mind.row_policy import RowPolicy
from afresh.model.freshness import age, freshness
from afresh.policy.adaptive.poll_value import PollValue
from afresh.values.arrays import Float64s

_LOWEST, _HIGHEST = -120, 120  # levels as powers of two
_LONGEST_S = 10 * 365.25 * 86400.0
_BLOCK = 512


@dataclass(frozen=True, slots=True)
class Believed:
    """What is believed of some items: a row of ``mass`` on ``rates`` each, rates per second.

    ``ladder`` are the rates before what is known of single items moves them, ``prior`` what is believed of an
    item that was never polled; ``worth_of_one`` is the weight per cost that they are ranked by, ``cost`` what
    a poll takes of the budget.
    """

    ladder: Float64s
    prior: Float64s
    mass: Float64s
    rates: Float64s
    worth_of_one: Float64s
    cost: Float64s
    shortest_s: Float64s
    longest_s: Float64s

    @classmethod
    def of(cls, policy: RowPolicy, rows: npt.NDArray[np.intp]) -> Believed:
        """These rows of a policy; what their families bring comes on top of their own rates."""
        mind, memory = policy.ranking.policy, policy.memory
        rates = mind.calibration.factors(rows)[:, None] * mind.belief.rates
        if mind.shocks is not None:
            rates = rates + mind.shocks.rate(rows)[:, None]
        mass = mind.belief.posteriors(rows)
        return cls(
            mind.belief.rates,
            mind.belief.prior,
            mass / mass.sum(axis=1, keepdims=True),
            rates,
            memory.ranked_weight(rows) / memory.ranked_cost(rows),
            memory.cost[rows],
            memory.min_interval_s[rows],
            memory.max_interval_s[rows],
        )

    def median(self) -> Float64s:
        """The median of each rate, on the ladder."""
        place = np.argmax(np.cumsum(self.mass, axis=1) >= 0.5, axis=1)
        return np.asarray(np.take_along_axis(self.rates, place[:, None], axis=1)[:, 0])

    def fresh(self, frequency: Float64s) -> Float64s:
        """The share of time for which each copy is right, polled so often."""
        return np.asarray(np.sum(self.mass * self.fresh_at(frequency), axis=1))

    def fresh_at(self, frequency: Float64s) -> Float64s:
        """The same at each rate that it may have."""
        return np.asarray(freshness(self.rates, frequency[:, None]))

    def fresh_once_known(self, objective: str, budget: float, share: Float64s) -> float:
        """The freshness of the best plan at a budget, were it known which item has which rate."""
        items = self.mass.sum(axis=0)
        some = items > 1e-9 * len(self.mass)
        rates = (self.mass * self.rates).sum(axis=0)[some] / items[some]
        weights, costs = (share @ self.mass)[some], (self.cost @ self.mass)[some]
        return allocate(rates, budget, weights=weights, costs=costs, objective=objective).freshness

    def evidence(self) -> Float64s:
        """What polls say of each rate, whatever was believed before; at most 1 in every row."""
        found = self.mass / self.prior
        return np.asarray(found / np.maximum(found.max(axis=1, keepdims=True), 1e-300))

    def ages(self, frequency: Float64s) -> Float64s:
        """The mean age of each copy; infinite where it is never polled."""
        polled = frequency > 0
        found = np.full(frequency.size, np.inf)
        found[polled] = np.sum(
            self.mass[polled] * age(self.rates[polled], frequency[polled][:, None]), axis=1
        )
        return found


@dataclass(slots=True)
class Frontier:
    """The plans of all budgets for one objective; no level below ``floor`` is paid for."""

    items: Believed
    objective: str
    floor: float = 0.0
    _known: dict[int, Float64s] = field(default_factory=dict)

    def at(self, budget: float) -> tuple[Float64s, float]:
        """How often each item is polled at a budget, and the level at which it is."""
        low, high = _LOWEST, _HIGHEST  # the budget pays for the level 2^high, and not for 2^low
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._spend(middle) <= budget else (middle, high)
        less, more = self._spend(high), self._spend(low)
        share = min(max((budget - less) / (more - less), 0.0), 1.0) if more > less else 0.0
        level = 2.0 ** (high - share)
        if level < self.floor:
            return self._frequency(self.floor), self.floor
        return self._at_power(high) + share * (self._at_power(low) - self._at_power(high)), level

    def _spend(self, power: int) -> float:
        return float(self._at_power(power) @ self.items.cost)

    def _at_power(self, power: int) -> Float64s:
        if power not in self._known:
            self._known[power] = self._frequency(2.0**power)
        return self._known[power]

    def _frequency(self, level: float) -> Float64s:
        items = self.items
        worth = PollValue(self.objective, items.ladder)
        goal = np.full(items.cost.size, level) / np.maximum(items.worth_of_one, 1e-270)
        parts = [slice(begin, begin + _BLOCK) for begin in range(0, items.cost.size, _BLOCK)]
        after_s = np.concatenate(
            [
                worth.exact_time_to_reach(items.mass[one], items.rates[one], goal[one], _LONGEST_S)
                for one in parts
            ]
        )
        return np.asarray(1.0 / np.minimum(np.maximum(after_s, items.shortest_s), items.longest_s))
