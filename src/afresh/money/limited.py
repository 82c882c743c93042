"""Find the best intervals u between refreshes within a limit of money or of refreshes per time.

The best intervals within a limit are those without a limit if refreshes cost more (the multiplier: Cho &
Garcia-Molina 2000, §5; net income: Razniewski 2016, §5; symbols: ``afresh.money.terms``):

    money      Σ (K/u + U(1−z(u))/u) ≤ M    K and U are multiplied by μ ≥ 1: a unit of money must earn μ
    refreshes  Σ 1/u ≤ N                    each refresh costs K+μ', where one more refresh would earn μ' ≥ 0

With exponential decay u = Φ(y)/λ, with y = μKλ/(G−μλU) or y = (K+μ')λ/(G−λU). If the sum jumps over the
limit, because several items become futile at one price, the frequencies before and after it are interpolated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

import numpy as np

from afresh.model.roots import solve_decreasing
from afresh.money.best_interval import solve_items
from afresh.money.excess_income import frequency_of, income_at, spend_at
from afresh.money.priced_items import IncomeOptions, PricedItems, build_items
from afresh.money.terms import IncomeTerms
from afresh.values.arrays import ArrayLike, Float64s, Floats
from afresh.values.errors import InputError

_NEXT_TO_NOTHING = 1e-200  # replaces a limit of 0, so that ``price`` is what the first refresh would earn


@dataclass(frozen=True, slots=True)
class LimitedPlan:
    """The plan with the highest net income within a limit of money or refreshes per time.

    ``interval`` is the time between refreshes of each item. ``price`` is the net income that one more unit of
    money, or one more refresh per time, would earn; it is 0 if the plan stays below the limit. ``spend`` and
    ``refreshes`` are sums over all items, per time."""

    interval: Floats
    frequency: Floats
    net_income: Floats
    price: float
    spend: float
    refreshes: float


def with_money(
    rate: ArrayLike, benefit: ArrayLike, cost: ArrayLike, money: float, **options: Unpack[IncomeOptions]
) -> LimitedPlan:
    """Return the plan with the highest net income whose refreshes cost at most ``money`` per time.

    >>> plan = with_money([0.457, 0.098], 1.0, 1.0, money=0.3)
    >>> round(plan.spend, 9), plan.frequency.round(3), round(plan.price, 3)
    (0.3, array([0.165, 0.135]), 0.674)
    """
    items = build_items(rate, benefit, cost, **options)
    check, update = items.terms.check, items.terms.update

    def dearer(price: float) -> IncomeTerms:
        return replace(items.terms, check=check * (1 + price), update=update * (1 + price))

    return _limited(items, money, "money", dearer, partial(spend_at, items))


def with_refreshes(
    rate: ArrayLike, benefit: ArrayLike, cost: ArrayLike, refreshes: float, **options: Unpack[IncomeOptions]
) -> LimitedPlan:
    """Return the plan with the highest net income that has at most ``refreshes`` per time, for all items.
    Razniewski 2016, §2: of three refreshes in ten years, two for Dr. Smith and one for Dr. Jones earn 12.

    >>> plan = with_refreshes([1 / 10, 1 / 20], 1.0, 1.0, refreshes=0.3, decay="linear")
    >>> plan.interval.round(2), round(10 * float(plan.net_income.sum()), 2)
    (array([5.69, 8.05]), 12.14)
    """
    items = build_items(rate, benefit, cost, **options)
    return limit_refreshes(items, refreshes, np.ones(items.rate.size))


def limit_refreshes(items: PricedItems, refreshes: float, counts: Float64s) -> LimitedPlan:
    """Return the plan with the highest net income that has at most ``refreshes`` per time, for all items.
    ``counts`` is how many items each row stands for; the columns of the plan are those of one item."""

    def dearer(price: float) -> IncomeTerms:
        return replace(items.terms, check=items.terms.check + price)

    return _limited(items, refreshes, "refreshes", dearer, lambda u: counts * frequency_of(u))


def _limited(
    items: PricedItems,
    limit: float,
    name: str,
    dearer: Callable[[float], IncomeTerms],
    amount: Callable[[Float64s], Float64s],
) -> LimitedPlan:
    """Return the plan without a limit if it keeps the limit, else the best plan that reaches the limit.
    ``amount`` computes from the intervals what each item takes of the limit; ``dearer`` adds a price to the
    costs. ``name`` names the limit in error messages."""
    if not 0 <= limit < np.inf:
        raise InputError(f"{name} is {limit}: must be a number of 0 or more, and finite")
    free = _intervals(items, items.terms)
    if float(amount(free).sum()) <= limit:
        return _plan(items, free, 0.0)

    def total(prices: Float64s) -> Float64s:
        return np.array([amount(_intervals(items, dearer(float(price)))).sum() for price in prices])

    target = np.array([max(limit, _NEXT_TO_NOTHING)])
    found = solve_decreasing(total, target, max(float(np.mean(items.terms.check)), _NEXT_TO_NOTHING))
    low, high = (frequency_of(_intervals(items, dearer(float(x[0])))) for x in (found.low, found.high))
    frequency = high + (low - high) * found.share(target)
    interval = frequency_of(frequency)
    return _plan(items, interval if limit > 0 else np.full_like(interval, np.inf), float(found.low[0]))


def _intervals(items: PricedItems, terms: IncomeTerms) -> Float64s:
    return np.asarray(solve_items(items.with_terms(terms)).interval.ravel(), dtype=np.float64)


def _plan(items: PricedItems, interval: Float64s, price: float) -> LimitedPlan:
    frequency = frequency_of(interval)
    return LimitedPlan(
        interval=items.in_input_shape(interval),
        frequency=items.in_input_shape(frequency),
        net_income=items.in_input_shape(income_at(items, interval)),
        price=price,
        spend=float(spend_at(items, interval).sum()),
        refreshes=float(frequency.sum()),
    )
