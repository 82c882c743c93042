"""Net income of refreshing at a given interval, for any decay (Razniewski 2016, Eqs. 6 and 12–15, corrected).

    NI(u) = n·B·F(u) − n·O·(1−F(u)) − C(n)/u − n·C_U·(1−z(u))/u,    F(u) = (1/u)·∫₀ᵘ z

(the paper's Eqs. 15 and 16 have z(u) where 1−z(u) must stand: only a check that finds a change pays C_U).
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

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
    """Net income per time of refreshing every ``interval`` (infinite: never). Scalars give a float.

    Example 3 of the paper: a 40-year-old doctor's address, refreshed every two years.

    >>> round(net_income(2.0, 0.163, 1.0, 1.0), 2)
    0.35

    Example 9: a check costs 0.10, and 1 more where it finds a change; every 4.42 years, then yearly.

    >>> net_income([4.42, 1.0], 0.163, 1.0, 0.1, update_cost=1.0).round(3)
    array([0.574, 0.672])
    """
    times = nonnegative("interval", interval, infinite=True)
    items = build_items(rate, benefit, cost, **options, along=("interval", times))
    income = income_at(items, np.broadcast_to(times, items.shape).astype(np.float64).ravel())
    return items.in_input_shape(income) if items.shape else float(income[0])
