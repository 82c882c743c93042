"""The rate of an item of which one of two things is true, as that its rate jumped or that it did not.

The belief is the mixture of both. If both are unsure, its interval is wider than each of the two.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import ndtr, ndtri

from afresh.values.arrays import Float64s
from afresh.values.results import RateEstimates

_LEAST = 1e-300  # of the end of an interval, whose logarithm is needed
_HALVINGS = 50


def either_rate(first: RateEstimates, other: RateEstimates, chance: Float64s, level: float) -> RateEstimates:
    """Return the estimates of items for which ``other`` is right with the probability ``chance``, and else
    ``first``. Each belief is taken to be lognormal, by the two ends of its interval of this ``level``. So the
    ends of the mixture are those of one belief if ``chance`` is 0 or 1.

    >>> slow = RateEstimates(*(np.array([x]) for x in (1.0, 0.5, 2.0, 9, 3)), "grid")
    >>> fast = RateEstimates(*(np.array([x]) for x in (16.0, 8.0, 32.0, 9, 3)), "grid")
    >>> [either_rate(slow, fast, np.array([p]), 0.9).high.round(1).tolist() for p in (0.0, 0.3, 1.0)]
    [[2.0], [24.1], [32.0]]
    """
    weights, beliefs = (1.0 - chance, chance), []
    for found in (first, other):
        low, high = np.log(np.maximum(found.low, _LEAST)), np.log(np.maximum(found.high, 2.0 * _LEAST))
        spread = np.maximum(high - low, 1e-9) / (2.0 * float(ndtri(0.5 + 0.5 * level)))
        beliefs.append((0.5 * (low + high), spread))

    def end(probability: float) -> Float64s:
        reach = max(abs(float(ndtri(min(probability, 1.0 - probability)))), 1.0)
        below = np.min([middle - reach * spread for middle, spread in beliefs], axis=0)
        above = np.max([middle + reach * spread for middle, spread in beliefs], axis=0)
        for _ in range(_HALVINGS):
            at = 0.5 * (below + above)
            mass = sum(
                weight * ndtr((at - middle) / spread)
                for weight, (middle, spread) in zip(weights, beliefs, strict=True)
            )
            below, above = np.where(mass < probability, at, below), np.where(mass < probability, above, at)
        return np.asarray(np.exp(0.5 * (below + above)))

    rate = weights[0] * first.rate + weights[1] * other.rate
    return replace(first, rate=rate, low=end(0.5 - 0.5 * level), high=end(0.5 + 0.5 * level))
