"""Net income at given intervals, for any decay (Razniewski 2016, Eqs. 6 and 12–15, corrected).

    NI(u) = n·B·F(u) − n·O·(1−F(u)) − C(n)/u − n·C_U·(1−z(u))/u,    F(u) = (1/u)·∫₀ᵘ z

(the paper's Eqs. 15 and 16 have z(u) where 1−z(u) must stand: only a check that finds a change pays C_U), and
what one interval for all loses against the best for each (Example 4 and §8.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from afresh.money.best_interval import solve_items
from afresh.money.excess_income import income_at
from afresh.money.priced_items import IncomeOptions, PricedItems, build_items
from afresh.money.record_bulks import RecordBulks, solve_bulks
from afresh.money.terms import IncomeTerms
from afresh.values.arrays import ArrayLike, Float64s, nonnegative
from afresh.values.errors import InputError


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


@dataclass(frozen=True, slots=True)
class UniformIncome:
    """The net income of all items at one interval, beside that of each item at its own best interval."""

    interval: float
    net_income: float
    best_net_income: float

    @property
    def loss(self) -> float:
        """What one interval for everything loses, per time."""
        return self.best_net_income - self.net_income

    @property
    def loss_share(self) -> float:
        """The loss as a share of the best net income; NaN where that is not above 0."""
        return self.loss / self.best_net_income if self.best_net_income > 0 else float("nan")


def against_uniform(
    rate: ArrayLike,
    benefit: ArrayLike,
    cost: ArrayLike,
    *,
    interval: float | None = None,
    count: ArrayLike = 1,
    **options: Unpack[IncomeOptions],
) -> UniformIncome:
    """Net income at one ``interval`` for all items, by default the best such, against individual intervals.

    ``count`` says how many items of each kind there are. §8.4 of the paper: one big, ten medium and twenty
    small web sites, whose refreshes cost the square root of their size, all refreshed yearly.

    >>> sites = {"size": [1024, 61, 22], "cost_of_size": "sqrt", "count": [1, 10, 20]}
    >>> yearly = against_uniform(0.24, 1.0, 1.0, interval=1.0, **sites)
    >>> round(yearly.net_income, 1), round(yearly.best_net_income, 1), round(yearly.loss_share, 4)
    (1640.0, 1673.3, 0.0199)
    """
    many = nonnegative("count", count)
    items = build_items(rate, benefit, cost, **options, along=("count", many))
    counts = np.broadcast_to(many, items.shape).astype(np.float64).ravel()
    if interval is None:
        interval = _best_interval_for_all(items, counts)
    elif not interval > 0:
        raise InputError(f"interval is {interval}: must be above 0")
    alike = income_at(items, np.full(counts.size, float(interval)))
    best = solve_items(items.with_terms(items.terms)).net_income.ravel()
    return UniformIncome(float(interval), float(counts @ alike), float(counts @ best))


def _best_interval_for_all(items: PricedItems, counts: Float64s) -> float:
    """The interval of the highest total: all items as one bulk whose cost is the sum of theirs."""
    one = items.terms
    scaled = items.with_terms(
        IncomeTerms(one.gain * counts, one.stale * counts, one.check * counts, one.update * counts)
    )
    check = np.array([scaled.terms.check.sum()])
    whole = RecordBulks(scaled, np.zeros(counts.size, dtype=np.intp), check)
    return float(solve_bulks(whole).interval[0])
