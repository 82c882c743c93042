"""The index of an item with a known rate: what a refresh of the item gains now, per unit of cost.

At the time τ after the last refresh the index is w·gain(τ)/c, with the item's weight w, its cost c and the
``gain`` of its decay function (``age_gain`` if the objective is age). For Poisson changes of rate λ it is
w·g(λτ)/(cλ), with g of ``model.curves``.

If the item with the largest index is always refreshed next, the result is the optimal plan. The index of an
item grows from 0 after its refresh. When the optimal time between its refreshes has passed, the index equals
the multiplier μ of the plan, which is the same for all items. So an item is due when its index reaches μ.
"""

from __future__ import annotations

import numpy as np

from afresh.model.curves import phi
from afresh.model.decays.parameters import check_parameter, divide_by_rate
from afresh.values.arrays import ArrayLike, Float64s


def poisson_due(
    rate: ArrayLike, multiplier: ArrayLike, weight: ArrayLike = 1.0, cost: ArrayLike = 1.0
) -> Float64s:
    """Return the time after a refresh at which the next one is due in the optimal plan, for Poisson changes.
    It is Φ(μcλ/w)/λ, with the multiplier μ of the plan, the cost c, the rate λ, the weight w and Φ of
    ``model.curves``; infinite for an item that the plan drops or that never changes.

    >>> from afresh.model.decay import Exponential
    >>> poisson_due([0.0, 1.0, 10.0], Exponential(1.0).gain(1.0)).round(6)
    array([inf,  1., inf])
    """
    rates, weights = check_parameter("rate", rate), check_parameter("weight", weight)
    price = check_parameter("multiplier", multiplier) * check_parameter("cost", cost)
    with np.errstate(over="ignore", under="ignore"):
        return divide_by_rate(phi(rates * divide_by_rate(price, weights)), rates)
