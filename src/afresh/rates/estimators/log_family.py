"""The log family −ln((n−X+a)/(n+a))/t for regular polls (Cho & Garcia-Molina a = 0.5, Zhang a = 0.4).

1−e^{−λt} is the chance that a poll finds a change; a keeps the answer finite when all of them do and
takes out most of the bias. Irregular polls enter with their mean interval, which understates the rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.rates.estimators.states import Tally, TallyEstimator, change_probability_interval
from afresh.values.arrays import Float64s, Ints


def log_ratio(changes: Float64s | Ints, polls: Float64s | Ints, a: float) -> Float64s:
    """r̂ = −ln((n−X+a)/(n+a)), the changes per poll interval.

    >>> log_ratio(np.array([0.0, 7.0]), np.array([7.0, 7.0]), 0.4).round(4).tolist()
    [0.0, 2.9178]
    """
    return np.asarray(-np.log1p(-changes / (polls + a)))


@dataclass(frozen=True, slots=True)
class LogFamily(TallyEstimator):
    """−ln((n−X+a)/(n+a))/t with t the mean interval.

    >>> from afresh.rates.priors.gamma_prior import GammaPrior
    >>> from afresh.rates.observations import polls_of
    >>> cho = LogFamily("cho", 0.5)
    >>> polls = polls_of([1.0] * 3, [True] * 3, item=[0] * 3)
    >>> cho.rate(cho.update(cho.start(GammaPrior.of(1, 1), 1), polls)).round(4).tolist()   # ln 7
    [1.9459]
    """

    name: str
    a: float
    consistent = True

    def rate(self, state: Tally) -> Float64s:
        """r̂ per mean interval."""
        return state.or_prior(log_ratio(state.changes, state.polls, self.a) / state.mean_interval())

    def interval(self, state: Tally, level: float) -> tuple[Float64s, Float64s]:
        """Clopper–Pearson for 1−e^{−λt}, carried over; no upper end where every poll found a change."""
        low, high = change_probability_interval(state.changes, state.polls, level)
        with np.errstate(divide="ignore"):
            low, high = (-np.log1p(-p) / state.mean_interval() for p in (low, high))
        return state.or_prior_interval(low, high, level)
