"""The rate to plan with, from an estimated rate and its uncertainty.

With little evidence the posterior mean of a rate is dominated by the high rates that the item might have. A
plan made with it drops the item, and may have 30 points less freshness than refreshing all items equally
often. What counts is the probability that the copy stays right until the next refresh: −ln E[e^{−λt}]/t,
which for a Gamma(a, b) posterior is (a/t)·ln(1+t/b). The posterior is the Gamma distribution with the given
mean whose lower quantile is the given ``low``.

After three polls even that posterior is not reliable, because its prior was learned from as little: an item
without a change gets a rate far below those that have changed, and the plan hardly refreshes it. So rates are
shrunk towards each other, the more so the fewer polls there are: after n polls by the share 3/n/(1+0.8a) of
the way, in ln λ, to the mean of all. Equal rates give the uniform plan, so the plan stays near it while
little is known.
"""

from __future__ import annotations

import numpy as np

from afresh.values.arrays import ArrayLike, Float64s

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
