"""The rate to plan with, from a rate and what is known of it.

With little evidence the posterior mean of a rate is ruled by the fast changers an item might be; a plan made
with it drops the item as hopeless, and may lose 30 points of freshness to refreshing all equally often. What
counts is how probably the copy survives until the next refresh: −ln E[e^{−λt}]/t, which for a Gamma(a, b)
posterior is (a/t)·ln(1+t/b). The posterior is the Gamma distribution with the given mean whose lower
quantile is the given ``low``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import ArrayLike

_SHAPES = np.geomspace(0.1, 1e4, 400)  # beyond 1e4 a rate is known to 1 %


def planning_rate(
    rate: ArrayLike, low: ArrayLike, interval: float, level: float = 0.9
) -> npt.NDArray[np.float64]:
    """The rate at which a copy survives half an ``interval`` as probably as under what is known of its rate.

    ``low`` is the lower end of an interval that holds the rate with probability ``level``.

    >>> planning_rate([1.0, 1.0], [0.05, 0.9], interval=20.0).round(2)
    array([0.24, 0.98])
    """
    return surviving_rate(rate, posterior_shape(rate, low, level), interval)


def surviving_rate(rate: ArrayLike, shape: ArrayLike, interval: float) -> npt.NDArray[np.float64]:
    """The same for rates of mean ``rate`` under Gamma distributions of ``shape`` (∞: the rate is exact).

    >>> surviving_rate([1.0, 1.0], [1.0, np.inf], interval=20.0).round(2)
    array([0.24, 1.  ])
    """
    mean, shape = np.asarray(rate, dtype=np.float64), np.asarray(shape, dtype=np.float64)
    known = (mean > 0) & np.isfinite(mean) & np.isfinite(shape)
    a, m, time = np.where(known, shape, 1.0), np.where(known, mean, 1.0), interval / 2
    return np.where(known, a / time * np.log1p(time * m / a), mean)


def posterior_shape(rate: ArrayLike, low: ArrayLike, level: float = 0.9) -> npt.NDArray[np.float64]:
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
