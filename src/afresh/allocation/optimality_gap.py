"""How far a plan can be from the best one: its gap to the dual bound.

For any price μ ≥ 0 of the budget and prices m_h of the groups (an item pays m = max(μ, m_h), ν_h = m_h − μ if
positive), weak duality bounds the value of every feasible plan by

    Σ [w·V(f(m)) − m·spend(f(m))] + μ·B + Σ ν_h·cap_h ,

f(m) the item's best frequency at price m within its own bounds. The gap is that bound less the plan's value,
summed item by item so that what is equal cancels before it is added up.
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.multiplier import OptimalPlan
from afresh.allocation.problem import AllocationProblem
from afresh.values.arrays import Float64s


def optimality_gap(
    problem: AllocationProblem, frequency: Float64s, budget: float, optimum: OptimalPlan
) -> float:
    """The most by which any plan can beat ``frequency`` in Σ w·value; 0 up to rounding at the optimum."""
    price, best = optimum.multiplier, optimum.best
    if np.isinf(price):
        return 0.0  # the lower bounds leave no other plan
    spends = problem.spends(frequency)
    bound = price * (budget - float(spends.sum()))
    prices: float | Float64s = price
    if problem.caps is not None:
        extra = np.maximum(optimum.group_price - price, 0.0)
        prices = price + problem.caps.spread(extra, 0.0)
        left = problem.caps.cap - problem.caps.sums(spends)
        priced = (extra > 0) & np.isfinite(extra)  # an infinite price leaves no choice, and so no gap
        bound += float((extra[priced] * left[priced]).sum())
        best = problem.plan(prices) if price > 0 else best
    if best is frequency:
        return max(0.0, bound)
    with np.errstate(invalid="ignore"):
        gained = problem.values(best) - problem.values(frequency)
        gained -= prices * (problem.spends(best) - spends)
    # Equal frequencies gain nothing, even where both values are infinite.
    return max(0.0, bound + float(np.where(best == frequency, 0.0, gained).sum()))
