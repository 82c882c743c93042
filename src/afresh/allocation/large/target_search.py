"""Budgets of very many items: the least one for a target freshness, and a range of them, from a histogram.

The histogram gives the freshness at any cut-off, but not exactly. So the exact freshness F of the plan found
is compared with the target, and the budget is corrected by (target − F)·Σw/μ, since the multiplier μ is the
gain in Σ w·F per unit of budget. The error is then of second order."""

from __future__ import annotations

import math

import numpy as np

from afresh.allocation.large.cutoff import Cutoff
from afresh.allocation.large.histogram import Histogram
from afresh.allocation.large.plan_search import FoundPlan, PlanPasses, find_plan
from afresh.model.roots import HUGE, TINY, solve_decreasing
from afresh.values.arrays import Float64s
from afresh.values.errors import InfeasibleError, UsageError

_POINTS = 41
_GOOD_FRESHNESS = 1e-9
_TRIES = 4


def find_budget(
    passes: PlanPasses, target: float, histogram: Histogram | None = None
) -> tuple[float, FoundPlan]:
    """Return a tuple (budget, plan): the least budget whose plan has the mean freshness ``target``."""
    if not 0 <= target <= 1:
        raise UsageError(f"a freshness of {target:g} is no target: give a number from 0 to 1")
    histogram = passes.build_histogram() if histogram is None else histogram
    least = histogram.static_weight / histogram.total_weight if histogram.total_weight > 0 else 1.0
    if target <= least:
        return 0.0, find_plan(passes, 0.0, histogram)
    if target == 1:
        raise InfeasibleError("no finite budget reaches freshness 1: 1 is only the limit")
    budget = histogram.spend(cutoff_for(histogram, target))
    for _ in range(_TRIES):
        found = find_plan(passes, budget, histogram)
        missing = target - found.freshness
        if abs(missing) <= _GOOD_FRESHNESS:
            break
        budget = max(budget + missing * found.total_weight / found.multiplier, 0.0)
    return budget, found


def cutoff_for(histogram: Histogram, target: float) -> Cutoff:
    """Return the cut-off of the plan with about this mean freshness, which must lie between that of static
    items alone and 1."""
    odds = target / (1 - target)

    def scores(multiplier: Float64s) -> Float64s:
        fresh = np.array([histogram.freshness(Cutoff(1 / float(each))) for each in multiplier])
        return np.asarray(fresh / (1 - fresh) / odds)

    high = min(2 / float(histogram.start.view(np.float64)[0]), HUGE)
    middle = 1 / math.sqrt(
        float(histogram.start.view(np.float64)[0]) * float(histogram.start.view(np.float64)[-1])
    )
    found = solve_decreasing(scores, 1.0, np.clip(middle, TINY, high / 2), high=high, rtol=1e-9)
    return Cutoff(1 / float(found.low[0]))


def curve_cutoffs(histogram: Histogram) -> list[Cutoff]:
    """Return the cut-offs of plans whose budgets are in geometric progression, and which gain 1 % to 99 % of
    the reachable freshness; none if no item can gain."""
    if not len(histogram.start):
        return []
    least = histogram.static_weight / histogram.total_weight
    ends = [cutoff_for(histogram, least + share * (1 - least)) for share in (0.01, 0.99)]
    first, last = (histogram.spend(cutoff) for cutoff in ends)
    cutoffs: list[Cutoff] = []
    for budget in np.geomspace(first, last, _POINTS):
        cutoffs.append(histogram.solve(float(budget), near=cutoffs[-1] if cutoffs else None))
    return cutoffs
