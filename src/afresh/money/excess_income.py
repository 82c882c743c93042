"""What refreshes every u earn beyond never refreshing, and whether a longer interval u would earn more.

z(t) is the decay, Z(u) = ∫₀ᵘ z, and z∞ the limit of z. With the terms G, K, U of ``afresh.money.terms``, the
net income minus that of never refreshing, E(u), and its slope are

    E(u) = (G·(Z(u)−u·z∞) − K − U·change_probability(u)) / u,    E'(u) = −H(u)/u²,
    H(u) = G·gain(u) − K − U·turning_term(u),                    gain(u) = Z(u)−u·z(u),

    change_probability(u)  1−z(u)           probability that a refresh finds a change and pays the update cost
    turning_term(u)        1−z(u)+u·z'(u)   factor of the update cost in the condition for the best interval

The last two are computed without cancellation for the decays of ``afresh.model.decay``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from afresh.model.curves import g, h
from afresh.model.decay import Decay, Exponential, GammaDecay, Linear, Lomax, Weibull
from afresh.model.decays.parameters import multiply_by_rate
from afresh.model.roots import HUGE, find_crossing
from afresh.money.priced_items import PricedItems
from afresh.money.terms import IncomeTerms
from afresh.values.arrays import Float64s

_AT_ONCE = 1e-100

SMOOTH_DECAYS = (Exponential, Linear, Weibull, GammaDecay, Lomax)
"""The decays whose ``turning_term`` is known; for any other decay the highest income is searched."""


def change_probability(decay: Decay, u: Float64s) -> Float64s:
    """Return 1−z(u), the probability that an item changed in the time u, in all digits for ``SMOOTH_DECAYS``.

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
        case GammaDecay():
            return decay.change_probability(u)
        case _:
            return np.asarray(1 - decay.survival(u))


def turning_term(decay: Decay, u: Float64s) -> Float64s:
    """Return 1−z(u)+u·z'(u) for a decay z in ``SMOOTH_DECAYS``: the factor of the update cost in H(u).

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
            near = np.minimum(power, 800.0)  # e^{−800} is 0 already, and ∞·0 must not occur
            return np.asarray(g(power) + (1 - decay.shape) * near * np.exp(-near))
        case Lomax():
            shape, power = decay.shape, _lomax_power(decay, u)
            near = np.minimum(power, 800.0)
            return np.asarray(g(power) + shape * np.exp(-near) * h(near / shape))
        case GammaDecay():
            return decay.turning_term(u)
        case _:
            raise NotImplementedError(f"the slope of {type(decay).__name__} is not known")


def excess_income(decay: Decay, terms: IncomeTerms, u: Float64s) -> Float64s:
    """Return the net income per time of refreshes every u (0 to ∞), minus that of never refreshing.

    >>> one, none = np.array(1.0), np.array(0.0)
    >>> excess_income(Exponential(0.163), IncomeTerms(one, none, one, none), np.array([2.0, np.inf])).round(2)
    array([0.35, 0.  ])
    """
    inside = (u > 0) & (u < np.inf)
    time = np.where(inside, u, 1.0)
    right = np.where(inside, decay.integral(time) / time, np.where(u > 0, decay.plateau(), 1.0))
    return np.asarray(terms.gain * (right - decay.plateau()) - spend_rate(decay, terms, u))


def spend_rate(decay: Decay, terms: IncomeTerms, u: Float64s) -> Float64s:
    """Return (K + U·(1−z(u)))/u, the cost per time of refreshes every u.
    K is the cost of a refresh, U its additional cost if it finds a change, 1−z(u) the probability of that. At
    u = 0 the result is infinite, or U times the change rate if K = 0.

    >>> one, tenth = np.array(1.0), np.array(0.1)
    >>> spend_rate(Linear(0.1), IncomeTerms(one, one, tenth, one), np.array([0.0, 4.0, np.inf]))
    array([  inf, 0.125, 0.   ])
    """
    # As u → 0 each change is found at once, and (1−z(u))/u tends to the hazard, the rate of changes.
    time = np.where(u > 0, u, _AT_ONCE)
    with np.errstate(over="ignore"):
        updates = np.where(terms.update > 0, terms.update, 0.0) * change_probability(decay, time) / time
        checks = np.where(u > 0, terms.check / time, np.where(terms.check > 0, np.inf, 0.0))
    return np.asarray(checks + updates)


def income_at(items: PricedItems, interval: Float64s) -> Float64s:
    """Return the net income per time of each item that is refreshed every ``interval``."""

    def income(decay: Decay, terms: IncomeTerms, u: Float64s) -> Float64s:
        return terms.gain * decay.plateau() - terms.stale + excess_income(decay, terms, u)

    return by_group(items, interval, income)


def spend_at(items: PricedItems, interval: Float64s) -> Float64s:
    """Return the cost per time of refreshing each item every ``interval``."""
    return by_group(items, interval, spend_rate)


def by_group(
    items: PricedItems, u: Float64s, solve: Callable[[Decay, IncomeTerms, Float64s], Float64s]
) -> Float64s:
    """Return ``solve(decay, terms, u)`` of each item, called once for each group of items with one decay."""
    values = np.empty_like(u)
    for group in items.groups:
        values[group.rows] = solve(group.decay, items.terms.take(group.rows), u[group.rows])
    return values


def frequency_of(interval: Float64s) -> Float64s:
    """Return 1/interval; infinite for an interval of 0."""
    return np.divide(1.0, interval, out=np.full_like(interval, np.inf), where=interval > 0)


def ratio_of(owed: Float64s, gained: Float64s) -> Float64s:
    """Return owed/gained if both are above 0; else 0 if gained > owed, and infinity otherwise.

    >>> ratio_of(np.array([1.0, 1.0, -1.0]), np.array([0.0, 2.0, 2.0]))
    array([inf, 0.5, 0. ])
    """
    both = (gained > 0) & (owed > 0)
    with np.errstate(over="ignore", under="ignore"):
        ratio = np.divide(owed, gained, out=np.ones_like(gained), where=both)
    return np.where(both, ratio, np.where(gained > owed, 0.0, np.inf))


def cost_to_gain(decay: Decay, terms: IncomeTerms, u: Float64s) -> Float64s:
    """Return what one more refresh costs over what it gains, if the item is refreshed every ``u``.

    The ratio is (K + U·turning_term(u))/(G·gain(u)): G is the income of a fresh copy per unit of time, K the
    cost of a refresh, U the further cost if the item has changed. Above 1 a longer interval u earns more.
    """
    owed = terms.check + terms.update * turning_term(decay, u) if terms.update.any() else terms.check
    return ratio_of(owed, terms.gain * decay.gain(u))


def time_range(decay: Decay, items: int) -> tuple[Float64s, Float64s]:
    """Return a tuple (shortest, longest): the range of intervals to search for each of ``items`` items.
    After the shortest time hardly any item has changed; after the longest time, all items that ever change
    have changed. Both are 1 for items that never change.

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
    """Return (λu)^k, with the rate λ and the shape k of the decay, so that z(u) = e^{−(λu)^k}."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(multiply_by_rate(u, decay.rate) ** decay.shape)


def _lomax_power(decay: Lomax, u: Float64s) -> Float64s:
    """Return a·ln(1+u/b), with the shape a and the scale b of the decay, so that z(u) = (1+u/b)^{−a}."""
    scale = decay.scale
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        # An infinite scale means no change ever, even if the interval is infinite too.
        return np.asarray(decay.shape * np.log1p(np.where(scale < np.inf, u / scale, 0.0)))
