"""The best interval as every solver returns it, whatever the decay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import Float64s


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best interval of each item, with the terms of ``afresh.money.terms``.

    ``interval``  u*, the interval of the highest net income; infinite where none beats never refreshing.
    ``excess``    NI(u*) less the income of never refreshing; above 0, or 0 where the interval is infinite.
    ``freshness`` F(u*), the share of time the copy is right.
    ``threshold`` the gain G = n(B+O) up to which no interval beats never refreshing.

    Where NI jumps down at a step of z, its supremum is the limit from the left: ``excess`` is
    that limit and ``interval`` the last moment before the step.
    """

    interval: Float64s
    excess: Float64s
    freshness: Float64s
    threshold: Float64s


def settle(
    interval: Float64s, excess: Float64s, freshness: Float64s, threshold: Float64s, plateau: Float64s | float
) -> Optimum:
    """An optimum with futile items put to an infinite interval, where freshness is the plateau z(∞).

    >>> one = np.array([1.0])
    >>> settle(one, -one, one, one, 0.25)
    Optimum(interval=array([inf]), excess=array([0.]), freshness=array([0.25]), threshold=array([1.]))
    """
    pays = excess > 0
    return Optimum(
        interval=np.where(pays, interval, np.inf),
        excess=np.where(pays, excess, 0.0),
        freshness=np.where(pays, freshness, plateau),
        threshold=threshold,
    )


def just_before(time: Float64s) -> Float64s:
    """The last moment before a step at ``time``, early enough to stay so when divided by the step's width.

    >>> bool(just_before(np.array(3.0)) < 3.0), int(np.floor(just_before(np.array(0.3)) / 0.1))
    (True, 2)
    """
    return time * (1 - 4 * np.finfo(np.float64).eps)
