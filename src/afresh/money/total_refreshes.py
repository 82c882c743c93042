"""Compute the total number of refreshes per time that earns the most (Razniewski 2016, §2)."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from afresh.money.best_interval import solve_items
from afresh.money.priced_items import IncomeOptions, build_items
from afresh.values.arrays import ArrayLike, nonnegative


def best_total_refreshes(
    rate: ArrayLike,
    benefit: ArrayLike,
    cost: ArrayLike,
    *,
    count: ArrayLike = 1,
    **options: Unpack[IncomeOptions],
) -> float:
    """Return the refreshes per time of all items together if each is refreshed at its best interval.
    ``count`` is the number of items of each kind. Razniewski 2016, §2: 3.8 refreshes in ten years for the
    addresses of Dr. Smith and Dr. Jones.

    >>> round(10 * best_total_refreshes([1 / 10, 1 / 20], 1.0, 1.0, decay="linear"), 1)
    3.8
    """
    many = nonnegative("count", count)
    items = build_items(rate, benefit, cost, **options, along=("count", many))
    frequency = solve_items(items.with_terms(items.terms)).frequency.ravel()
    return float(np.broadcast_to(many, items.shape).astype(np.float64).ravel() @ frequency)
