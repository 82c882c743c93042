"""The pieces of a decay function that money needs beside its integral, without cancellation where known.

    changed(u)  1−z(u)           the chance that a refresh finds a change: each pays the update cost
    turning(u)  1−z(u)+u·z'(u)   what an update cost adds to the condition for the best interval

The excess of net income over never refreshing and its slope are

    E(u) = (G·(Z(u)−u·z∞) − K − U·changed(u)) / u,    E'(u) = −H(u)/u²,
    H(u) = G·gain(u) − K − U·turning(u),              gain(u) = Z(u)−u·z(u).
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from afresh.model.curves import g, h
from afresh.model.decay import Decay, Exponential, Linear, Lomax, Weibull
from afresh.money.terms import Terms
from afresh.values.arrays import Float64s

_AT_ONCE = 1e-100

SLOPED = (Exponential, Linear, Weibull, Lomax)
"""Decays whose ``turning`` is known; any other is searched by its income alone."""


@singledispatch
def changed(decay: Decay, u: Float64s) -> Float64s:
    """1−z(u), to full relative precision for the decays named below.

    >>> changed(Exponential(1.0), np.array(1e-20))
    array(1.e-20)
    """
    return np.asarray(1 - decay.survival(u))


@changed.register
def _(decay: Exponential, u: Float64s) -> Float64s:
    return np.asarray(-np.expm1(-_product(decay.rate, u)))


@changed.register
def _(decay: Linear, u: Float64s) -> Float64s:
    return np.minimum(_product(decay.rate, u), 1.0)


@changed.register
def _(decay: Weibull, u: Float64s) -> Float64s:
    return np.asarray(-np.expm1(-weibull_power(decay, u)))


@changed.register
def _(decay: Lomax, u: Float64s) -> Float64s:
    return np.asarray(-np.expm1(-_lomax_power(decay, u)))


@singledispatch
def turning(decay: Decay, u: Float64s) -> Float64s:
    """1−z(u)+u·z'(u) of a decay of ``SLOPED``.

    >>> turning(Exponential(1.0), np.array([1.0])).round(4), turning(Linear(1.0), np.array([0.5, 2.0]))
    (array([0.2642]), array([0., 1.]))
    """
    raise NotImplementedError(f"the slope of {type(decay).__name__} is not known")


@turning.register
def _(decay: Exponential, u: Float64s) -> Float64s:
    return g(_product(decay.rate, u))


@turning.register
def _(decay: Linear, u: Float64s) -> Float64s:
    return np.where(_product(decay.rate, u) < 1, 0.0, 1.0)


@turning.register
def _(decay: Weibull, u: Float64s) -> Float64s:
    power = weibull_power(decay, u)
    near = np.minimum(power, 800.0)  # e^{−800} is 0, ∞·0 is not
    return np.asarray(g(power) + (1 - np.asarray(decay.shape)) * near * np.exp(-near))


@turning.register
def _(decay: Lomax, u: Float64s) -> Float64s:
    shape, power = np.asarray(decay.shape), _lomax_power(decay, u)
    near = np.minimum(power, 800.0)
    return np.asarray(g(power) + shape * np.exp(-near) * h(near / shape))


def excess(decay: Decay, terms: Terms, u: Float64s) -> Float64s:
    """E(u): net income less that of never refreshing, per time; its limits at u = 0 and u = ∞.

    >>> one, none = np.array(1.0), np.array(0.0)
    >>> excess(Exponential(0.163), Terms(one, none, one, none), np.array([2.0, np.inf])).round(2)
    array([0.35, 0.  ])
    """
    inside = (u > 0) & (u < np.inf)
    time = np.where(inside, u, 1.0)
    right = np.where(inside, decay.integral(time) / time, np.where(u > 0, decay.plateau(), 1.0))
    return np.asarray(terms.gain * (right - decay.plateau()) - spend(decay, terms, u))


def spend(decay: Decay, terms: Terms, u: Float64s) -> Float64s:
    """(K + U·(1−z(u)))/u: what refreshing costs per time; at u = 0 infinite, or U times the hazard if K = 0.

    >>> one, tenth = np.array(1.0), np.array(0.1)
    >>> spend(Linear(0.1), Terms(one, one, tenth, one), np.array([0.0, 4.0, np.inf]))
    array([  inf, 0.125, 0.   ])
    """
    # refreshing all the time finds each change at once: 1−z(u) over u is the hazard there
    time = np.where(u > 0, u, _AT_ONCE)
    with np.errstate(over="ignore"):
        updates = np.where(terms.update > 0, terms.update, 0.0) * changed(decay, time) / time
        checks = np.where(u > 0, terms.check / time, np.where(terms.check > 0, np.inf, 0.0))
    return np.asarray(checks + updates)


def balance(gained: Float64s, owed: Float64s) -> Float64s:
    """ln(gained/owed), with the sign of gained − owed and nearly straight over ln u; ±800 where undefined.

    >>> balance(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, -1.0]))
    array([-800.,    0.,  800.])
    """
    both = (gained > 0) & (owed > 0)
    ratio = np.divide(gained, owed, out=np.ones_like(gained), where=both)
    return np.where(both, np.log(ratio), np.where(gained > owed, 800.0, -800.0))


def slope(decay: Decay, terms: Terms, u: Float64s) -> Float64s:
    """A function with the sign of H(u) = −u²·E'(u): below 0 while a longer interval earns more."""
    owed = terms.check + terms.update * turning(decay, u) if terms.update.any() else terms.check
    return balance(terms.gain * decay.gain(u), owed)


def _product(rate: object, u: Float64s) -> Float64s:
    """λ·u, where a rate of 0 wins over an infinite interval."""
    given = np.asarray(rate, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.where(given > 0, given * u, 0.0)


def weibull_power(decay: Weibull, u: Float64s) -> Float64s:
    """(λu)^k."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(_product(decay.rate, u) ** np.asarray(decay.shape))


def _lomax_power(decay: Lomax, u: Float64s) -> Float64s:
    """a·ln(1+u/b)."""
    scale = np.asarray(decay.scale, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        # a scale of infinity, which never changes, wins over an infinite interval
        return np.asarray(decay.shape * np.log1p(np.where(scale < np.inf, u / scale, 0.0)))
