"""The sum of uncertain rates: the rate of a view, which changes whenever one of its items does.

Independent Poisson processes add up: the rate of their union is λ = Σ λ_i (Zhang, Tang, Yang & Li 2007, §4).
Each λ_i is known by its median m and its credible interval [low, high]. Its logarithm is modelled as a normal
distribution with one standard deviation below the median, and another one above:

    ln λ_i = ln m + z·σ,   σ = ln(m/low)/q for z < 0,  ln(high/m)/q for z > 0,

with a standard normal z and q the normal quantile of the interval's end. This reproduces all three numbers,
and posteriors of rates are skewed. The sum is simulated. Every rate uses the same evenly spaced quantiles z,
each in another random order, so that the sum of one rate has exactly the interval of that rate.
"""

from __future__ import annotations

import numpy as np

from afresh.values.arrays import Float64s

_DRAWS = 4000
_LEAST = 1e-300  # an interval may begin at 0
_BLOCK = 256  # rates that are simulated in one step


def sum_rates(
    rate: Float64s, low: Float64s, high: Float64s, rng: np.random.Generator, level: float = 0.9
) -> tuple[float, float, float]:
    """Return a tuple (median, low, high) of the sum of rates. ``rate``, ``low`` and ``high`` have an entry
    for each rate: its median, and the ends of the interval that contains it with probability ``level``.

    >>> one = np.array([0.5]), np.array([0.1]), np.array([1.0])
    >>> [round(each, 3) for each in sum_rates(*one, np.random.default_rng(0))]
    [0.5, 0.1, 1.0]
    """
    from scipy.special import ndtri

    if rate.size == 0:
        return 0.0, 0.0, 0.0
    quantiles = (np.arange(_DRAWS) + 0.5) / _DRAWS
    z, end = ndtri(quantiles), ndtri(0.5 + 0.5 * level)
    middle = np.maximum(rate, _LEAST)
    below = np.log(middle / np.clip(low, _LEAST, middle)) / end
    above = np.log(np.maximum(high, middle) / middle) / end
    total = np.zeros(_DRAWS)
    for begin in range(0, rate.size, _BLOCK):
        some = slice(begin, begin + _BLOCK)
        drawn = rng.permuted(np.tile(z, (middle[some].size, 1)), axis=1)
        spread = np.where(drawn < 0, below[some, None], above[some, None])
        total += np.sum(middle[some, None] * np.exp(drawn * spread), axis=0)
    ends = np.quantile(total, (0.5, 0.5 - 0.5 * level, 0.5 + 0.5 * level))
    return float(ends[0]), float(ends[1]), float(ends[2])
