"""An allocation problem in arrays: what refreshing gains, what it costs, and within which limits.

Maximise Σ wᵢ·valueᵢ(fᵢ) over frequencies f with Σ spendᵢ(fᵢ) ≤ B and lowerᵢ ≤ fᵢ ≤ upperᵢ. A refresh costs c
and, where it finds a change, c_u more; in fixed order that is c·f + c_u·λ·F per time, since f(1−e^{−r}) = λF.
At a price μ of one unit of spend the best frequency of an item solves w·value' = μ(c + c_u·λ·F').
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from afresh.allocation.gains import Gains
from afresh.values.arrays import Bools, Float64s, Ints
from afresh.values.errors import InfeasibleError

_ROUNDING = 1e-12  # lower bounds that use up a budget or cap to the last digit are fine


@dataclass(frozen=True, slots=True)
class GroupCaps:
    """Groups with a limited spend: item i is under ``cap[group[i]]``, or free if that is past the end."""

    group: Ints
    cap: Float64s
    labels: tuple[Hashable, ...]

    def sums(self, per_item: Float64s) -> Float64s:
        """Sum of ``per_item`` over each group."""
        sums = np.bincount(self.group, weights=per_item, minlength=len(self.cap) + 1)[:-1]
        return sums.astype(np.float64, copy=False)  # of no items at all they are integers

    def spread(self, per_group: Float64s, elsewhere: float) -> Float64s:
        """``per_group`` for every item, ``elsewhere`` for those without a group."""
        return np.append(per_group, elsewhere)[self.group]


@dataclass(frozen=True, slots=True)
class AllocationProblem:
    """The items and their limits, one number per item.

    ``gains`` is what the plan maximises; ``freshness`` and ``age`` (negative) are only reported.
    """

    rate: Float64s
    weight: Float64s
    cost: Float64s
    gains: Gains
    freshness: Gains
    age: Gains
    update_cost: Float64s | None = None
    lower: Float64s | None = None
    upper: Float64s | None = None
    caps: GroupCaps | None = None

    def active(self) -> Bools:
        """Items that change and matter: the others never get more than their floor."""
        return (self.rate > 0) & (self.weight > 0)

    def floor(self) -> Float64s:
        """The least frequencies allowed."""
        return np.zeros(len(self.rate)) if self.lower is None else self.lower

    def plan(self, price: float | Float64s) -> Float64s:
        """The best frequencies when one unit of spend costs ``price`` (one for all, or each its own)."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            frequency = self.gains.frequency(self._threshold(price))
        if self.lower is not None or self.upper is not None:
            frequency = np.clip(frequency, self.lower, self.upper)
        return frequency

    def _threshold(self, price: float | Float64s) -> Float64s:
        """The marginal at which a refresh is worth its price: μc/(w−μ·c_u·λ), infinite where it never is."""
        worth = self.weight
        if self.update_cost is not None:
            worth = worth - price * self.update_cost * self.rate
        threshold = price * self.cost / worth
        return np.where(self.active() & (worth > 0), threshold, np.inf)

    def spends(self, frequency: Float64s) -> Float64s:
        """Cost per time of each item at these frequencies."""
        spends = self.cost * frequency
        if self.update_cost is not None:
            spends = spends + self.update_cost * self.rate * self.freshness.value(frequency)
        return spends

    def spend(self, frequency: Float64s) -> float:
        """Cost per time of all."""
        return float(self.spends(frequency).sum())

    def values(self, frequency: Float64s) -> Float64s:
        """Weighted value of each active item, 0 for the others."""
        with np.errstate(invalid="ignore"):  # weight 0 times an infinite loss
            return np.where(self.active(), self.weight * self.gains.value(frequency), 0.0)

    def max_plan(self) -> Float64s:
        """The best frequencies when spend costs nothing: ceilings where there are, infinite elsewhere."""
        frequency = np.where(self.active(), self.gains.max_frequency(), 0.0)
        if self.lower is not None or self.upper is not None:
            frequency = np.clip(frequency, self.lower, self.upper)
        return frequency

    def prices(self, frequency: Float64s | None = None) -> Float64s:
        """Gain per further unit of spend on each item; 0 for static and unweighted ones.

        Without frequencies, at the floor: the price at which an item first gets more than that.
        """
        if frequency is None:
            frequency = self.lower
        with np.errstate(invalid="ignore", over="ignore"):
            marginal = self.gains.max_marginal() if frequency is None else self.gains.marginal(frequency)
            outlay = self.cost
            if self.update_cost is not None:
                outlay = outlay + self.update_cost * self.rate * marginal
            return np.where(self.active(), self.weight * marginal / outlay, 0.0)

    def mean_freshness(self, frequency: Float64s) -> float:
        """Σ w·F/Σ w; static items are always fresh. Where nothing has weight, nothing is stale: 1."""
        fresh = np.where(self.rate > 0, self.freshness.value(frequency), 1.0)
        total = self.weight.sum()
        return float((self.weight * fresh).sum() / total) if total > 0 else 1.0

    def mean_age(self, frequency: Float64s) -> float:
        """Σ w·A/Σ w; static items have age 0, a changing item never refreshed an infinite one."""
        active = self.active()
        total = self.weight.sum()
        if total == 0:
            return 0.0
        if (active & (frequency == 0)).any():
            return float("inf")
        age = np.where(active, -self.age.value(frequency), 0.0)
        return max(0.0, float((self.weight * age).sum() / total))

    def check_bounds(self) -> None:
        """Refuse lower bounds above upper bounds, and lower bounds that break the cap of their group."""
        if self.lower is None:
            return
        if self.upper is not None and (self.lower > self.upper).any():
            item = int(np.argmax(self.lower > self.upper))
            raise InfeasibleError(
                f"item {item} has lower bound {self.lower[item]:g} above upper bound {self.upper[item]:g}, "
                f"by {self.lower[item] - self.upper[item]:g}"
            )
        if self.caps is not None:
            floors = self.caps.sums(self.spends(self.lower))
            over = floors > self.caps.cap * (1 + _ROUNDING)
            if over.any():
                row = int(np.argmax(over))
                raise InfeasibleError(
                    f"group {self.caps.labels[row]!r} needs {floors[row]:g} for its lower bounds, "
                    f"{floors[row] - self.caps.cap[row]:g} more than its cap of {self.caps.cap[row]:g}"
                )

    def floor_spend(self, budget: float) -> float:
        """What the lower bounds alone cost per time; refused if that is above the budget."""
        floor = self.spend(self.floor())
        if floor > budget * (1 + _ROUNDING):
            raise InfeasibleError(
                f"the lower bounds need a budget of {floor:g}: {floor - budget:g} more than {budget:g}"
            )
        return floor
