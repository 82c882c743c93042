"""Estimators that store three numbers per item: the number n of its polls, the number X of polls that found a
change, and the sum Σt of its polling intervals.

naive       X/Σt, the changes found per unit of time. It is a baseline: a poll that finds a change may miss
            further ones, so it is not consistent and cannot exceed one change per poll (Cho & Garcia-Molina
            2003; Zhang 2007 §2.1).
cho, zhang  the log family −ln((n−X+a)/(n+a))/t for polls at regular intervals t, with a = 0.5 and 0.4
            (``rates.log_ratio``). For irregular polls t is the mean interval, which makes the rate too low.
saa         the log family with the a that suits the item's own r̂ best (Zhang 2007, Table 2), or with a given
            a. The rest of SAA, choosing the polls, is in ``rates.saa``: the polls of a log are made already.
lln         p·X/(n+α−X), for polls at the times of a Poisson process of rate p, where a poll finds a change
            with probability λ/(λ+p) (Avrachenkov, Patil & Thoppe 2020). For regular polls it is too high by
            the factor (e^r−1)/r with r = λt: 1.3 at r = 0.5, 1.7 at 1, 3.2 at 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from afresh.rates.log_ratio import adapted_a, change_probability_interval, check_level, log_ratio
from afresh.rates.poll_table import PollTable
from afresh.rates.priors.gamma_prior import GammaPrior
from afresh.values.arrays import Bools, Float64s


@dataclass(frozen=True, slots=True)
class StateWithPrior:
    """A state that contains a prior, which gives the rate and credible interval of items without polls."""

    prior: GammaPrior

    def has_polls(self) -> Bools:
        raise NotImplementedError

    def rate_or_prior(self, rate: Float64s) -> Float64s:
        """Return ``rate`` for items with polls, the prior's mean for the others."""
        return np.where(self.has_polls(), rate, self.prior.mean())

    def interval_or_prior(self, low: Float64s, high: Float64s, level: float) -> tuple[Float64s, Float64s]:
        """Return (low, high) for items with polls, the prior's credible interval for the others."""
        prior_low, prior_high = self.prior.interval(level)
        polled = self.has_polls()
        return np.where(polled, low, prior_low), np.where(polled, high, prior_high)


@dataclass(frozen=True, slots=True)
class TallyState(StateWithPrior):
    """For every item: its ``polls`` n, the ``changes`` X they found, and the ``time`` Σt they cover."""

    polls: Float64s
    changes: Float64s
    time: Float64s

    def has_polls(self) -> Bools:
        return np.asarray(self.polls > 0)

    def mean_interval(self) -> Float64s:
        """Return the mean polling interval Σt/n; 1 for items without polls."""
        return np.where(self.polls > 0, self.time / np.maximum(self.polls, 1.0), 1.0)


class TallyEstimator:
    """Base class of the estimators that only count: polls, polls that found a change, and the time."""

    def start(self, prior: GammaPrior, items: int) -> TallyState:
        return TallyState(prior.for_items(items), *(np.zeros(items) for _ in range(3)))

    def update(self, state: TallyState, polls: PollTable) -> TallyState:
        """Add the polls to the counts, in O(1) per poll."""
        found = np.bincount(polls.item[polls.changed], minlength=polls.items)
        return replace(
            state,
            polls=state.polls + polls.polls_per_item(),
            changes=state.changes + found,
            time=state.time + polls.time_per_item(),
        )


class Naive(TallyEstimator):
    """Estimates the polls that found a change per unit of time (Cho & Garcia-Molina 2003; Zhang 2007 §2.1).

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> polls = polls_from_intervals([1.0, 3.0], [True, False], item=[0, 0])
    >>> Naive().rate(Naive().update(Naive().start(GammaPrior.of(1, 1), 1), polls)).tolist()
    [0.25]
    """

    name = "naive"

    def rate(self, state: TallyState) -> Float64s:
        return state.rate_or_prior(state.changes / _time(state))

    def interval(self, state: TallyState, level: float) -> tuple[Float64s, Float64s]:
        """Return Garwood's exact Poisson confidence interval of the number of polls that found a change,
        divided by the time. It is about the changes that polls find, not about all changes."""
        from scipy.special import gammaincinv

        tail = (1.0 - check_level(level)) / 2.0
        time = _time(state)
        found = np.maximum(state.changes, 0.5)
        low = np.where(state.changes > 0, gammaincinv(found, tail), 0.0) / time
        high = gammaincinv(state.changes + 1.0, 1.0 - tail) / time
        return state.interval_or_prior(low, high, level)


def _time(state: TallyState) -> Float64s:
    return np.where(state.polls > 0, state.time, 1.0)


@dataclass(frozen=True, slots=True)
class LogFamily(TallyEstimator):
    """Estimates −ln((n−X+a)/(n+a))/t: X of n polls found a change, and t is the mean polling interval.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> cho = LogFamily("cho", 0.5)
    >>> polls = polls_from_intervals([1.0] * 3, [True] * 3, item=[0] * 3)
    >>> cho.rate(cho.update(cho.start(GammaPrior.of(1, 1), 1), polls)).round(4).tolist()   # ln 7
    [1.9459]
    """

    name: str
    a: float | None

    def rate(self, state: TallyState) -> Float64s:
        """Return the estimated rate; the prior's mean for items without polls. If ``a`` is None, each item
        gets the a that suits it best (``adapted_a``)."""
        polls = np.maximum(state.polls, 1.0)
        a = adapted_a(state.changes, polls) if self.a is None else self.a
        return state.rate_or_prior(log_ratio(state.changes, polls, a) / state.mean_interval())

    def interval(self, state: TallyState, level: float) -> tuple[Float64s, Float64s]:
        """Return the rates λ at which the probability 1−e^{−λt} that a poll finds a change is at the ends of
        its Clopper–Pearson confidence interval. ``high`` is ∞ if every poll found a change."""
        low, high = change_probability_interval(state.changes, state.polls, level)
        with np.errstate(divide="ignore"):
            low, high = (-np.log1p(-p) / state.mean_interval() for p in (low, high))
        return state.interval_or_prior(low, high, level)


ALPHA = 1.0  # any fixed number keeps the rate finite, and its effect vanishes as n grows


class LawOfLargeNumbers(TallyEstimator):
    """Estimates the rate of changes as p·X/(n+α−X), where X of n polls found a change.

    p is the number of polls per unit of time, and α = ``ALPHA`` keeps the rate finite if X = n.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> polls = polls_from_intervals([0.5, 1.5, 1.0], [True, False, True], item=[0] * 3)
    >>> lln = LawOfLargeNumbers()
    >>> lln.rate(lln.update(lln.start(GammaPrior.of(1, 1), 1), polls)).tolist()
    [1.0]
    """

    name = "lln"

    def rate(self, state: TallyState) -> Float64s:
        odds = state.changes / (state.polls + ALPHA - state.changes)
        return state.rate_or_prior(odds / state.mean_interval())

    def interval(self, state: TallyState, level: float) -> tuple[Float64s, Float64s]:
        """Return the rates λ at which the probability λ/(λ+p) that a poll finds a change is at the ends of
        its Clopper–Pearson confidence interval. ``high`` is ∞ if every poll found a change."""
        low, high = change_probability_interval(state.changes, state.polls, level)
        with np.errstate(divide="ignore"):
            low, high = (np.asarray(q / (1.0 - q)) / state.mean_interval() for q in (low, high))
        return state.interval_or_prior(low, high, level)
