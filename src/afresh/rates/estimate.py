"""From the times of looks to rates: one item, or many at once with a prior learned across them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from afresh.rates.estimator import ESTIMATORS, Estimator
from afresh.rates.gamma_filter import GammaFilter
from afresh.rates.gamma_prior import GammaPrior, check_level, weak_prior
from afresh.rates.grid_posterior import GridPosterior
from afresh.rates.likelihood import rate_grid
from afresh.rates.observations import Float64s, Ints, Polls, polls_from_times, whole_numbers
from afresh.rates.prior import fit_gamma
from afresh.values.arrays import ArrayLike
from afresh.values.errors import InputError, UsageError, one_of
from afresh.values.results import RateEstimate, RateEstimates

DEFAULT_METHOD = "grid"  # the best measured across items; see docs/estimators.md


def estimate(
    times: ArrayLike,
    changed: ArrayLike,
    *,
    method: str = "gamma",
    level: float = 0.9,
    modified: ArrayLike | None = None,
    count: ArrayLike | None = None,
    reached: ArrayLike | None = None,
    prior: tuple[float, float] | None = None,
    horizon: float = math.inf,
) -> RateEstimate:
    """How often one item changes, from when it was looked at and whether it had changed.

    The first look only starts the clock. ``modified`` and ``count`` are what the source itself says (NaN
    where nothing), ``reached`` is false where a look failed. ``prior`` is (a, b): a changes in a time b;
    by default half a change in half a mean interval. Over a time ``horizon`` evidence fades to 1/e.

    >>> found = estimate([0, 1, 2, 3, 4], [False, True, False, False, True])
    >>> round(found.rate, 2), round(found.low, 2), round(found.high, 2), found.polls, found.changes
    (0.73, 0.14, 1.68, 4, 2)
    """
    looks = np.asarray(times)
    if looks.ndim != 1:
        raise InputError(f"times must be a list of times, not an array of {looks.ndim} dimensions")
    rows = np.zeros(looks.size, dtype=np.int64)
    polls = polls_from_times(rows, looks, changed, items=1, modified=modified, count=count, reached=reached)
    belief = weak_prior(polls) if prior is None else GammaPrior.of(*prior)
    many = estimate_polls(polls, method=method, level=level, prior=belief, horizon=horizon)
    ends = (float(many.rate[0]), float(many.low[0]), float(many.high[0]))
    return RateEstimate(*ends, int(many.polls[0]), int(many.changes[0]), method)


def estimate_many(
    item_index: ArrayLike,
    times: ArrayLike,
    changed: ArrayLike,
    *,
    items: int | None = None,
    method: str = DEFAULT_METHOD,
    level: float = 0.9,
    modified: ArrayLike | None = None,
    count: ArrayLike | None = None,
    reached: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    interval: float | None = None,
    horizon: float = math.inf,
    now: float | None = None,
) -> RateEstimates:
    """How often each of many items changes; flat arrays in any order, ``item_index`` from 0.

    Items without an interval yet get the prior, learned from the others (of their group, where ``groups``
    gives a number from 0 per item). ``rate`` is the posterior mean or, given the mean ``interval`` at which a
    plan is going to refresh, the rate to plan with: −ln E[e^{−λt}]/t at t = interval/2. With few polls a mean
    is ruled by the fast changers an item might be, and the plan would drop it; survival is what counts.

    >>> found = estimate_many([0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [0, 1, 0, 0, 0])
    >>> found.polls.tolist(), bool(found.rate[1] < found.rate[2] < found.rate[0])
    ([1, 1, 0], True)
    """
    polls = polls_from_times(
        item_index, times, changed, items=items, modified=modified, count=count, reached=reached, now=now
    )
    of_group = None if groups is None else whole_numbers("groups", groups)
    if of_group is not None and of_group.shape != (polls.items,):
        raise InputError(f"groups has {of_group.size} values for {polls.items} items")
    return estimate_polls(
        polls, method=method, level=level, groups=of_group, interval=interval, horizon=horizon
    )


def estimate_polls(
    polls: Polls,
    *,
    method: str = DEFAULT_METHOD,
    level: float = 0.9,
    prior: GammaPrior | None = None,
    groups: Ints | None = None,
    interval: float | None = None,
    horizon: float = math.inf,
) -> RateEstimates:
    """Rates and intervals of all items; without ``prior`` it is learned from the polls, per group."""
    check_level(level)
    estimator = _configured(method, polls, horizon)
    belief = fit_gamma(polls, groups) if prior is None else prior
    state = estimator.update(estimator.start(belief, polls.items), polls)
    if isinstance(estimator, GridPosterior):
        learned = estimator.learned(state, belief) if prior is None else state
        state = estimator.sharpened(learned, polls)
    rate = estimator.rate(state) if interval is None else _rate_to_plan(estimator, state, interval)
    low, high = estimator.interval(state, level)
    return RateEstimates(rate, low, high, polls.polls_per_item(), polls.changes_per_item(), method)


def _configured(method: str, polls: Polls, horizon: float) -> Estimator[Any]:
    """The estimator of that name, with the grid that fits the polls and the horizon asked for."""
    estimator = ESTIMATORS[one_of("method", method, ESTIMATORS)]
    if isinstance(estimator, GridPosterior):
        estimator = replace(estimator, rates=rate_grid(polls))
    if not math.isinf(horizon):
        if not isinstance(estimator, GammaFilter):
            raise UsageError(
                f"method {method!r} does not forget: a horizon goes with gamma, last-modified, counts"
            )
        if not horizon > 0:
            raise InputError(f"horizon is {horizon}: must be a time above 0")
        return replace(estimator, horizon=horizon)
    return estimator


def _rate_to_plan(estimator: Estimator[Any], state: Any, interval: float) -> Float64s:
    """The rate at which a copy survives half an interval as probably as under the posterior."""
    if not isinstance(estimator, GammaFilter | GridPosterior):
        raise UsageError(f"method {estimator.name!r} has no posterior to plan with: use grid or gamma")
    if not 0 < interval < math.inf:
        raise InputError(f"interval is {interval}: must be a time above 0")
    return estimator.effective_rate(state, interval / 2.0)
