"""The best interval of each item, by whichever method its decay has: closed form, pieces, or search."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from afresh.model.decay import Decay, Empirical, Exponential, Geometric, Linear, Lomax, Weibull
from afresh.money.closed_forms import exponential_optimum, geometric_optimum, linear_optimum
from afresh.money.piecewise import empirical_optimum
from afresh.money.smooth import any_optimum, lomax_optimum, weibull_optimum
from afresh.money.terms import IncomeTerms, IntervalOptimum
from afresh.values.arrays import Float64s


def find_optimum(decay: Decay, terms: IncomeTerms) -> IntervalOptimum:
    """The best interval under ``decay``; a decay without a method of its own is searched.

    >>> one, none = np.array([1.0]), np.array([0.0])
    >>> find_optimum(Exponential(0.098), IncomeTerms(one, none, one, none)).interval.round(2)
    array([5.36])
    """

    def per_item(parameter: npt.ArrayLike) -> Float64s:
        return np.broadcast_to(np.asarray(parameter, dtype=np.float64), terms.gain.shape)

    match decay:
        case Exponential():
            return exponential_optimum(per_item(decay.rate), terms)
        case Linear():
            return linear_optimum(per_item(decay.rate), terms)
        case Geometric():
            return geometric_optimum(per_item(decay.p), per_item(decay.step), terms)
        case Empirical():
            return empirical_optimum(decay, terms)
        case Weibull():
            return weibull_optimum(decay, terms)
        case Lomax():
            return lomax_optimum(decay, terms)
        case _:
            return any_optimum(decay, terms)
