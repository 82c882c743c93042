"""The best interval of each item, by whichever method its decay has: closed form, pieces, or search."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
import numpy.typing as npt

from afresh.model.decay import Decay, Empirical, Exponential, Geometric, Linear, Lomax, Weibull
from afresh.money.closed_forms import exponential_optimum, geometric_optimum, linear_optimum
from afresh.money.piecewise import empirical_optimum
from afresh.money.smooth import any_optimum, lomax_optimum, weibull_optimum
from afresh.money.terms import IncomeTerms, IntervalOptimum
from afresh.values.arrays import Float64s


@singledispatch
def find_optimum(decay: Decay, terms: IncomeTerms) -> IntervalOptimum:
    """The best interval under ``decay``; a decay without a method of its own is searched.

    >>> one, none = np.array([1.0]), np.array([0.0])
    >>> find_optimum(Exponential(0.098), IncomeTerms(one, none, one, none)).interval.round(2)
    array([5.36])
    """
    return any_optimum(decay, terms)


@find_optimum.register
def _(decay: Exponential, terms: IncomeTerms) -> IntervalOptimum:
    return exponential_optimum(_like(decay.rate, terms), terms)


@find_optimum.register
def _(decay: Linear, terms: IncomeTerms) -> IntervalOptimum:
    return linear_optimum(_like(decay.rate, terms), terms)


@find_optimum.register
def _(decay: Geometric, terms: IncomeTerms) -> IntervalOptimum:
    return geometric_optimum(_like(decay.p, terms), _like(decay.step, terms), terms)


@find_optimum.register
def _(decay: Empirical, terms: IncomeTerms) -> IntervalOptimum:
    return empirical_optimum(decay, terms)


@find_optimum.register
def _(decay: Weibull, terms: IncomeTerms) -> IntervalOptimum:
    return weibull_optimum(decay, terms)


@find_optimum.register
def _(decay: Lomax, terms: IncomeTerms) -> IntervalOptimum:
    return lomax_optimum(decay, terms)


def _like(parameter: npt.ArrayLike, terms: IncomeTerms) -> Float64s:
    """A parameter of the decay, one per item."""
    return np.broadcast_to(np.asarray(parameter, dtype=np.float64), terms.gain.shape)
