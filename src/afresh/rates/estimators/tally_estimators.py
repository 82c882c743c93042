"""Estimators that keep three numbers per item: its polls, those that found a change, and the time.

naive       X/Σt, changes found per time. A baseline: polls that find one change may hide several, so it is
            not consistent and saturates at one change per poll (Cho & Garcia-Molina 2003; Zhang 2007 §2.1).
cho, zhang  the log family −ln((n−X+a)/(n+a))/t for regular polls, a = 0.5 and 0.4 (``rates.log_ratio``).
            Irregular polls enter with their mean interval, which understates the rate.
lln         p·X/(n+α−X), for polls at Poisson times of rate p, at which a poll finds a change with probability
            λ/(λ+p) (Avrachenkov, Patil & Thoppe 2020). On regular polls it is biased by (e^r−1)/r with
            r = λt: 1.3 at 0.5, 1.7 at 1, 3.2 at 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from afresh.rates.log_ratio import change_probability_interval, check_level, log_ratio
from afresh.rates.poll_table import PollTable
from afresh.rates.priors.gamma_prior import GammaPrior
from afresh.values.arrays import Bools, Float64s


@dataclass(frozen=True, slots=True)
class StateWithPrior:
    """A state whose prior answers for the items without polls."""

    prior: GammaPrior

    def has_polls(self) -> Bools:
        raise NotImplementedError

    def rate_or_prior(self, rate: Float64s) -> Float64s:
        """``rate`` where there are polls, the prior's mean elsewhere."""
        return np.where(self.has_polls(), rate, self.prior.mean())

    def interval_or_prior(self, low: Float64s, high: Float64s, level: float) -> tuple[Float64s, Float64s]:
        """The interval where there are polls, the prior's own elsewhere."""
        prior_low, prior_high = self.prior.interval(level)
        polled = self.has_polls()
        return np.where(polled, low, prior_low), np.where(polled, high, prior_high)


@dataclass(frozen=True, slots=True)
class TallyState(StateWithPrior):
    """n polls, X of which found a change, over a time Σt, for every item."""

    polls: Float64s
    changes: Float64s
    time: Float64s

    def has_polls(self) -> Bools:
        return np.asarray(self.polls > 0)

    def mean_interval(self) -> Float64s:
        """Σt/n, 1 where there is no poll yet."""
        return np.where(self.polls > 0, self.time / np.maximum(self.polls, 1.0), 1.0)


class TallyEstimator:
    """What the estimators on a ``TallyState`` share: how it starts and grows."""

    def start(self, prior: GammaPrior, items: int) -> TallyState:
        return TallyState(prior.for_items(items), *(np.zeros(items) for _ in range(3)))

    def update(self, state: TallyState, polls: PollTable) -> TallyState:
        """Add polls: O(1) each."""
        found = np.bincount(polls.item[polls.changed], minlength=polls.items)
        return replace(
            state,
            polls=state.polls + polls.polls_per_item(),
            changes=state.changes + found,
            time=state.time + polls.time_per_item(),
        )


class Naive(TallyEstimator):
    """X/Σt (Cho & Garcia-Molina 2003; Zhang 2007 §2.1).

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> polls = polls_from_intervals([1.0, 3.0], [True, False], item=[0, 0])
    >>> Naive().rate(Naive().update(Naive().start(GammaPrior.of(1, 1), 1), polls)).tolist()
    [0.25]
    """

    name = "naive"

    def rate(self, state: TallyState) -> Float64s:
        return state.rate_or_prior(state.changes / _time(state))

    def interval(self, state: TallyState, level: float) -> tuple[Float64s, Float64s]:
        """Garwood's exact Poisson interval of X, over Σt; of changes found, not of changes made."""
        from scipy.special import gammaincinv

        tail = (1.0 - check_level(level)) / 2.0
        time = _time(state)
        found = np.maximum(state.changes, 0.5)
        low = np.where(state.changes > 0, gammaincinv(found, tail), 0.0) / time
        high = gammaincinv(state.changes + 1.0, 1.0 - tail) / time
        return state.interval_or_prior(low, high, level)


def _time(state: TallyState) -> Float64s:
    """Σt, 1 where there is no poll yet."""
    return np.where(state.polls > 0, state.time, 1.0)


@dataclass(frozen=True, slots=True)
class LogFamily(TallyEstimator):
    """−ln((n−X+a)/(n+a))/t with t the mean interval.

    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> cho = LogFamily("cho", 0.5)
    >>> polls = polls_from_intervals([1.0] * 3, [True] * 3, item=[0] * 3)
    >>> cho.rate(cho.update(cho.start(GammaPrior.of(1, 1), 1), polls)).round(4).tolist()   # ln 7
    [1.9459]
    """

    name: str
    a: float

    def rate(self, state: TallyState) -> Float64s:
        """r̂ per mean interval."""
        return state.rate_or_prior(log_ratio(state.changes, state.polls, self.a) / state.mean_interval())

    def interval(self, state: TallyState, level: float) -> tuple[Float64s, Float64s]:
        """Clopper–Pearson for 1−e^{−λt}, carried over; no upper end where every poll found a change."""
        low, high = change_probability_interval(state.changes, state.polls, level)
        with np.errstate(divide="ignore"):
            low, high = (-np.log1p(-p) / state.mean_interval() for p in (low, high))
        return state.interval_or_prior(low, high, level)


ALPHA = 1.0  # any fixed number keeps it finite and vanishes as n grows


class LawOfLargeNumbers(TallyEstimator):
    """p·X/(n+α−X) with p = n/Σt.

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
        """Clopper–Pearson for λ/(λ+p), carried over; no upper end where every poll found a change."""
        low, high = change_probability_interval(state.changes, state.polls, level)
        with np.errstate(divide="ignore"):
            low, high = (np.asarray(q / (1.0 - q)) / state.mean_interval() for q in (low, high))
        return state.interval_or_prior(low, high, level)
