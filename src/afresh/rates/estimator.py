"""The protocol of an estimator, the table of all of them, and rates from the times of polls by any of them.

``estimate`` is for one item, ``estimate_many`` for many at once; a new estimator is one line in the table.
``find_regime`` looks in a sample of a log for an hour-of-week season and for drift, which are used only where
they predict clearly better (``season``, ``forgetting``). A season turns clock time into operational time, in
which drift is then searched.

``planning_rate`` is the rate to plan with. With little evidence the posterior mean of a rate is dominated by
the high rates that the item might have. A plan made with it drops the item, and may have 30 points less
freshness than refreshing all items equally often. What counts is the probability that the copy stays right
until the next refresh: −ln E[e^{−λt}]/t, which for a Gamma(a, b) posterior is (a/t)·ln(1+t/b). The posterior
is the Gamma distribution with the given mean whose lower quantile is the given ``low``.

After three polls even that posterior is not reliable, because its prior was learned from as little: an item
without a change gets a rate far below those that have changed, and the plan hardly refreshes it. So rates are
shrunk towards each other, the more so the fewer polls there are: after n polls by the share 3/n/(1+0.8a) of
the way, in ln λ, to the mean of all. Equal rates give the uniform plan, so the plan stays near it while
little is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from afresh.rates.estimators.gamma_filter import GammaFilter
from afresh.rates.estimators.grid_integrals import map_parts
from afresh.rates.estimators.grid_posterior import GridPosterior, GridState
from afresh.rates.estimators.history_estimators import MaximumLikelihood, MomentMatching
from afresh.rates.estimators.tally_estimators import LawOfLargeNumbers, LogFamily, Naive
from afresh.rates.forgetting import choose_horizon, fade, poll_ages, weigh_by_age
from afresh.rates.likelihood import count_evidence, rate_grid, stamp_evidence
from afresh.rates.log_ratio import check_level
from afresh.rates.poll_table import PollTable, as_whole_numbers, polls_from_times
from afresh.rates.priors import gamma_prior
from afresh.rates.priors.gamma_prior import GammaPrior, fit_gamma, weak_prior
from afresh.rates.priors.grid_prior import fit_static_share, static_log_odds
from afresh.rates.season import HOURS, Season, fit_season
from afresh.values.arrays import ArrayLike, Float64s, Ints
from afresh.values.errors import InputError, UsageError, one_of
from afresh.values.results import RateEstimate, RateEstimates

State = TypeVar("State")


class Estimator(Protocol[State]):
    """Learns the rates of many items from their polls.

    A state is a frozen value of arrays with a row per item: a few floats each, or the polls themselves where
    a method has no shorter summary. It pickles. An item without polls is answered by the prior. Nothing here
    ever returns NaN; a rate of 0 or ∞ only where a formula says so (see each file). Forgetting and rates to
    plan with are not part of the protocol: they need a posterior, which the ``POSTERIOR_METHODS`` have.
    """

    @property
    def name(self) -> str:
        """Its name on the command line."""

    def start(self, prior: GammaPrior, items: int) -> State:
        """The state of items without polls."""

    def update(self, state: State, polls: PollTable) -> State:
        """The state after further polls, one or many, of any of the items."""

    def rate(self, state: State) -> Float64s:
        """The estimated rate of every item."""

    def interval(self, state: State, level: float) -> tuple[Float64s, Float64s]:
        """Ends of the interval at ``level`` for every item; the upper one may be ∞."""


ESTIMATORS: Mapping[str, Estimator[Any]] = {
    estimator.name: estimator
    for estimator in (
        Naive(),
        LogFamily("cho", 0.5),
        LogFamily("zhang", 0.4),
        MaximumLikelihood(),
        MomentMatching(),
        LawOfLargeNumbers(),
        GammaFilter(),
        GammaFilter("last-modified", stamp_evidence),
        GammaFilter("counts", count_evidence),
        GridPosterior(),
    )
}

POSTERIOR_METHODS = tuple(e.name for e in ESTIMATORS.values() if isinstance(e, GammaFilter | GridPosterior))


DEFAULT_METHOD = "grid"  # the best measured across items; see docs/estimators.md
ITEMS_AT_ONCE = 4096  # by the grid: what is known of them stays in the cache


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
    """How often one item changes, from the times of its polls and whether each found a change.

    The first poll only starts the clock. ``modified`` and ``count`` are what the source itself says (NaN if
    nothing), ``reached`` is false where a poll failed. ``prior`` is (a, b): a changes in a time b; by default
    half a change in half a mean interval. Over a time ``horizon`` the weight of evidence falls to 1/e.

    >>> found = estimate([0, 1, 2, 3, 4], [False, True, False, False, True])
    >>> round(found.rate, 2), round(found.low, 2), round(found.high, 2), found.polls, found.changes
    (0.73, 0.14, 1.68, 4, 2)
    """
    when = np.asarray(times)
    if when.ndim != 1:
        raise InputError(f"times must be a list of times, not an array of {when.ndim} dimensions")
    rows = np.zeros(when.size, dtype=np.int64)
    polls = polls_from_times(rows, when, changed, items=1, modified=modified, count=count, reached=reached)
    try:
        given = None if prior is None else (float(prior[0]), float(prior[1]))
    except (TypeError, ValueError, IndexError):
        raise InputError(f"prior is {prior!r}: must be two numbers, changes and the time they took") from None
    belief = weak_prior(polls) if given is None else GammaPrior.of(*given)
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
    plan is going to refresh, the rate to plan with (``planning_rate``).

    >>> found = estimate_many([0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [0, 1, 0, 0, 0])
    >>> found.polls.tolist(), bool(found.rate[1] < found.rate[2] < found.rate[0])
    ([1, 1, 0], True)
    """
    polls = polls_from_times(
        item_index, times, changed, items=items, modified=modified, count=count, reached=reached, now=now
    )
    of_group = None if groups is None else as_whole_numbers("groups", groups)
    if of_group is not None and of_group.shape != (polls.items,):
        raise InputError(f"groups has {of_group.size} values for {polls.items} items")
    return estimate_polls(
        polls, method=method, level=level, groups=of_group, interval=interval, horizon=horizon
    )


