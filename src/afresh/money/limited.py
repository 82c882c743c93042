"""The best intervals when not every refresh that pays can be made: too little money, or too few refreshes.

A limit has a price, and items then behave as if refreshing cost more (SCIENCE of the multiplier: Cho &
Garcia-Molina 2000, §5; net income: Razniewski 2016, §5):

    money      Σ (K/u + U(1−z(u))/u) ≤ M    K and U count μ ≥ 1 times: a unit of money must earn μ
    refreshes  Σ 1/u ≤ N                    each refresh costs K+μ', μ' ≥ 0: what one more would earn

Exponential items then have y = μKλ/(G−μλU) or y = (K+μ')λ/(G−λU) in u = Φ(y)/λ. Where the sum jumps at the
price (items that become futile together), frequencies are interpolated between the two sides of the jump.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from afresh.allocation.roots import solve_decreasing
from afresh.money.items import Items, Options, items_of
from afresh.money.many import solve_items
from afresh.money.net_income import income_at
from afresh.money.pieces import spend
from afresh.money.terms import Array, Terms
from afresh.values.arrays import ArrayLike, Floats
from afresh.values.errors import InputError


@dataclass(frozen=True, slots=True)
class Limited:
    """The best plan within a limit.

    ``price`` is the income that one more unit of the limit would add per unit (for money beside the unit itself,
    so that 0 in both cases says that the limit does not bind); ``spend`` and ``refreshes`` are per time.
    """

    interval: Floats
    frequency: Floats
    net_income: Floats
    price: float
    spend: float
    refreshes: float


def with_money(
    rate: ArrayLike, benefit: ArrayLike, cost: ArrayLike, money: float, **options: Unpack[Options]
) -> Limited:
    """The intervals of the highest net income that cost no more than ``money`` per time.

    >>> plan = with_money([0.457, 0.098], 1.0, 1.0, money=0.3)
    >>> round(plan.spend, 9), plan.frequency.round(3), round(plan.price, 3)
    (0.3, array([0.151, 0.149]), 0.48)
    """
    items = items_of(rate, benefit, cost, **options)

    def dearer(price: float) -> Terms:
        t = items.terms
        return Terms(t.gain, t.stale, t.check * (1 + price), t.update * (1 + price))

    return _limited(items, money, "money", dearer, lambda u: spend_at(items, u))


def with_refreshes(
    rate: ArrayLike, benefit: ArrayLike, cost: ArrayLike, refreshes: float, **options: Unpack[Options]
) -> Limited:
    """The intervals of the highest net income with no more than ``refreshes`` per time in all.

    §2 of the paper: with three refreshes in ten years, Dr. Smith gets two and Dr. Jones one.

    >>> plan = with_refreshes([1 / 10, 1 / 20], 1.0, 1.0, refreshes=0.3, decay="linear")
    >>> plan.interval.round(2), round(10 * plan.net_income.sum(), 2)
    (array([5.69, 8.05]), 12.15)
    """
    items = items_of(rate, benefit, cost, **options)

    def dearer(price: float) -> Terms:
        t = items.terms
        return Terms(t.gain, t.stale, t.check + price, t.update)

    return _limited(items, refreshes, "refreshes", dearer, _frequency)
