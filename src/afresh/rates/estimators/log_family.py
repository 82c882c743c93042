"""The log family −ln((n−X+a)/(n+a))/t for regular polls (Cho & Garcia-Molina a = 0.5, Zhang a = 0.4).

1−e^{−λt} is the chance that a poll finds a change; a keeps the answer finite when all of them do and
takes out most of the bias. Irregular polls enter with their mean interval, which understates the rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from afresh.rates.estimators.states import TallyEstimator, TallyState, change_probability_interval
from afresh.rates.priors.gamma_prior import check_level
from afresh.values.arrays import ArrayLike, Float64s, Floats, Ints, as_floats, like_inputs
from afresh.values.errors import InputError


def log_ratio(changes: Float64s | Ints, polls: Float64s | Ints, a: float) -> Float64s:
    """r̂ = −ln((n−X+a)/(n+a)), the changes per poll interval.

    >>> log_ratio(np.array([0.0, 7.0]), np.array([7.0, 7.0]), 0.4).round(4).tolist()
    [0.0, 2.9178]
    """
    return np.asarray(-np.log1p(-changes / (polls + a)))


def ratio_estimate(polls: ArrayLike, changes: ArrayLike, a: float = 0.5) -> Any:
    """r̂ = −ln((n−X+a)/(n+a)), changes per poll interval; λ̂ = r̂·f. Finite even if every poll found a change.

    a = 0 is the maximum-likelihood estimate, infinite there.

    >>> round(ratio_estimate(7, 7, a=0.4), 2), ratio_estimate(7, 7, a=0)
    (2.92, inf)
    """
    n, x = _counts(polls, changes)
    if not 0 <= a < math.inf:
        raise InputError(f"a is {a}: must be more than 0, and finite")
    with np.errstate(divide="ignore"):
        return like_inputs(log_ratio(x.astype(np.float64), n.astype(np.float64), a), n, x)


def ratio_interval(polls: ArrayLike, changes: ArrayLike, level: float = 0.9) -> tuple[Any, Any]:
    """Clopper–Pearson bounds on r = −ln(1−p): they cover the true r at least ``level`` of the time.

    Low is 0 if no poll found a change, high is infinite if every one did.

    >>> low, high = ratio_interval(7, 7)
    >>> round(low, 3), high
    (1.055, inf)
    """
    from scipy.special import betaincinv

    n, x = _counts(polls, changes)
    tail = (1 - check_level(level)) / 2
    n64, x64 = np.broadcast_arrays(n.astype(np.float64), x.astype(np.float64))
    some, rest = np.maximum(x64, 1), np.maximum(n64 - x64, 1)
    low = -np.log1p(-betaincinv(some, n64 - some + 1, tail))
    # The bound on q = 1−p keeps r accurate where p is close to 1, the one on p where it is close to 0.
    q, p = betaincinv(rest, n64 - rest + 1, tail), betaincinv(n64 - rest + 1, rest, 1 - tail)
    high = np.where(q < 0.5, -np.log(q), -np.log1p(-np.minimum(p, 0.5)))
    low, high = np.where(x64 == 0, 0.0, low), np.where(x64 == n64, np.inf, high)
    return like_inputs(low, n, x), like_inputs(high, n, x)


def _counts(polls: ArrayLike, changes: ArrayLike) -> tuple[Floats, Floats]:
    n, x = as_floats("polls", polls), as_floats("changes", changes)
    if not (np.all(n >= 1) and np.all((x >= 0) & (x <= n)) and np.all(np.isfinite(n))):
        raise InputError("changes must lie between 0 and the number of polls, and polls be 1 or more")
    return n, x


@dataclass(frozen=True, slots=True)
class LogFamily(TallyEstimator):
    """−ln((n−X+a)/(n+a))/t with t the mean interval.

    >>> from afresh.rates.priors.gamma_prior import GammaPrior
    >>> from afresh.rates.poll_table import polls_from_intervals
    >>> cho = LogFamily("cho", 0.5)
    >>> polls = polls_from_intervals([1.0] * 3, [True] * 3, item=[0] * 3)
    >>> cho.rate(cho.update(cho.start(GammaPrior.of(1, 1), 1), polls)).round(4).tolist()   # ln 7
    [1.9459]
    """

    name: str
    a: float
    consistent = True

    def rate(self, state: TallyState) -> Float64s:
        """r̂ per mean interval."""
        return state.rate_or_prior(log_ratio(state.changes, state.polls, self.a) / state.mean_interval())

    def interval(self, state: TallyState, level: float) -> tuple[Float64s, Float64s]:
        """Clopper–Pearson for 1−e^{−λt}, carried over; no upper end where every poll found a change."""
        low, high = change_probability_interval(state.changes, state.polls, level)
        with np.errstate(divide="ignore"):
            low, high = (-np.log1p(-p) / state.mean_interval() for p in (low, high))
        return state.interval_or_prior(low, high, level)