def estimate_polls(
    polls: PollTable,
    *,
    method: str | Estimator[Any] = DEFAULT_METHOD,
    level: float = 0.9,
    prior: GammaPrior | None = None,
    groups: Ints | None = None,
    interval: float | None = None,
    horizon: float = math.inf,
) -> RateEstimates:
    """Rates and intervals of all items; without ``prior`` it is learned from the polls, per group.

    ``method`` is a name of the table of estimators, or an estimator.
    """
    check_level(level)
    estimator = ESTIMATORS[one_of("method", method, ESTIMATORS)] if isinstance(method, str) else method
    if not horizon > 0:
        raise InputError(f"horizon is {horizon}: must be a time above 0")
    forgets = math.isfinite(horizon)
    if forgets and estimator.name not in POSTERIOR_METHODS:
        raise UsageError(f"method {estimator.name!r} does not forget: {', '.join(POSTERIOR_METHODS)} do")
    if isinstance(estimator, GridPosterior):
        weighed = weigh_by_age(polls, horizon) if forgets else polls
        rate, low, high = _by_grid(weighed, prior, groups, level)
    else:
        belief = fit_gamma(polls, groups) if prior is None else prior
        if forgets and isinstance(estimator, GammaFilter):
            estimator = replace(estimator, horizon=horizon)
        state = estimator.update(estimator.start(belief, polls.items), polls)
        if forgets:
            # Each belief fades from its item's own latest poll to the latest of all.
            gap = np.full(polls.items, np.inf)
            np.minimum.at(gap, polls.item, poll_ages(polls))
            shape, scale = fade(state.shape, state.rate, state.prior, gap, horizon)
            state = replace(state, shape=shape, rate=scale)
        rate = estimator.rate(state)
        low, high = estimator.interval(state, level)
    counts = polls.polls_per_item(), polls.changes_per_item()
    found = RateEstimates(rate, low, high, *counts, estimator.name)
    return found if interval is None else with_planning_rates(found, interval, level)


