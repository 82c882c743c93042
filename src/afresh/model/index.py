"""The index of an item with a known rate: what refreshing the item now gains per unit of cost.

At the time τ since the last refresh the index is w·gain(τ)/c, with the weight w, the cost c and the gain ∫₀^τ
z − τ·z(τ) of ``model.decay`` (``age_gain`` if the objective is age). For Poisson changes it is w·g(λτ)/(cλ) ≤
w/(cλ). For a rate that is Gamma distributed (Lomax decay) it is the Bayes index.

Refreshing the item of the largest index gives the optimal plan without solving for it. The index of an item
grows from 0 after a refresh, and at the item's optimal interval it equals the multiplier μ, which is the same
for all items. So an item is due when its index reaches μ.
"""

from __future__ import annotations

import numpy as np

from afresh.model.curves import phi
from afresh.model.decays.parameters import check_parameter, divide_by_rate
from afresh.values.arrays import ArrayLike, Float64s


def poisson_due(
    rate: ArrayLike, multiplier: ArrayLike, weight: ArrayLike = 1.0, cost: ArrayLike = 1.0
) -> Float64s:
    """Return the time after a refresh at which the index reaches μ for Poisson changes: Φ(μcλ/w)/λ, or ∞.

    >>> from afresh.model.decay import Exponential
    >>> poisson_due([0.0, 1.0, 10.0], Exponential(1.0).gain(1.0)).round(6)
    array([inf,  1., inf])
    """
    rates, weights = check_parameter("rate", rate), check_parameter("weight", weight)
    price = check_parameter("multiplier", multiplier) * check_parameter("cost", cost)
    with np.errstate(over="ignore", under="ignore"):
        return divide_by_rate(phi(rates * divide_by_rate(price, weights)), rates)
