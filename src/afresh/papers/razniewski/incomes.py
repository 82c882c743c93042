"""Net income at given intervals between refreshes, for any decay (Razniewski 2016, Eqs. 6, 12–15, corrected).

    NI(u) = n·B·F(u) − n·O·(1−F(u)) − C(n)/u − n·C_U·(1−z(u))/u,    F(u) = (1/u)·∫₀ᵘ z

NI is the net income per unit of time of n records that are refreshed together every u. z is the decay, B the
benefit of a right record and O the cost of a wrong one per unit of time. C(n) is the cost of a check, C_U the
additional cost of an update. The paper's Eqs. 15 and 16 have z(u) instead of 1−z(u), which is wrong, because
only a check that finds a change costs C_U.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from afresh.money.best_interval import solve_items
from afresh.money.excess_income import income_at
from afresh.money.priced_items import IncomeOptions, build_items
from afresh.values.arrays import ArrayLike, nonnegative


def net_income(
    interval: ArrayLike,
    rate: ArrayLike,
    benefit: ArrayLike,
    cost: ArrayLike,
    **options: Unpack[IncomeOptions],
) -> Any:
    """Return the net income per unit of time of items that are refreshed every ``interval``; ∞ means never.
    Example 3 of the paper: a 40-year-old doctor's address, refreshed every two years.

    >>> round(net_income(2.0, 0.163, 1.0, 1.0), 2)
    0.35

    Example 9: a check costs 0.10, and 1 more if it finds a change; checks every 4.42 years, and every year.

    >>> net_income([4.42, 1.0], 0.163, 1.0, 0.1, update_cost=1.0).round(3)
    array([0.574, 0.672])
    """
    times = nonnegative("interval", interval, infinite=True)
    items = build_items(rate, benefit, cost, **options, along=("interval", times))
    income = income_at(items, np.broadcast_to(times, items.shape).astype(np.float64).ravel())
    return items.in_input_shape(income) if items.shape else float(income[0])


def against_uniform(
    rate: ArrayLike,
    benefit: ArrayLike,
    cost: ArrayLike,
    *,
    interval: float,
    count: ArrayLike = 1,
    **options: Unpack[IncomeOptions],
) -> tuple[float, float]:
    """Return a tuple (uniform, best) of net incomes of all items together.

    ``uniform`` is the income if all items are refreshed every ``interval``, ``best`` that at each item's best
    interval. ``count`` is the number of items of each kind. The example is §8.4 of the paper: one big, ten
    medium and twenty small web sites, whose refreshes cost the square root of their size.

    >>> sites = {"size": [1024, 61, 22], "cost_of_size": "sqrt", "count": [1, 10, 20]}
    >>> alike, best = against_uniform(0.24, 1.0, 1.0, interval=1.0, **sites)
    >>> round(alike, 1), round(best, 1), round(1 - alike / best, 4)
    (1640.0, 1673.3, 0.0199)
    """
    many = nonnegative("count", count)
    items = build_items(rate, benefit, cost, **options, along=("count", many))
    counts = np.broadcast_to(many, items.shape).astype(np.float64).ravel()
    best = solve_items(items.with_terms(items.terms)).net_income.ravel()
    return float(counts @ income_at(items, np.full(counts.size, float(interval)))), float(counts @ best)
