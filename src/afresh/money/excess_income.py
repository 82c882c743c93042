"""What refreshing at an interval earns more than never refreshing, and whether a longer interval earns more.

    change_probability(u)  1−z(u)           that a refresh finds a change and so pays the update cost
    turning_term(u)        1−z(u)+u·z'(u)   what an update cost adds to the condition for the best interval

Both are computed without cancellation for the decays of ``afresh.model.decay``. The excess of net income over
never refreshing and its slope are

    E(u) = (G·(Z(u)−u·z∞) − K − U·change_probability(u)) / u,    E'(u) = −H(u)/u²,
    H(u) = G·gain(u) − K − U·turning_term(u),                    gain(u) = Z(u)−u·z(u).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from afresh.model.curves import g, h
from afresh.model.decay import Decay, Exponential, Linear, Lomax, Weibull
from afresh.model.decays.parameters import multiply_by_rate
from afresh.model.roots import HUGE, find_crossing
from afresh.money.priced_items import PricedItems
from afresh.money.terms import IncomeTerms
from afresh.values.arrays import Float64s

_AT_ONCE = 1e-100

SMOOTH_DECAYS = (Exponential, Linear, Weibull, Lomax)
"""Decays whose ``turning_term`` is known; any other is searched by its income alone."""


def change_probability(decay: Decay, u: Float64s) -> Float64s:
    """1−z(u), to full relative precision for ``SMOOTH_DECAYS``.

    >>> change_probability(Exponential(1.0), np.array(1e-20))
    array(1.e-20)
    """
    match decay:
        case Exponential():
            return np.asarray(-np.expm1(-multiply_by_rate(u, decay.rate)))
        case Linear():
            return np.minimum(multiply_by_rate(u, decay.rate), 1.0)
        case Weibull():
            return np.asarray(-np.expm1(-weibull_power(decay, u)))
        case Lomax():
            return np.asarray(-np.expm1(-_lomax_power(decay, u)))
        case _:
            return np.asarray(1 - decay.survival(u))


def turning_term(decay: Decay, u: Float64s) -> Float64s:
    """1−z(u)+u·z'(u) of a decay of ``SMOOTH_DECAYS``.

    >>> turning_term(Exponential(1.0), np.array([1.0])).round(4)
    array([0.2642])
    >>> turning_term(Linear(1.0), np.array([0.5, 2.0]))
    array([0., 1.])
    """
    match decay:
        case Exponential():
            return g(multiply_by_rate(u, decay.rate))
        case Linear():
            return np.where(multiply_by_rate(u, decay.rate) < 1, 0.0, 1.0)
        case Weibull():
            power = weibull_power(decay, u)
            near = np.minimum(power, 800.0)  # e^{−800} is 0, ∞·0 is not
            return np.asarray(g(power) + (1 - decay.shape) * near * np.exp(-near))
        case Lomax():
            shape, power = decay.shape, _lomax_power(decay, u)
            near = np.minimum(power, 800.0)
            return np.asarray(g(power) + shape * np.exp(-near) * h(near / shape))
        case _:
            raise NotImplementedError(f"the slope of {type(decay).__name__} is not known")


def excess_income(decay: Decay, terms: IncomeTerms, u: Float64s) -> Float64s:
    """E(u): net income less that of never refreshing, per time; its limits at u = 0 and u = ∞.

    >>> one, none = np.array(1.0), np.array(0.0)
    >>> excess_income(Exponential(0.163), IncomeTerms(one, none, one, none), np.array([2.0, np.inf])).round(2)
    array([0.35, 0.  ])
    """
    inside = (u > 0) & (u < np.inf)
    time = np.where(inside, u, 1.0)
    right = np.where(inside, decay.integral(time) / time, np.where(u > 0, decay.plateau(), 1.0))
    return np.asarray(terms.gain * (right - decay.plateau()) - spend_rate(decay, terms, u))


def spend_rate(decay: Decay, terms: IncomeTerms, u: Float64s) -> Float64s:
    """(K + U·(1−z(u)))/u: what refreshing costs per time; at u = 0 infinite, or U times the hazard if K = 0.

    >>> one, tenth = np.array(1.0), np.array(0.1)
    >>> spend_rate(Linear(0.1), IncomeTerms(one, one, tenth, one), np.array([0.0, 4.0, np.inf]))
    array([  inf, 0.125, 0.   ])
    """
    # refreshing all the time finds each change at once: 1−z(u) over u is the hazard there
    time = np.where(u > 0, u, _AT_ONCE)
    with np.errstate(over="ignore"):
        updates = np.where(terms.update > 0, terms.update, 0.0) * change_probability(decay, time) / time
        checks = np.where(u > 0, terms.check / time, np.where(terms.check > 0, np.inf, 0.0))
    return np.asarray(checks + updates)


def income_at(items: PricedItems, interval: Float64s) -> Float64s:
    """NI of each item at its interval."""

    def income(decay: Decay, terms: IncomeTerms, u: Float64s) -> Float64s:
        return terms.gain * decay.plateau() - terms.stale + excess_income(decay, terms, u)

    return by_group(items, interval, income)


def spend_at(items: PricedItems, interval: Float64s) -> Float64s:
    """What refreshing each item at its interval costs per time."""
    return by_group(items, interval, spend_rate)


def by_group(
    items: PricedItems, u: Float64s, solve: Callable[[Decay, IncomeTerms, Float64s], Float64s]
) -> Float64s:
    """What ``solve`` returns for the decay, the terms and the interval of each item."""
    values = np.empty_like(u)
    for group in items.groups:
        values[group.rows] = solve(group.decay, items.terms.take(group.rows), u[group.rows])
    return values


def frequency_of(interval: Float64s) -> Float64s:
    """1/interval, infinite for an interval of 0."""
    return np.divide(1.0, interval, out=np.full_like(interval, np.inf), where=interval > 0)


def ratio_of(owed: Float64s, gained: Float64s) -> Float64s:
    """owed/gained, which is above 1 where more is owed; 0 or infinite where either is not above 0.

    >>> ratio_of(np.array([1.0, 1.0, -1.0]), np.array([0.0, 2.0, 2.0]))
    array([inf, 0.5, 0. ])
    """
    both = (gained > 0) & (owed > 0)
    with np.errstate(over="ignore", under="ignore"):
        ratio = np.divide(owed, gained, out=np.ones_like(gained), where=both)
    return np.where(both, ratio, np.where(gained > owed, 0.0, np.inf))


def cost_to_gain(decay: Decay, terms: IncomeTerms, u: Float64s) -> Float64s:
    """(K + U·turning_term)/(G·gain): above 1 while H(u) < 0, where a longer interval earns more."""
    owed = terms.check + terms.update * turning_term(decay, u) if terms.update.any() else terms.check
    return ratio_of(owed, terms.gain * decay.gain(u))


def time_range(decay: Decay, items: int) -> tuple[Float64s, Float64s]:
    """The intervals worth searching, as (first, last) for each of ``items`` items under ``decay``.

    They reach from where next to nothing has changed to where nothing is left to change. Both are 1 for what
    never changes.

    >>> time_range(Exponential([2.0, 0.0]), 2)
    (array([5.e-13, 1.e+00]), array([20.,  1.]))
    """
    plateau = np.broadcast_to(decay.plateau(), (items,))
    changing = plateau < 1
    if isinstance(decay, Exponential):
        rate = np.broadcast_to(decay.rate, (items,))
        time = 1 / np.where(changing, rate, 1.0)
        return np.where(changing, 1e-12 * time, 1.0), np.where(changing, 40 * time, 1.0)
    whole = (np.full(items, 1 / HUGE), np.full(items, HUGE))
    half = find_crossing(lambda u: ratio_of(0.5 * (1 - plateau), change_probability(decay, u)), *whole)
    last = find_crossing(lambda u: (decay.survival(u) - plateau) / 1e-17, *whole)
    return np.where(changing, 1e-12 * half, 1.0), np.where(changing, np.maximum(last, 2 * half), 1.0)


def weibull_power(decay: Weibull, u: Float64s) -> Float64s:
    """(λu)^k."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(multiply_by_rate(u, decay.rate) ** decay.shape)


def _lomax_power(decay: Lomax, u: Float64s) -> Float64s:
    """a·ln(1+u/b)."""
    scale = decay.scale
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        # a scale of infinity, which never changes, wins over an infinite interval
        return np.asarray(decay.shape * np.log1p(np.where(scale < np.inf, u / scale, 0.0)))
