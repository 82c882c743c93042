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

_SHAPES = np.geomspace(0.02, 1e4, 400)  # beyond 1e4 a rate is known to 1 %


def planning_rate(
    rate: ArrayLike, low: ArrayLike, interval: float, level: float = 0.9
) -> npt.NDArray[np.float64]:
    """The rate at which a copy survives half an ``interval`` as probably as under what is known of its rate.

    ``low`` is the lower end of an interval that holds the rate with probability ``level``.

    >>> planning_rate([1.0, 1.0], [0.05, 0.9], interval=20.0).round(2)
    array([0.24, 0.98])
    """
    from scipy.special import gammaincinv

    mean, end = np.asarray(rate, dtype=np.float64), np.asarray(low, dtype=np.float64)
    known = (mean > 0) & np.isfinite(mean) & (end < mean)
    mean_or_1 = np.where(known, mean, 1.0)
    ratio = np.log(np.maximum(np.where(known, end, 1.0) / mean_or_1, 1e-300))
    ratios = np.log(np.maximum(gammaincinv(_SHAPES, (1 - level) / 2) / _SHAPES, 1e-300))
    shape = np.exp(np.interp(ratio, ratios, np.log(_SHAPES)))
    time = interval / 2
    effective = shape / time * np.log1p(time * mean_or_1 / shape)
    return np.where(known & (ratio < ratios[-1]), effective, mean)
