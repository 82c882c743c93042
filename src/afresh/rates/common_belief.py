"""What the items of a log tell together, learned from a sample: season, drift, jumps, and the prior.

The prior is learned from the first items of the sample alone (``item_sample.prior_items``).

``learn_common`` learns it from the polls of the sampled items and from totals over all polls, which can be
added over parts of the log (``PollTotals``). ``CommonBelief.estimate`` then estimates any part of the items
on its own, so that parts give the same rates as the whole."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from afresh.rates.either_rate import either_rate
from afresh.rates.estimator import (
    DEFAULT_METHOD,
    Estimator,
    Regime,
    estimate_polls,
    estimate_with_grid,
    find_regime,
    learn_grid_prior,
)
from afresh.rates.estimators.grid_posterior import GridPosterior, GridState
from afresh.rates.forgetting import weigh_by_age
from afresh.rates.item_sample import prior_items
from afresh.rates.likelihood import estimate_singly, grid_for, log_likelihood
from afresh.rates.poll_table import PollTable
from afresh.rates.priors.gamma_prior import WEAK_SHAPE, GammaPrior, fit_gamma_table
from afresh.rates.season import Season
from afresh.rates.sharp_changes import (
    LearnedJumps,
    SharpChanges,
    find_sharp_changes,
    learn_jumps,
)
from afresh.values.arrays import Float64s, Ints
from afresh.values.results import RateEstimates


@dataclass(frozen=True, slots=True)
class PollTotals:
    """Totals over polls: their number, the sum of their intervals (``time``), the longest history of an item,
    the highest rate that an item's own polls suggest, and the time of the latest poll.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> one, other = (PollTotals.of(polls_from_intervals([t], [1])) for t in (1.0, 3.0))
    >>> (one + other).time, (one + other).longest
    (4.0, 3.0)
    """

    polls: int = 0
    time: float = 0.0
    longest: float = 0.0
    highest: float = 0.0
    latest: float = -math.inf

    @staticmethod
    def of(polls: PollTable) -> PollTotals:
        if polls.size == 0:
            return PollTotals()
        time = polls.time_per_item()
        latest = -math.inf if polls.end is None else float(polls.end.max())
        highest = float(estimate_singly(polls).max())
        return PollTotals(polls.size, math.fsum(time.tolist()), float(time.max()), highest, latest)

    def __add__(self, other: PollTotals) -> PollTotals:
        return PollTotals(
            self.polls + other.polls,
            self.time + other.time,
            max(self.longest, other.longest),
            max(self.highest, other.highest),
            max(self.latest, other.latest),
        )

    def grid(self) -> Float64s:
        """Return the grid of rates for all polls, as ``rate_grid`` does for a table."""
        return grid_for(self.highest, self.longest, self.time / self.polls)

    def weak_prior(self) -> GammaPrior:
        """Return the prior to use if nothing else is known; see ``gamma_prior.weak_prior``."""
        return GammaPrior.of(WEAK_SHAPE, WEAK_SHAPE * self.time / self.polls)


@dataclass(frozen=True, slots=True)
class CommonBelief:
    """What is known of all items. ``rates`` is the grid, ``latest`` the operational time of the latest poll;
    ``jumps`` is None if rates do not jump. ``prior`` is that of all items: a state of the grid without
    items, or a Gamma prior."""

    estimator: Estimator[Any]
    regime: Regime
    rates: Float64s
    latest: float
    jumps: LearnedJumps | None
    prior: GridState | GammaPrior

    def find_jumps(self, polls: PollTable) -> tuple[PollTable, SharpChanges | None]:
        """Return a tuple (polls, jumps): the polls of some items in operational time, weighted so that they
        tell today's rates, and the jumps of these items; None if rates do not jump."""
        timed = self.regime.season.apply_to(polls) if self.regime.season.is_supported else polls
        if self.jumps is None:
            return timed, None
        return self.weigh(timed)

    def weigh(self, timed: PollTable) -> tuple[PollTable, SharpChanges]:
        """Return the same as ``find_jumps``, for polls that are in operational time already."""
        assert self.jumps is not None
        sharp = find_sharp_changes(timed, self.rates, self.jumps.joint, self.jumps.share)
        if self.estimator.name == DEFAULT_METHOD:
            return sharp.weigh(timed, self.regime.horizon, self.latest), sharp
        return sharp.present(timed), sharp

    def estimate(
        self, polls: PollTable, level: float, groups: Ints | None = None, told: Float64s | None = None
    ) -> tuple[RateEstimates, SharpChanges | None]:
        """Return the rates of the items of a table, whose polls are in clock time, and their jumps. With the
        number of each item's group (``groups``), the priors are learned from all items of the table.
        ``told`` is other evidence at each rate of the grid, as for ``estimate_with_grid``."""
        timed, sharp = self.find_jumps(polls)
        horizon = math.inf if timed.weight is not None else self.regime.horizon
        if isinstance(self.prior, GridState) and groups is None:
            weighed = timed if math.isinf(horizon) else weigh_by_age(timed, horizon, self.latest)
            found = self._by_prior(weighed, self.prior, level, told)
        else:
            found = estimate_polls(
                timed,
                method=self.estimator,
                level=level,
                prior=self.prior if groups is None and isinstance(self.prior, GammaPrior) else None,
                groups=groups,
                horizon=horizon,
                latest=self.latest,
            )
        if sharp is not None and isinstance(self.prior, GridState) and sharp.doubtful.size:
            found = self._with_doubt(found, replace(timed, weight=None), sharp, self.prior, level, told)
        return replace(found, polls=polls.polls_per_item(), changes=polls.changes_per_item()), sharp

    def _by_prior(
        self, weighed: PollTable, prior: GridState, level: float, told: Float64s | None
    ) -> RateEstimates:
        kind = np.zeros(weighed.items, dtype=np.int64)
        answers = estimate_with_grid(GridPosterior(self.rates), weighed, prior, kind, level, told)
        counts = weighed.polls_per_item(), weighed.changes_per_item()
        return RateEstimates(*answers, *counts, DEFAULT_METHOD)

    def _with_doubt(
        self,
        found: RateEstimates,
        timed: PollTable,
        sharp: SharpChanges,
        prior: GridState,
        level: float,
        told: Float64s | None,
    ) -> RateEstimates:
        """Return ``found`` with other estimates for the items whose rate may have jumped or not."""
        which = sharp.doubtful
        jumped = sharp.weigh_if_jumped(timed)
        steady = replace(jumped, weight=None)
        if math.isfinite(self.regime.horizon):
            steady = weigh_by_age(steady, self.regime.horizon, self.latest)
        own = None if told is None else told[which]
        if_steady = self._by_prior(steady, prior, level, own)
        if_jumped = self._by_prior(jumped, prior, level, own)
        either = either_rate(if_steady, if_jumped, sharp.probability[which], level)
        rate, low, high = found.rate.copy(), found.low.copy(), found.high.copy()
        rate[which], low[which], high[which] = either.rate, either.low, either.high
        return replace(found, rate=rate, low=low, high=high)


