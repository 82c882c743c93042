"""The two passes over the items in plain NumPy: one fills the histogram, one writes the plan.

They process so few items at a time that all temporary arrays stay in the second-level cache.
"""

from __future__ import annotations

import math

import numpy as np

from afresh.allocation.large.cutoff import Cutoff, freshness_at
from afresh.allocation.large.histogram import Histogram
from afresh.allocation.large.item_columns import ItemColumns, PlanSums
from afresh.model.curves import age_curve
from afresh.values.arrays import Floats

PART = 1 << 14  # items per call of ``write_plan``
THREADS = 1  # the GIL is held half of the time, so a second thread would not help

build_histogram = Histogram.from_columns


def write_plan(columns: ItemColumns, cutoff: Cutoff, scale: float, out: Floats, with_age: bool) -> PlanSums:
    """Write the frequency scale·λ/Φ(y) of each item into ``out``, and return the sums over the plan.
    The module ``cutoff`` explains Φ and y. ``scale`` is nearly 1; it makes the spend meet the budget.

    >>> frequency = np.empty(2)
    >>> write_plan(ItemColumns(np.array([1.0, 5.0])), Cutoff(4.6204), 1.0, frequency, with_age=False).dropped
    1
    >>> frequency.round(2)  # Cho & Garcia-Molina 2000, Table 5 (b)
    array([1.15, 0.  ])
    """
    prices, weight = columns.prices(), columns.weight()
    static, unweighted = columns.count_zeros()
    if static:
        still = columns.rates == 0
        prices[still] = math.inf
    inverse = cutoff.inverse_ratio(prices)
    with np.errstate(over="ignore"):
        prices *= cutoff.multiplier
    y = np.minimum(prices, 1.0, out=prices)
    fresh = freshness_at(y, inverse)
    if scale != 1:
        # To first order scaling changes e^{−r} by r·e^{−r}·(1−1/scale), and r·e^{−r} = (1−y)/(1+1/r).
        fresh -= inverse / (1 + inverse) * (1 - y) * (1 - 1 / scale)
        fresh *= scale
    if static:
        fresh[still] = 1.0
    if columns.weights is not None:
        fresh *= weight
    dropped = columns.size - int(np.count_nonzero(inverse)) - static - unweighted
    inverse *= scale
    age = 0.0
    if with_age:  # the age of a refreshed item is A = r·age_curve(r)/λ
        kept = inverse > 0
        ratio = 1 / inverse[kept]
        kept_weight = np.broadcast_to(weight, kept.shape)[kept]
        age = float((kept_weight * age_curve(ratio) * ratio / columns.rates[kept]).sum())
    inverse *= columns.rates
    out[:] = inverse
    if columns.costs is not None:
        inverse *= columns.costs
    return PlanSums(float(inverse.sum()), float(fresh.sum()), age, dropped)
