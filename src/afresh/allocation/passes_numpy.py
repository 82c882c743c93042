"""The two passes over the items in plain NumPy: one fills the histogram, one writes the plan.

Items are taken in chunks small enough for all temporaries to stay in the second cache.
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.columns import Columns, Sums
from afresh.allocation.cutoff import Cutoff, freshness_at
from afresh.allocation.histogram import Histogram
from afresh.model.curves import Float64s, aged
from afresh.values.arrays import Floats

PART = 1 << 14  # items per call of ``apply``

tally = Histogram.of_columns


def apply(columns: Columns, cutoff: Cutoff, scale: float, out: Floats, *, with_age: bool) -> Sums:
    """Write f = scale·λ/Φ(y) of each item into ``out`` and say what the plan adds up to.

    ``scale`` is 1 but for a few parts in 1e7, the correction that makes the spend meet the budget.

    >>> frequency = np.empty(2)
    >>> apply(Columns(np.array([1.0, 5.0])), Cutoff(4.6204), 1.0, frequency, with_age=False).dropped
    1
    >>> frequency.round(2)  # Cho & Garcia-Molina 2000, Table 5 (b)
    array([1.15, 0.  ])
    """
    prices, weight = columns.prices(), columns.weight()
    still = columns.rates == 0
    static = bool(still.any())
    if static:
        prices[still] = cutoff.edge  # any price above 0 will do
    inverse = cutoff.inverse_ratio(prices)
    with np.errstate(over="ignore"):
        y = np.minimum(prices * cutoff.multiplier, 1.0)
    fresh = _freshness_at_scale(y, inverse, scale)
    active = ~still
    if columns.weights is not None:
        active &= columns.weights > 0
        inverse *= active
        fresh *= weight
    if static:
        fresh[still] = np.broadcast_to(weight, still.shape)[still]
        inverse[still] = 0.0
    dropped = int(active.sum()) - int(np.count_nonzero(inverse))
    age = _age(columns, scale * inverse) if with_age else 0.0
    inverse *= scale
    inverse *= columns.rates
    out[:] = inverse
    if columns.costs is not None:
        inverse *= columns.costs
    return Sums(float(inverse.sum()), float(fresh.sum()), age, dropped)


def _freshness_at_scale(y: Float64s, inverse: Float64s, scale: float) -> Float64s:
    """F at the frequency scale·f: to the first order e^{−r} is off by r·e^{−r}·(1−1/scale).

    And r·e^{−r} = (1−y)/(1+1/r) where y = g(r).
    """
    fresh = freshness_at(y, inverse)
    if scale != 1:
        fresh -= inverse / (1 + inverse) * (1 - y) * (1 - 1 / scale)
        fresh *= scale
    return fresh


def _age(columns: Columns, inverse: Float64s) -> float:
    """Σ w·A over the items that are refreshed: A = r·aged(r)/λ."""
    kept = inverse > 0
    ratio = 1 / inverse[kept]
    weight = np.broadcast_to(columns.weight(), kept.shape)[kept]
    return float((weight * aged(ratio) * ratio / columns.rates[kept]).sum())
