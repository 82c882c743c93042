"""The index of an item: what refreshing it now gains per unit of cost, for known rates.

It is w·gain(τ)/c, τ after the last refresh, with the gain ∫₀^τ z − τ·z(τ) of ``model.decay`` (``age_gain``
when age counts); for Gamma-distributed knowledge of the rate (Lomax) it is the Bayes index, and under Poisson
changes w·g(λτ)/(cλ), never above w/(cλ).

Refreshing whatever has the largest index runs the continuous optimum without solving for it: an item's index
grows from 0 after a refresh, and at the item's optimal interval it is the multiplier μ, the same for all.
So an item is due when its index reaches μ.
"""

from __future__ import annotations

import numpy as np

from afresh.model.curves import phi
from afresh.model.decays.parameters import check_parameter, divide_by_rate
from afresh.values.arrays import ArrayLike, Float64s


def poisson_due(
    rate: ArrayLike, multiplier: ArrayLike, weight: ArrayLike = 1.0, cost: ArrayLike = 1.0
) -> Float64s:
    """Time after a refresh at which the index reaches μ under Poisson changes: Φ(μcλ/w)/λ; infinite if never.

    >>> from afresh.model.decay import Exponential
    >>> poisson_due([0.0, 1.0, 10.0], Exponential(1.0).gain(1.0)).round(6)
    array([inf,  1., inf])
    """
    rates, weights = check_parameter("rate", rate), check_parameter("weight", weight)
    price = check_parameter("multiplier", multiplier) * check_parameter("cost", cost)
    with np.errstate(over="ignore", under="ignore"):
        return divide_by_rate(phi(rates * divide_by_rate(price, weights)), rates)
