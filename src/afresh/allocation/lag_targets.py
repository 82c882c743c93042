"""Target lags: whether a budget of seconds lets every view stay within its target, and what budget would.

The lag of a view is the time since the oldest change that its last finished refresh lacks. A view that must
stay within the lag L, whose refresh takes c seconds and which changes λ times per second, is refreshed at the
latest every L + 1/λ seconds, because it is fresh for 1/λ seconds on average. So the targets need

    Σ c/(L + 1/λ) ≤ B                        where B is the budget in seconds of refreshing per second

A view that others are built on is refreshed with each of them if it is stale then, which adds
c·(1 − e^{−λP})/P for the view above with the period P = L + 1/λ. Its target is the least one of itself and of
the views above it (``inherit_targets``). Because a refresh of c seconds uses up the budget for c/B seconds, a
change may also have to wait for the refresh of another view. So each view needs, with the summed cost C of
its chain (itself and what it is built on), the time d until a change is seen, and the others' chains,

    L ≥ C + d + (max C of the others)/B
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import Bools, Float64s, Ints

_NEARLY = 1.0 - 1e-9  # a demand that equals the budget but for rounding fits


@dataclass(frozen=True, slots=True)
class LagJobs:
    """The views, one entry each. ``target_s`` is the target lag, infinite without one. ``cost_s`` is the
    duration of a refresh, 0 if unknown; ``rate_per_s`` the changes per second, infinite if unknown;
    ``delay_s`` the longest time until a change is seen. ``below`` has tuples (lower, upper): the upper view
    is built on the lower one, directly or not."""

    target_s: Float64s
    cost_s: Float64s
    rate_per_s: Float64s
    delay_s: Float64s
    weight: Float64s
    below: Sequence[tuple[int, int]] = ()

    def pairs(self) -> tuple[Ints, Ints]:
        """Return the lower and the upper views of ``below``, each as an array."""
        both = np.array(self.below, dtype=np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    @property
    def chain_cost_s(self) -> Float64s:
        """The summed cost of each view and of all views that it is built on."""
        lower, upper = self.pairs()
        total = self.cost_s.copy()
        np.add.at(total, upper, self.cost_s[lower])
        return total


@dataclass(frozen=True, slots=True)
class LagFeasibility:
    """Whether target lags fit a budget. ``demand`` is what all targets need, in seconds of refreshing per
    second. ``fits`` is False for the views whose target cannot be kept beside the others. For each of these
    the budget lacks ``demand_missing`` seconds per second for the sum above, with the targets that fit, and
    ``wait_missing`` for the wait for the longest other refresh; each is 0 if its condition holds.
    ``wait_missing`` is infinite if no budget suffices, because the target is not longer than ``least_s``, the
    duration of the refresh and the time until a change is seen. ``needed`` is the least budget for all
    targets that some budget can keep."""

    target_s: Float64s
    demand: float
    needed: float
    fits: Bools
    demand_missing: Float64s
    wait_missing: Float64s
    least_s: Float64s

    @property
    def missing(self) -> Float64s:
        """What the budget lacks for each target, by both conditions."""
        return np.maximum(self.demand_missing, self.wait_missing)


def inherit_targets(target_s: Float64s, below: Sequence[tuple[int, int]]) -> Float64s:
    """Return the targets in which a view has the least one of itself and of the views built on it.

    >>> inherit_targets(np.array([np.inf, 900.0, 300.0]), [(0, 1), (0, 2)]).tolist()
    [300.0, 900.0, 300.0]
    """
    found = target_s.copy()
    both = np.array(below, dtype=np.int64).reshape(-1, 2)
    np.minimum.at(found, both[:, 0], target_s[both[:, 1]])
    return found


def lag_demand(jobs: LagJobs, kept: Bools) -> Float64s:
    """Return what each view needs, in seconds of refreshing per second, if the targets of ``kept`` hold.

    >>> jobs = LagJobs(*(np.array(each) for each in ([100.0, 60.0], [2.0, 6.0], [np.inf, 1 / 60])),
    ...                np.zeros(2), np.ones(2))
    >>> lag_demand(jobs, np.array([True, True])).tolist()
    [0.02, 0.05]
    """
    target_s = np.where(kept, jobs.target_s, np.inf)
    with np.errstate(divide="ignore"):
        fresh_s = 1.0 / jobs.rate_per_s
    period_s = target_s + fresh_s
    frequency = 1.0 / period_s
    lower, upper = jobs.pairs()
    with np.errstate(invalid="ignore"):
        stale = -np.expm1(-jobs.rate_per_s[lower] * period_s[upper])
    with_upper = np.where(np.isfinite(period_s[upper]), stale / period_s[upper], 0.0)
    np.maximum.at(frequency, lower, with_upper)
    return np.asarray(jobs.cost_s * frequency)


def check_lags(jobs: LagJobs, budget: float) -> LagFeasibility:
    """Return which targets fit ``budget``, in seconds of refreshing per second, and what budget all need.

    Targets are admitted by weight, then by what they need, so that as many as possible fit. A target that
    does not fit is left out of the others' sum.

    >>> columns = [60.0, 60.0], [2.0, 6.0], [np.inf, np.inf], [5.0, 5.0], [1.0, 1.0]
    >>> found = check_lags(LagJobs(*map(np.array, columns)), 0.12)
    >>> found.fits.tolist(), round(found.needed, 4), found.missing.round(4).tolist()
    ([True, False], 0.1333, [0.0, 0.0133])
    """
    target_s = inherit_targets(jobs.target_s, jobs.below)
    jobs = LagJobs(target_s, jobs.cost_s, jobs.rate_per_s, jobs.delay_s, jobs.weight, jobs.below)
    wanted = np.isfinite(target_s)
    chain_s, waits = jobs.chain_cost_s, _longest_other_s(jobs)
    least_s = chain_s + jobs.delay_s
    room_s = target_s - least_s
    possible = wanted & (room_s > 0)
    needed_alone = np.where(possible, waits / np.where(possible, room_s, 1.0), 0.0)
    alone = lag_demand(jobs, wanted)
    fits = np.zeros(wanted.size, dtype=bool)
    wait_missing = np.where(needed_alone * _NEARLY > budget, needed_alone - budget, 0.0)
    wait_missing[wanted & ~possible] = np.inf
    for view in np.lexsort((alone, -jobs.weight)).tolist():
        if wanted[view] and wait_missing[view] == 0:
            fits[view] = _demand_with(jobs, fits, view) * _NEARLY <= budget
    demand_missing = np.zeros(wanted.size)
    for view in np.flatnonzero(wanted & ~fits).tolist():
        total = _demand_with(jobs, fits, view)
        demand_missing[view] = total - budget if total * _NEARLY > budget else 0.0
    demand = float(lag_demand(jobs, wanted).sum())
    reachable = float(lag_demand(jobs, possible).sum())
    needed = max(reachable, float(needed_alone.max(initial=0.0)))
    return LagFeasibility(target_s, demand, needed, fits, demand_missing, wait_missing, least_s)


def _demand_with(jobs: LagJobs, kept: Bools, view: int) -> float:
    """Return what the targets of ``kept`` and of ``view`` need together."""
    with_it = kept.copy()
    with_it[view] = True
    return float(lag_demand(jobs, with_it).sum())


def _longest_other_s(jobs: LagJobs) -> Float64s:
    """Return for each view the longest refresh of another chain, which it may have to wait for."""
    size = jobs.cost_s.size
    chain_s = jobs.chain_cost_s
    related = np.eye(size, dtype=bool)
    lower, upper = jobs.pairs()
    related[upper, lower] = related[lower, upper] = True  # a chain is one job, and does not wait for itself
    return np.asarray(np.where(related, 0.0, chain_s[None, :]).max(axis=1, initial=0.0))
