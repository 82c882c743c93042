"""The protocol of an estimator, the table of all estimators, and functions that estimate rates with them.

``estimate`` estimates the rate of one item, ``estimate_many`` those of many items at once. ``find_regime``
searches the polls for an hour-of-week season and for drift. Each of the two is used only if it predicts
clearly better (``season``, ``forgetting``). If there is a season, drift is searched for in operational time.

``uncertain_rate`` returns the rate λ to plan with, which is not the posterior mean. After few polls the mean
is dominated by the high rates that the item might have. A plan with the mean drops the item, and the plan's
freshness may be 30 percentage points below that of refreshing all items equally often. What matters is the
probability that the copy is still correct after a time t, at the next refresh. The rate with this probability
is −ln E[e^{−λt}]/t, which for a Gamma(a, b) posterior is (a/t)·ln(1+t/b). The posterior is taken to be the
Gamma distribution with the given mean (``rate``) and the given lower quantile (``low``).

After three polls even that posterior is not reliable, because its prior was learned from equally few polls:
an item without a change gets a far lower rate than items that have changed, and the plan hardly refreshes it.
So each ln λ is moved towards the mean ln λ of all items, after n polls by the share 3/n/(1+0.8a) of the
distance. Equal rates give the uniform plan, so the plan stays near the uniform plan while little is known.
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
    A state is a frozen, picklable value of arrays with a row per item: a few floats for each item, or all its
    polls if the estimator has no shorter summary. Items without polls get the mean and the credible interval
    of the prior. No method returns NaN. A rate is 0 or ∞ only if the estimator's formula gives it (see each
    file). Forgetting and planning rates are not part of the protocol, because they need a posterior
    (``POSTERIOR_METHODS``)."""

    @property
    def name(self) -> str:
        """The name of the estimator on the command line."""

    def start(self, prior: GammaPrior, items: int) -> State:
        """Return the state of items without polls."""

    def update(self, state: State, polls: PollTable) -> State:
        """Return the state after further polls, one or many, of any of the items."""

    def rate(self, state: State) -> Float64s:
        """Return the estimated rate of every item."""

    def interval(self, state: State, level: float) -> tuple[Float64s, Float64s]:
        """Return a tuple (low, high) of arrays: the interval that contains each item's rate with probability
        ``level``, a confidence or credible interval depending on the estimator. ``high`` may be ∞."""


