"""The intervals worth searching: from where next to nothing changes to where nothing is left to change."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from afresh.model.decay import Decay, Exponential
from afresh.money.excess_income import changed
from afresh.money.roots import rising_root
from afresh.values.arrays import Float64s

LONGEST = 1e300


@singledispatch
def time_range(decay: Decay, items: int) -> tuple[Float64s, Float64s]:
    """(first, last) for each of ``items`` items under ``decay``; what never changes spans nothing, at 1.

    >>> time_range(Exponential([2.0, 0.0]), 2)
    (array([5.e-13, 1.e+00]), array([20.,  1.]))
    """
    whole = (np.full(items, 1 / LONGEST), np.full(items, LONGEST))
    plateau = np.broadcast_to(decay.plateau(), (items,))
    half = rising_root(lambda u: changed(decay, u) - 0.5 * (1 - plateau), *whole)
    last = rising_root(lambda u: 1e-17 - (decay.survival(u) - plateau), *whole)
    moves = plateau < 1
    return np.where(moves, 1e-12 * half, 1.0), np.where(moves, np.maximum(last, 2 * half), 1.0)


@time_range.register
def _(decay: Exponential, items: int) -> tuple[Float64s, Float64s]:
    rate = np.broadcast_to(np.asarray(decay.rate, dtype=np.float64), (items,))
    time = 1 / np.where(rate > 0, rate, 1.0)
    return np.where(rate > 0, 1e-12 * time, 1.0), np.where(rate > 0, 40 * time, 1.0)