def with_planning_rates(found: RateEstimates, interval: float, level: float = 0.9) -> RateEstimates:
    """The same with the rates to plan with at a mean ``interval``; ``level`` is that of its intervals."""
    if not 0 < interval < math.inf:
        raise InputError(f"interval is {interval}: must be a time above 0")
    if found.method not in POSTERIOR_METHODS:
        raise UsageError(
            f"method {found.method!r} has no posterior to plan with: {', '.join(POSTERIOR_METHODS)} do"
        )
    return replace(found, rate=planning_rate(found.rate, found.low, found.polls, interval, level))


def _by_grid(
    polls: PollTable, prior: GammaPrior | None, groups: Ints | None, level: float
) -> tuple[Float64s, Float64s, Float64s]:
    """Rates and intervals by the grid posterior.

    The prior is learned from a sample of the items. Then all items are processed in parts on two threads, so
    that only the log-likelihoods of these parts are in memory.
    """
    estimator = GridPosterior(rate_grid(polls) if polls.size else None)
    if prior is None:
        belief, kind = _learn_priors(estimator, polls, groups)
    else:
        belief = estimator.start(prior, prior.shape.size)
        kind = np.broadcast_to(belief.kind, polls.items)

    def answers(part: slice) -> tuple[Float64s, Float64s, Float64s]:
        own = polls.between(part.start, part.stop)
        state = estimator.update(belief.of_items(kind[part]), own)
        return estimator.answers(estimator.sharpen(state, own), level)

    parts = map_parts(polls.items, answers, ITEMS_AT_ONCE)
    rate, low, high = (np.concatenate(column) for column in zip(*parts, strict=True))
    return rate, low, high


def _learn_priors(estimator: GridPosterior, polls: PollTable, groups: Ints | None) -> tuple[GridState, Ints]:
    """A state with priors learned from a sample of the items, and which of these priors each item has."""
    sample = gamma_prior.sample_items(polls.items, groups)
    part = polls if sample is None else polls.of_items(sample)
    blank = estimator.start(GammaPrior.of(1.0, 1.0), part.items)
    state = estimator.update(blank, part)
    table, rates, weak = state.log_likelihood, state.rates, weak_prior(polls)
    share, start = fit_static_share(table, state.quiet, rates, weak)
    static = static_log_odds(state.quiet, share)
    if groups is None:
        fitted = gamma_prior.fit_gamma_table(table, rates, weak, static=static, start=start)
        return estimator.with_learned_priors(state, fitted, share), np.zeros(polls.items, dtype=np.int64)
    of_part = groups if sample is None else groups[sample]
    by_group = gamma_prior.fit_gamma_groups(table, rates, of_part, weak, static=static)
    own = GammaPrior(by_group.shape[of_part], by_group.rate[of_part])
    learned = estimator.with_learned_priors(state, own, share)
    of_group = np.zeros(by_group.shape.size, dtype=np.int64)
    of_group[of_part] = learned.kind
    return learned, of_group[groups]


POLLS_ENOUGH = 100_000  # to decide on


@dataclass(frozen=True, slots=True)
class Regime:
    """The hour-of-week profile (flat: no season), and the horizon over which evidence fades (∞: not)."""

    season: Season
    horizon: float