ESTIMATORS: Mapping[str, Estimator[Any]] = {
    estimator.name: estimator
    for estimator in (
        Naive(),
        LogFamily("cho", 0.5),
        LogFamily("zhang", 0.4),
        LogFamily("saa", None),
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


DEFAULT_METHOD = "grid"  # it has the smallest measured errors; see docs/estimators.md
ITEMS_AT_ONCE = 4096  # for the grid posterior: the log-likelihoods of this many items fit in the cache


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
    """Estimate how often one item changes, from the times of its polls and whether each found a change.
    The first poll is only the start of the first interval. ``modified`` (time of the last modification) and
    ``count`` (changes since the last poll) come from the source and have an entry for each poll, NaN if
    unknown. ``reached`` is false if a poll failed. ``prior`` is a tuple (a, b), which means a changes in a
    time b; the default is half a change in half a mean polling interval. With a finite ``horizon``, polls of
    this age have 1/e of the weight of new ones. ``level`` is the probability of the interval [low, high].

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
    """Estimate how often each of many items changes; the arrays have one entry per poll, in any order.
    ``item_index`` is the number of the polled item, from 0. An item with fewer than two polls gets the prior,
    which is learned from the other items (of its group, if ``groups`` gives a group number from 0 for each
    item). The ``rate`` of the result is the posterior mean. If ``interval``, the mean time between the
    refreshes of an item in a plan, is given, it is the rate to plan with instead (``uncertain_rate``). Polls
    after ``now`` are refused. The other arguments are those of ``estimate``.

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
    latest: float | None = None,
) -> RateEstimates:
    """Estimate the rates of all items as ``estimate_many`` does, from polls that are already a table.
    ``method`` is an estimator or the name of one in ``ESTIMATORS``. If ``prior`` is None, the prior of each
    group is learned from the polls. ``latest`` is as in ``poll_ages``."""
    check_level(level)
    estimator = ESTIMATORS[one_of("method", method, ESTIMATORS)] if isinstance(method, str) else method
    if not horizon > 0:
        raise InputError(f"horizon is {horizon}: must be a time above 0")
    forgets = math.isfinite(horizon)
    if forgets and estimator.name not in POSTERIOR_METHODS:
        raise UsageError(f"method {estimator.name!r} does not forget: {', '.join(POSTERIOR_METHODS)} do")
    if isinstance(estimator, GridPosterior):
        weighed = weigh_by_age(polls, horizon, latest) if forgets else polls
        rate, low, high = _by_grid(weighed, prior, groups, level)
    else:
        belief = fit_gamma(polls, groups) if prior is None else prior
        if forgets and isinstance(estimator, GammaFilter):
            estimator = replace(estimator, horizon=horizon)
        state = estimator.update(estimator.start(belief, polls.items), polls)
        if forgets:
            # Each belief fades over the time from its item's latest poll to the latest poll of all items.
            gap = np.full(polls.items, np.inf)
            np.minimum.at(gap, polls.item, poll_ages(polls, latest))
            shape, scale = fade(state.shape, state.rate, state.prior, gap, horizon)
            state = replace(state, shape=shape, rate=scale)
        rate = estimator.rate(state)
        low, high = estimator.interval(state, level)
    counts = polls.polls_per_item(), polls.changes_per_item()
    found = RateEstimates(rate, low, high, *counts, estimator.name)
    return found if interval is None else with_planning_rates(found, interval, level)


def with_planning_rates(found: RateEstimates, interval: float, level: float = 0.9) -> RateEstimates:
    """Return the estimates with ``rate`` replaced by the rate to plan with (``uncertain_rate``).
    ``interval`` is the mean time between the refreshes of an item in the plan. ``level`` is the probability
    of the intervals [low, high] of ``found``."""
    if not 0 < interval < math.inf:
        raise InputError(f"interval is {interval}: must be a time above 0")
    if found.method not in POSTERIOR_METHODS:
        raise UsageError(
            f"method {found.method!r} has no posterior to plan with: {', '.join(POSTERIOR_METHODS)} do"
        )
    shape = posterior_shape(found.rate, found.low, level)
    return replace(found, rate=uncertain_rate(found.rate, shape, found.polls, interval))


def _by_grid(
    polls: PollTable, prior: GammaPrior | None, groups: Ints | None, level: float
) -> tuple[Float64s, Float64s, Float64s]:
    """Return a tuple (rate, low, high) of arrays, estimated with the grid posterior.
    If ``prior`` is None, it is learned from a sample of the items."""
    estimator = GridPosterior(rate_grid(polls) if polls.size else None)
    if prior is None:
        belief, kind = learn_grid_prior(estimator, polls, groups, weak_prior(polls))
    else:
        belief = estimator.start(prior, prior.shape.size)
        kind = np.broadcast_to(belief.kind, polls.items)
    return estimate_with_grid(estimator, polls, belief, kind, level)


def estimate_with_grid(
    estimator: GridPosterior,
    polls: PollTable,
    belief: GridState,
    kind: Ints,
    level: float,
    told: Float64s | None = None,
) -> tuple[Float64s, Float64s, Float64s]:
    """Return a tuple (rate, low, high) of arrays for known priors; ``kind`` is the row of each item's prior
    in ``belief``. ``told`` is the log-likelihood of other evidence at the rates of the grid, with a row per
    item. The items are processed in parts on two threads, so that memory holds the log-likelihoods of only
    two parts."""
    if not polls.items:
        return np.zeros(0), np.zeros(0), np.zeros(0)

    def answers(part: slice) -> tuple[Float64s, Float64s, Float64s]:
        own = polls.between(part.start, part.stop)
        start = belief.of_items(kind[part])
        if told is not None:
            start = replace(start, log_likelihood=told[part])
        state = estimator.update(start, own)
        return estimator.answers(estimator.sharpen(state, own), level)

    parts = map_parts(polls.items, answers, ITEMS_AT_ONCE)
    rate, low, high = (np.concatenate(column) for column in zip(*parts, strict=True))
    return rate, low, high


def learn_grid_prior(
    estimator: GridPosterior, polls: PollTable, groups: Ints | None, weak: GammaPrior
) -> tuple[GridState, Ints]:
    """Return a tuple (state, kind): a state with priors learned from a sample of the items, and for each item
    the index of its prior in this state. The priors stay loosely near ``weak``."""
    sample = gamma_prior.sample_items(polls.items, groups)
    part = polls if sample is None else polls.of_items(sample)
    blank = estimator.start(GammaPrior.of(1.0, 1.0), part.items)
    state = estimator.update(blank, part)
    table, rates = state.log_likelihood, state.rates
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


POLLS_ENOUGH = 100_000  # this many polls suffice to decide whether there is a season or drift


@dataclass(frozen=True, slots=True)
class Regime:
    """The hour-of-week profile (flat if there is no season) and the horizon of forgetting (∞ if none)."""

    season: Season
    horizon: float


def find_regime(
    polls: PollTable, *, hour: float, horizon: float | None = None, season: bool | None = None
) -> Regime:
    """Return the season and the horizon of forgetting that the polls support.
    ``hour`` is the length of an hour in the unit of the polls' times. A ``horizon`` that is given is used
    unchanged (∞ for no forgetting). ``season`` True or False forces or excludes a season.

    >>> steady = polls_from_times(np.repeat([0, 1], 50), np.tile(np.arange(50.0), 2), np.arange(100) % 3 == 0)
    >>> found = find_regime(steady, hour=1 / 24)
    >>> found.season.is_supported, found.horizon
    (False, inf)
    """
    flat = Season(np.ones(HOURS), hour)
    if polls.size == 0 or (season is False and horizon is not None):
        return Regime(flat, math.inf if horizon is None else horizon)
    every = max(1, -(-polls.size // POLLS_ENOUGH))  # only every k-th item is used
    part = polls.of_items(np.arange(polls.items) % every == 0)
    prior = fit_gamma(part)
    found = flat
    if season is not False:
        # The Gamma filter is not used: one Gamma prior is wrong for some items if polling intervals differ.
        found = fit_season(part, estimate_polls(part).rate, hour=hour, always=season is True)
        part = found.apply_to(part) if found.is_supported else part
    return Regime(found, choose_horizon(part, prior) if horizon is None else horizon)


_FEW = 3.0  # after this many polls a learned prior is not yet reliable
_SHAPES = np.geomspace(0.1, 1e4, 400)  # with a shape of 1e4 a rate is known to 1 %


def uncertain_rate(
    rate: ArrayLike, shape: ArrayLike, polls: ArrayLike, interval: float, *, mean_log: float | None = None
) -> Float64s:
    """Return the rates to use in a plan in which refreshes of an item are ``interval`` apart on average.
    The rates have Gamma posteriors with mean ``rate`` and this ``shape``; a shape of ∞ means that the rate is
    known exactly. ``polls`` is the number of polls of each item. ``mean_log`` is the mean ln λ of all items,
    if the arrays hold only a part of them (``log_of_survival_rates``).

    >>> uncertain_rate([1.0, 1.0, 0.0], [1.0, np.inf, np.inf], 3, interval=20.0).round(2)
    array([0.36, 1.  , 0.  ])
    """
    shapes = np.asarray(shape, dtype=np.float64)
    alone = survival_rate(rate, shapes, interval)
    changes = (alone > 0) & np.isfinite(alone)
    if not changes.any():
        return alone
    log_rate = np.log(np.where(changes, alone, 1.0))
    share = _FEW / np.maximum(polls, _FEW) / (1.0 + 0.8 * shapes)
    mean = log_rate[changes].mean() if mean_log is None else mean_log
    return np.where(changes, np.exp(log_rate + share * (mean - log_rate)), alone)


def survival_rate(rate: ArrayLike, shape: ArrayLike, interval: float) -> Float64s:
    """Return the rate at which a copy stays right for half an ``interval`` with the same probability as under
    the Gamma posterior with mean ``rate`` and this ``shape``.

    >>> survival_rate([1.0, 1.0], [1.0, np.inf], interval=20.0).round(2)
    array([0.24, 1.  ])
    """
    mean, shapes = np.asarray(rate, dtype=np.float64), np.asarray(shape, dtype=np.float64)
    known = (mean > 0) & np.isfinite(mean) & np.isfinite(shapes)
    a, m, time = np.where(known, shapes, 1.0), np.where(known, mean, 1.0), interval / 2
    return np.where(known, a / time * np.log1p(time * m / a), mean)


def log_of_survival_rates(rate: ArrayLike, shape: ArrayLike, interval: float) -> tuple[float, int]:
    """Return a tuple (sum of ln λ, number) over the items whose ``survival_rate`` λ is above 0 and finite.
    Those of parts of the items can be added.

    >>> log_of_survival_rates([1.0, 0.0], [np.inf, np.inf], interval=20.0)
    (0.0, 1)
    """
    alone = survival_rate(rate, shape, interval)
    changing = alone[(alone > 0) & np.isfinite(alone)]
    return float(np.log(changing).sum()), int(changing.size)


def posterior_shape(rate: ArrayLike, low: ArrayLike, level: float = 0.9) -> Float64s:
    """Return the shape a of the Gamma distribution with mean ``rate`` and lower quantile ``low``.
    ``low`` is the quantile of probability (1 − level)/2. The shape is ∞ if ``low`` equals the rate, and never
    below 0.1, which is the result for a ``low`` of 0.

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
