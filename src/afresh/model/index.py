"""The index of an item: what refreshing it now gains per unit of cost, for known rates.

Refreshing whatever has the largest index runs the continuous optimum without solving for it: an item's index
grows from 0 after a refresh, and at the item's optimal interval it is the multiplier μ, the same for all.
So an item is due when its index reaches μ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from afresh.model.curves import phi
from afresh.model.decay import Decay, Exponential
from afresh.model.decays.parameters import check_parameter, divide_by_rate
from afresh.model.freshness import cast_like_inputs, check_shapes
from afresh.values.arrays import Float64s, as_floats


def freshness_index(
    decay: Decay, tau: npt.ArrayLike, weight: npt.ArrayLike = 1.0, cost: npt.ArrayLike = 1.0
) -> Any:
    """w·[∫₀^τ z − τ·z(τ)]/c, τ after the last refresh; 0 for what never changes.

    For Gamma-distributed knowledge of the rate (Lomax) it is the Bayes index.

    >>> from afresh.model.decay import Linear
    >>> freshness_index(Linear(0.5), [1.0, 2.0, 9.0])
    array([0.25, 1.  , 1.  ])
    """
    return _per_cost(decay.gain(check_parameter("tau", tau, infinite=True)), tau, weight, cost)


def poisson_index(
    rate: npt.ArrayLike, tau: npt.ArrayLike, weight: npt.ArrayLike = 1.0, cost: npt.ArrayLike = 1.0
) -> Any:
    """w·g(λτ)/(cλ): the freshness index under Poisson changes, never above w/(cλ).

    >>> poisson_index([1.0, 10.0], 1.0).round(4)
    array([0.2642, 0.1   ])
    """
    return freshness_index(Exponential(rate), tau, weight, cost)


def age_index(
    decay: Decay, tau: npt.ArrayLike, weight: npt.ArrayLike = 1.0, cost: npt.ArrayLike = 1.0
) -> Any:
    """w·[τ²/2 − ∫₀^τ s·z(s)ds]/c: the index when age counts; it grows without bound for whatever changes.

    >>> age_index(Exponential([1.0, 10.0]), 1.0).round(4)
    array([0.2358, 0.49  ])
    """
    return _per_cost(decay.age_gain(check_parameter("tau", tau, infinite=True)), tau, weight, cost)


def poisson_due(
    rate: npt.ArrayLike, multiplier: npt.ArrayLike, weight: npt.ArrayLike = 1.0, cost: npt.ArrayLike = 1.0
) -> Float64s:
    """Time after a refresh at which ``poisson_index`` reaches μ: Φ(μcλ/w)/λ; infinite where it never does.

    >>> poisson_due([0.0, 1.0, 10.0], poisson_index(1.0, 1.0)).round(6)
    array([inf,  1., inf])
    """
    rates, weights = check_parameter("rate", rate), check_parameter("weight", weight)
    price = check_parameter("multiplier", multiplier) * check_parameter("cost", cost)
    with np.errstate(over="ignore", under="ignore"):
        return divide_by_rate(phi(rates * divide_by_rate(price, weights)), rates)


def _per_cost(gain: Float64s, tau: npt.ArrayLike, weight: npt.ArrayLike, cost: npt.ArrayLike) -> Any:
    weights, costs = as_floats("weight", weight), as_floats("cost", cost)
    check_parameter("weight", weights)
    check_parameter("cost", costs, low=1e-300)
    check_shapes(item=gain, weight=weights, cost=costs)
    with np.errstate(over="ignore", under="ignore"):
        # A weight of 0 is worth nothing, however large the gain.
        value = np.where(weights > 0, gain, 0.0) * weights.astype(np.float64) / costs.astype(np.float64)
    return cast_like_inputs(np.asarray(value), as_floats("tau", tau), weights, costs)
