"""The best interval of each item, by whichever method its decay has: closed form, pieces, or search."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
import numpy.typing as npt

from afresh.model.decay import Decay, Empirical, Exponential, Geometric, Linear, Lomax, Weibull
from afresh.money.closed_forms import exponential_optimum, geometric_optimum, linear_optimum
from afresh.money.optimum import Optimum
from afresh.money.piecewise import empirical_optimum
from afresh.money.smooth import any_optimum, lomax_optimum, weibull_optimum
from afresh.money.terms import Terms
from afresh.values.arrays import Float64s


@singledispatch
def optimum_of(decay: Decay, terms: Terms) -> Optimum:
    """The best interval under ``decay``; a decay without a method of its own is searched.

    >>> one, none = np.array([1.0]), np.array([0.0])
    >>> optimum_of(Exponential(0.098), Terms(one, none, one, none)).interval.round(2)
    array([5.36])
    """
    return any_optimum(decay, terms)


@optimum_of.register
def _(decay: Exponential, terms: Terms) -> Optimum:
    return exponential_optimum(_like(decay.rate, terms), terms)


@optimum_of.register
def _(decay: Linear, terms: Terms) -> Optimum:
    return linear_optimum(_like(decay.rate, terms), terms)


@optimum_of.register
def _(decay: Geometric, terms: Terms) -> Optimum:
    return geometric_optimum(_like(decay.p, terms), _like(decay.step, terms), terms)


@optimum_of.register
def _(decay: Empirical, terms: Terms) -> Optimum:
    return empirical_optimum(decay, terms)


@optimum_of.register
def _(decay: Weibull, terms: Terms) -> Optimum:
    return weibull_optimum(decay, terms)


@optimum_of.register
def _(decay: Lomax, terms: Terms) -> Optimum:
    return lomax_optimum(decay, terms)


def _like(parameter: npt.ArrayLike, terms: Terms) -> Float64s:
    """A parameter of the decay, one per item."""
    return np.broadcast_to(np.asarray(parameter, dtype=np.float64), terms.gain.shape)
