"""A first guess of the multiplier for many items, accurate to five or six digits, from a small histogram.

Every objective scales with time: with s = cλ^p/w the spend is C(μ) = Σ cλ/inverse(μs), so it depends on the
items only through the mass cλ at each s. The mass is put into bins of log s, each at its own centre of mass,
and the root is found on the bins. Where items can be dropped, the spend has infinite slope at the edge
μs = top; the few items near it are then taken singly and the root is found once more.
"""

from __future__ import annotations

import math

import numpy as np

from afresh.allocation.gains import RateGains
from afresh.allocation.objectives.objective import Objective
from afresh.allocation.problem import AllocationProblem
from afresh.model.roots import HUGE, solve_decreasing
from afresh.values.arrays import Float64s

_BINS = 2048
_EDGE_BINS = 3


def first_multiplier(problem: AllocationProblem, gains: RateGains, budget: float) -> tuple[float, float]:
    """μ with C(μ) ≈ budget, bounds apart, and the slope dlog C/dlog μ there."""
    active = problem.active()
    rate, cost, weight = problem.rate[active], problem.cost[active], problem.weight[active]
    mass = cost * rate
    scale = np.log(mass / weight if gains.objective.power == 1 else mass * rate / weight)
    low = float(scale.min())
    width = max(float(scale.max()) - low, 1e-12) / _BINS
    points = _bin_masses(scale, mass, low, width)
    price, slope = _root(gains.objective, *points, budget, math.exp(-float(np.median(points[0]))))
    if math.isinf(gains.objective.top):
        return price, slope
    near = np.abs(scale - math.log(gains.objective.top / price)) < _EDGE_BINS * width
    centre, total = _bin_masses(scale[~near], mass[~near], low, width)
    points = np.append(centre, scale[near]), np.append(total, mass[near])
    return _root(gains.objective, *points, budget, price)


def _bin_masses(scale: Float64s, mass: Float64s, low: float, width: float) -> tuple[Float64s, Float64s]:
    """The mass of each bin that has any, and where its centre lies."""
    row = np.minimum(((scale - low) / width).astype(np.int64), _BINS - 1)
    total = np.bincount(row, weights=mass, minlength=_BINS).astype(np.float64, copy=False)
    centre = np.bincount(row, weights=mass * scale, minlength=_BINS).astype(np.float64, copy=False)
    filled = total > 0
    return centre[filled] / total[filled], total[filled]


def _root(
    objective: Objective, scale: Float64s, mass: Float64s, budget: float, guess: float
) -> tuple[float, float]:
    position = np.exp(scale)

    def spend(price: Float64s) -> Float64s:
        r = objective.inverse(np.multiply.outer(price, position))
        return np.asarray((mass / r).sum(axis=-1))

    high = min(objective.top / float(position.min()), HUGE)
    bracket = solve_decreasing(spend, budget, guess, high=high, rtol=1e-9)
    price, step = float(bracket.low[0]), 1 + 1e-4
    with np.errstate(divide="ignore", invalid="ignore"):
        around = np.log(spend(np.array([price / step, price * step])))
        slope = float(around[1] - around[0]) / (2 * math.log(step))
    return price, slope if -100 < slope < 0 else -0.5
