"""How many refreshes are worth making for a ratio of benefit to cost (Razniewski 2016, Table 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.allocation.allocate import allocate
from afresh.money.best_interval import solve_items
from afresh.money.priced_items import build_items
from afresh.values.arrays import ArrayLike, Float64s, nonnegative


@dataclass(frozen=True, slots=True)
class RefreshesByRatio:
    """For each ratio of benefit to cost: the best number of refreshes per time, and what it earns.

    Incomes are in units of the cost of one refresh. ``fixed_net_income`` is that of the best
    distribution of a fixed number, all of it made whether it pays or not.
    """

    ratio: Float64s
    refreshes: Float64s
    net_income: Float64s
    fixed_net_income: Float64s

    @property
    def gain(self) -> Float64s:
        """What the best number earns more than the fixed one, as a share of the best net income."""
        share = np.full_like(self.ratio, np.nan)
        np.divide(self.fixed_net_income, self.net_income, out=share, where=self.net_income > 0)
        return 1 - share


def refreshes_by_ratio(
    rate: ArrayLike, ratios: ArrayLike, *, fixed: float, count: ArrayLike = 1
) -> RefreshesByRatio:
    """The best number of refreshes for each ratio B/C, beside a ``fixed`` number distributed for freshness.

    Table 4 of the paper: 270 sites, their half-lives in days, 270 crawls in 30 days.

    >>> half_lives, sites = np.array([1, 7, 30, 120, 365]), 270 * np.array([0.23, 0.15, 0.16, 0.16, 0.3])
    >>> table = refreshes_by_ratio(np.log(2) / half_lives, [0.355, 1, 10], fixed=270 / 30, count=sites)
    >>> (30 * table.refreshes).round(), (100 * table.gain).round(1)
    (array([ 270., 1033., 4712.]), array([ 0. ,  6. , 25.8]))
    """
    many = nonnegative("count", count)
    kinds = build_items(rate, 0.0, 1.0, along=("count", many))
    counts = np.broadcast_to(many, kinds.shape).astype(np.float64).ravel()
    ratio = np.asarray(nonnegative("ratio", ratios), dtype=np.float64).ravel()
    best = solve_items(build_items(kinds.rate, ratio[:, None], 1.0))
    base = allocate(kinds.rate, fixed, weights=counts, costs=counts)
    right = base.freshness * counts.sum()
    return RefreshesByRatio(
        ratio=ratio,
        refreshes=np.asarray(best.frequency @ counts),
        net_income=np.asarray(best.net_income @ counts),
        fixed_net_income=ratio * right - base.spend,
    )
