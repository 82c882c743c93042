"""Compare the net income of ways to choose refresh intervals (Razniewski 2016, §8.3 and §8.4).

The ways are: today's intervals; one interval for all items, the best of its kind; at most N refreshes per
time, distributed as well as possible; and the best interval of each item. A sweep multiplies all benefits by
factors and compares the ways again, as Table 4 and Figure 6 of the paper do for one example.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from afresh.money.best_interval import solve_items
from afresh.money.excess_income import frequency_of, income_at
from afresh.money.limited import limit_refreshes
from afresh.money.priced_items import PricedItems
from afresh.money.record_bulks import RecordBulks, solve_bulks
from afresh.money.terms import IncomeTerms
from afresh.values.arrays import ArrayLike, Float64s

TODAY, UNIFORM, LIMITED, BEST = "today", "uniform", "limited", "best"
"""The names of the ways to choose intervals."""


@dataclass(frozen=True, slots=True)
class ComparedItems:
    """Items, how many items each row stands for (``counts``), today's interval of each row if it is known,
    and the most refreshes per time of all items together if they are limited."""

    items: PricedItems
    counts: Float64s
    today: Float64s | None = None
    most_refreshes: float | None = None


@dataclass(frozen=True, slots=True)
class WayOfRefreshing:
    """One way to choose the interval of each row, and the net income per time of one item of each row.
    ``refreshes`` and ``total`` (net income) are per time, of all items."""

    interval: Float64s
    net_income: Float64s
    refreshes: float
    total: float


def compare_ways(compared: ComparedItems) -> dict[str, WayOfRefreshing]:
    """Return the ways by name, the best last; ``today`` and ``limited`` only if they are given.

    Razniewski 2016, §8.4: one big, ten medium and twenty small sites of a university.

    >>> from afresh.money.priced_items import build_items
    >>> sites = build_items(0.24, 1.0, 1.0, size=[1024, 61, 22], cost_of_size="sqrt")
    >>> found = compare_ways(ComparedItems(sites, np.array([1.0, 10.0, 20.0]), today=np.ones(3)))
    >>> {name: round(way.total, 1) for name, way in found.items()}
    {'today': 1640.0, 'uniform': 1640.1, 'best': 1673.3}
    """
    items, rows = compared.items, compared.counts.size
    found: dict[str, WayOfRefreshing] = {}
    if compared.today is not None:
        found[TODAY] = _way(compared, compared.today)
    found[UNIFORM] = _way(compared, np.full(rows, best_uniform_interval(items, compared.counts)))
    if compared.most_refreshes is not None:
        plan = limit_refreshes(items, compared.most_refreshes, compared.counts)
        found[LIMITED] = _way(compared, np.asarray(plan.interval, dtype=np.float64).ravel())
    best = solve_items(items.with_terms(items.terms)).interval
    found[BEST] = _way(compared, np.asarray(best, dtype=np.float64).ravel())
    return found


def best_uniform_interval(items: PricedItems, counts: Float64s) -> float:
    """Return the one interval for all items with the highest net income; infinite if none pays.

    If all items have the same interval, the income is that of one bulk whose refresh costs the sum of their
    costs."""
    terms = items.terms
    scaled = IncomeTerms(*(counts * x for x in (terms.gain, terms.stale, terms.check, terms.update)))
    together = RecordBulks(
        items.with_terms(scaled), np.zeros(counts.size, dtype=np.intp), scaled.check.sum(keepdims=True)
    )
    return float(solve_bulks(together).interval[0])


@dataclass(frozen=True, slots=True)
class BenefitSweep:
    """The comparison for all benefits and stale costs multiplied by each of ``factor``: the total net income
    per time of each way by its name, the refreshes per time at the best intervals, and how many items are
    then futile."""

    factor: Float64s
    totals: Mapping[str, Float64s]
    refreshes: Float64s
    futile: Float64s


def sweep_benefit(compared: ComparedItems, factors: ArrayLike) -> BenefitSweep:
    """Return the comparison at each factor by which all benefits and stale costs are multiplied."""
    factor = np.asarray(factors, dtype=np.float64)
    totals: dict[str, list[float]] = {}
    refreshes, futile = [], []
    for times in factor.tolist():
        terms = compared.items.terms
        scaled = replace(terms, gain=times * terms.gain, stale=times * terms.stale)
        ways = compare_ways(replace(compared, items=compared.items.with_terms(scaled)))
        for name, way in ways.items():
            totals.setdefault(name, []).append(way.total)
        refreshes.append(ways[BEST].refreshes)
        futile.append(float(compared.counts @ np.isinf(ways[BEST].interval)))
    columns = {name: np.array(values) for name, values in totals.items()}
    return BenefitSweep(factor, columns, np.array(refreshes), np.array(futile))


def _way(compared: ComparedItems, interval: Float64s) -> WayOfRefreshing:
    income = income_at(compared.items, interval)
    refreshes = float(compared.counts @ frequency_of(interval))
    return WayOfRefreshing(interval, income, refreshes, float(compared.counts @ income))
