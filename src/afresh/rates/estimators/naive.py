"""The naive estimate X/Σt: changes found per time. A baseline: polls that find one change may hide several,
so it is not consistent and saturates at one change per poll.
"""

from __future__ import annotations

import numpy as np

from afresh.rates.estimators.states import TallyEstimator, TallyState
from afresh.rates.priors.gamma_prior import check_level
from afresh.values.arrays import Float64s


class Naive(TallyEstimator):
    """X/Σt (Cho & Garcia-Molina 2003; Zhang 2007 §2.1).

    >>> from afresh.rates.priors.gamma_prior import GammaPrior
    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> polls = polls_from_intervals([1.0, 3.0], [True, False], item=[0, 0])
    >>> Naive().rate(Naive().update(Naive().start(GammaPrior.of(1, 1), 1), polls)).tolist()
    [0.25]
    """

    name = "naive"
    consistent = False

    def rate(self, state: TallyState) -> Float64s:
        """X/Σt."""
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
