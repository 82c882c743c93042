"""The law-of-large-numbers estimate p·X/(n+α−X), for polls at Poisson times of rate p.

Avrachenkov, Patil & Thoppe 2020. At such times a poll finds a change with probability λ/(λ+p). On regular
polls it is biased by (e^r−1)/r with r = λt: 1.3 at 0.5, 1.7 at 1, 3.2 at 2.
"""

from __future__ import annotations

import numpy as np

from afresh.rates.estimators.states import TallyEstimator, TallyState, change_probability_interval
from afresh.values.arrays import Float64s

ALPHA = 1.0  # any fixed number keeps it finite and vanishes as n grows


class LawOfLargeNumbers(TallyEstimator):
    """p·X/(n+α−X) with p = n/Σt.

    >>> from afresh.rates.priors.gamma_prior import GammaPrior
    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> polls = polls_from_intervals([0.5, 1.5, 1.0], [True, False, True], item=[0] * 3)
    >>> lln = LawOfLargeNumbers()
    >>> lln.rate(lln.update(lln.start(GammaPrior.of(1, 1), 1), polls)).tolist()
    [1.0]
    """

    name = "lln"
    consistent = False  # on regular polls, which is what the common checks make

    def rate(self, state: TallyState) -> Float64s:
        """p·X/(n+α−X)."""
        odds = state.changes / (state.polls + ALPHA - state.changes)
        return state.rate_or_prior(odds / state.mean_interval())

    def interval(self, state: TallyState, level: float) -> tuple[Float64s, Float64s]:
        """Clopper–Pearson for λ/(λ+p), carried over; no upper end where every poll found a change."""
        low, high = change_probability_interval(state.changes, state.polls, level)
        with np.errstate(divide="ignore"):
            low, high = (np.asarray(q / (1.0 - q)) / state.mean_interval() for q in (low, high))
        return state.interval_or_prior(low, high, level)