def find_regime(
    polls: PollTable, *, hour: float, horizon: float | None = None, season: bool | None = None
) -> Regime:
    """The season and the horizon of forgetting that the polls support.

    ``hour`` is the length of an hour in the unit of their times. A given ``horizon`` (∞: none) is taken as it
    is, and so is a ``season`` of true or false.

    >>> steady = polls_from_times(np.repeat([0, 1], 50), np.tile(np.arange(50.0), 2), np.arange(100) % 3 == 0)
    >>> found = find_regime(steady, hour=1 / 24)
    >>> found.season.is_supported, found.horizon
    (False, inf)
    """
    flat = Season(np.ones(HOURS), hour)
    if polls.size == 0 or (season is False and horizon is not None):
        return Regime(flat, math.inf if horizon is None else horizon)
    every = max(1, -(-polls.size // POLLS_ENOUGH))  # every k-th item suffices to decide
    part = polls.of_items(np.arange(polls.items) % every == 0)
    prior = fit_gamma(part)
    found = flat
    if season is not False:
        # Not by the Gamma filter: where items are polled each at its own pace one Gamma is wrong for some.
        found = fit_season(part, estimate_polls(part).rate, hour=hour, always=season is True)
        part = found.apply_to(part) if found.is_supported else part
    return Regime(found, choose_horizon(part, prior).horizon if horizon is None else horizon)


_FEW = 3.0  # polls, after which a learned prior is not yet reliable
_SHAPES = np.geomspace(0.1, 1e4, 400)  # beyond 1e4 a rate is known to 1 %


def planning_rate(
    rate: ArrayLike, low: ArrayLike, polls: ArrayLike, interval: float, level: float = 0.9
) -> Float64s:
    """The rates to plan refreshes with that are an ``interval`` apart on average.

    ``low`` is the lower end of an interval that holds the rate with probability ``level``; ``polls`` says
    after how many.

    >>> planning_rate([1.0, 1.0], [0.05, 0.9], [3, 300], interval=20.0).round(2)
    array([0.35, 0.98])
    """
    return uncertain_rate(rate, posterior_shape(rate, low, level), polls, interval)


def uncertain_rate(rate: ArrayLike, shape: ArrayLike, polls: ArrayLike, interval: float) -> Float64s:
    """The same for rates of mean ``rate`` under Gamma distributions of ``shape`` (∞: the rate is exact).

    >>> uncertain_rate([1.0, 1.0, 0.0], [1.0, np.inf, np.inf], 3, interval=20.0).round(2)
    array([0.36, 1.  , 0.  ])
    """
    alone = surviving_rate(rate, shape, interval)
    changes = (alone > 0) & np.isfinite(alone)
    if not changes.any():
        return alone
    log_rate = np.log(np.where(changes, alone, 1.0))
    share = _FEW / np.maximum(polls, _FEW) / (1.0 + 0.8 * np.asarray(shape, dtype=np.float64))
    return np.where(changes, np.exp(log_rate + share * (log_rate[changes].mean() - log_rate)), alone)


def surviving_rate(rate: ArrayLike, shape: ArrayLike, interval: float) -> Float64s:
    """The rate at which a copy survives half an ``interval`` as probably as under a Gamma distribution.

    >>> surviving_rate([1.0, 1.0], [1.0, np.inf], interval=20.0).round(2)
    array([0.24, 1.  ])
    """
    mean, shape = np.asarray(rate, dtype=np.float64), np.asarray(shape, dtype=np.float64)
    known = (mean > 0) & np.isfinite(mean) & np.isfinite(shape)
    a, m, time = np.where(known, shape, 1.0), np.where(known, mean, 1.0), interval / 2
    return np.where(known, a / time * np.log1p(time * m / a), mean)


def posterior_shape(rate: ArrayLike, low: ArrayLike, level: float = 0.9) -> Float64s:
    """Shape a of the Gamma distribution of mean ``rate`` whose lower quantile is ``low``; ∞ where it is sure.

    No less than 0.1, which is also for a ``low`` of 0: an item that may be static.

    >>> posterior_shape([1.0, 1.0, 1.0], [0.0, 0.05129, 1.0]).round(2).tolist()
    [0.1, 1.0, inf]
    """
    from scipy.special import gammaincinv

    mean, end = np.asarray(rate, dtype=np.float64), np.asarray(low, dtype=np.float64)
    unsure = (mean > 0) & np.isfinite(mean) & (end < mean)
    ratio = np.log(np.maximum(np.where(unsure, end, 1.0) / np.where(unsure, mean, 1.0), 1e-300))
    ratios = np.log(gammaincinv(_SHAPES, (1 - level) / 2) / _SHAPES)
    shape = np.exp(np.interp(ratio, ratios, np.log(_SHAPES)))
    return np.where(unsure & (ratio < ratios[-1]), shape, np.inf)