def learn_common(
    sample: PollTable,
    totals: Callable[[Season], PollTotals],
    estimator: Estimator[Any],
    *,
    hour: float,
    horizon: float | None = None,
    season: bool | None = None,
    seeks_jumps: bool = True,
) -> CommonBelief:
    """Learn what the items tell together from the polls of the ``sample``, whose items are in its order.
    ``totals`` returns the totals over all polls in the operational time of a season. The other arguments are
    those of ``find_regime``. If no item was polled twice, one change a day is assumed."""
    if not sample.size:
        flat = find_regime(sample, hour=hour, horizon=horizon, season=season)
        day = GammaPrior.of(WEAK_SHAPE, WEAK_SHAPE * 24.0 * hour)
        return CommonBelief(estimator, flat, np.ones(2), -math.inf, None, day)
    regime = find_regime(sample, hour=hour, horizon=horizon, season=season)
    everything = totals(regime.season)
    timed = regime.season.apply_to(sample) if regime.season.is_supported else sample
    rates, weak = everything.grid(), everything.weak_prior()
    belief = CommonBelief(estimator, regime, rates, everything.latest, None, weak)
    jumps = learn_jumps(timed, rates) if seeks_jumps else None
    if jumps is not None:
        weighed, sharp = replace(belief, jumps=jumps).weigh(timed)
        if sharp.item.size:
            belief, timed = replace(belief, jumps=jumps), weighed
    if timed.weight is None and math.isfinite(regime.horizon) and estimator.name == DEFAULT_METHOD:
        timed = weigh_by_age(timed, regime.horizon, everything.latest)
    timed = timed.between(0, prior_items(timed.polls_per_item()))
    return replace(belief, prior=_learn_prior(timed, estimator, rates, weak))


def _learn_prior(
    sample: PollTable, estimator: Estimator[Any], rates: Float64s, weak: GammaPrior
) -> GridState | GammaPrior:
    if isinstance(estimator, GridPosterior):
        state = learn_grid_prior(GridPosterior(rates), sample, None, weak)[0]
        return state.of_items(np.zeros(0, dtype=np.int64))
    return fit_gamma_table(log_likelihood(sample, rates), rates, weak)
