"""A first multiplier for many items, good to about six digits, from a small histogram.

Every objective scales with time: with s = cλ^p/w the spend is C(μ) = Σ cλ/inverse(μs), so it depends on the
items only through the mass cλ at each s. The mass is put into bins of log s, each at its own centre of mass,
and the root is found on the bins.
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.gains import RateGains
from afresh.allocation.problem import Problem
from afresh.allocation.roots import solve_decreasing
from afresh.model.curves import Float64s

_BINS = 2048


def first_multiplier(problem: Problem, gains: RateGains, budget: float) -> tuple[float, float]:
    """μ with C(μ) ≈ budget, bounds apart, and the slope dlog C/dlog μ there."""
    position, mass = _histogram(problem, gains)

    def spend(price: Float64s) -> Float64s:
        r = gains.objective.inverse(np.multiply.outer(price, position))
        return np.asarray((mass / r).sum(axis=-1))

    high = gains.objective.top / position.min()
    bracket = solve_decreasing(spend, budget, min(1 / np.median(position), high), high=high, rtol=1e-9)
    middle = bracket.low
    with np.errstate(divide="ignore", invalid="ignore"):
        rise = np.log(spend(middle * 1.0001) / spend(middle / 1.0001))
    return float(middle[0]), float(rise[0] / (2 * np.log(1.0001)))


def _histogram(problem: Problem, gains: RateGains) -> tuple[Float64s, Float64s]:
    """Centres of s and the mass cλ there, for the active items."""
    active = problem.active()
    rate, cost, weight = problem.rate[active], problem.cost[active], problem.weight[active]
    mass = cost * rate
    scale = np.log(mass / weight if gains.objective.power == 1 else mass * rate / weight)
    low, high = scale.min(), scale.max()
    width = max(high - low, 1e-12) / _BINS
    row = np.minimum(((scale - low) / width).astype(np.int64), _BINS - 1)
    total = np.bincount(row, weights=mass, minlength=_BINS).astype(np.float64, copy=False)
    filled = total > 0
    centre = np.bincount(row, weights=mass * scale, minlength=_BINS)[filled] / total[filled]
    return np.exp(centre), total[filled]
