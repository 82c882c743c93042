"""Razniewski 2016, §8.3 and §9: how many crawls pay. Time in days, the cost of one crawl is 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.allocation.allocate import allocate
from afresh.money.best_interval import solve_items
from afresh.money.inverse import implied_benefit
from afresh.money.priced_items import build_items
from afresh.papers.cho.budget_tables import INTERVALS_DAYS, MONTH_DAYS, SHARES
from afresh.papers.report import Check, Correction, Section, corrected, row
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


_SITES = 270
_RATIOS = (0.1, 0.3, 0.355, 0.5, 1.0, 10.0, 100.0)
# "Changes every x" read as a half-life of x: the reading under which the printed numbers come out.
_RATES = np.log(2) / INTERVALS_DAYS

_CRAWLS = {
    0.1: Correction("92.5", "does not follow; the classes without the monthly one take 59.6"),
    0.3: Correction("242.8", "cut instead of rounded"),
    10.0: Correction("4712", "not quite at the optimum, where income is flat"),
    100.0: Correction("16018", "not quite at the optimum, where income is flat"),
}
_GAINS = {
    0.1: Correction("23.0", "does not follow, nor from 60 crawls (22.4 %)"),
    0.3: Correction("0.17", "cut instead of rounded"),
    100.0: Correction("31.87", "cut instead of rounded"),
}
_FRESHNESS = Correction(
    "65.4", "0.62 is Cho's figure, for sites whose mean interval, not half-life, is 1, 7, … days"
)
_CRAWL_COST = 0.003 / 100
_HALF = Correction("0.3405", "as B/C: a day is taken for the half-life")
_HALF_TWICE = Correction("0.1718", "as B/C: half a day is taken for the half-life")


def table_4() -> Section:
    sites = _SITES * SHARES
    monthly = _SITES / MONTH_DAYS
    table = refreshes_by_ratio(_RATES, _RATIOS, fixed=monthly, count=sites)
    base = allocate(_RATES, monthly, weights=sites, costs=sites)
    crawls, gains = MONTH_DAYS * table.refreshes, 100 * table.gain
    return Section(
        "Table 4: the best number of crawls of 270 sites a month",
        (
            *row("crawls at B/C = {:g}", _RATIOS, "60 242 270 333 1033 4710 15882", crawls, "", _CRAWLS),
            *row(
                "gain over 270 at B/C = {:g}", _RATIOS, "18.5 0.1 0.0 0.5 6.0 25.8 31.8", gains, "%", _GAINS
            ),
            Check("B/C at which 270 are optimal", "0.355", 1 / base.multiplier),
            Check("freshness that 270 achieve", "6e1", 100 * base.freshness, "%", _FRESHNESS),
        ),
        "The numbers follow if B is per day, a month is 30 days, a site that changes every 1, 7, 30, 120 or "
        "365 days has that half-life, and the gain is 1 − income of 270 / best income. "
        "A dash in the table stands for 0.",
    )


def search_engine() -> Section:
    often = 1 / 75
    daily, twice = (implied_benefit(often, rate, 1.0) for rate in (1.0, 2.0))
    half_life = implied_benefit(often, float(np.log(2)), 1.0)
    half_lives = f"16 000 takes a day for the half-life, which gives {half_life:.0f}"
    return Section(
        "§9: what a page crawled 75 times a day is worth",
        (
            corrected("B/C, changing daily", "16e3", daily, "11350", half_lives),
            Check("benefit per day, changing daily", "0.48", daily * _CRAWL_COST, "$", _HALF),
            Check("benefit per day, changing twice a day", "0.24", twice * _CRAWL_COST, "$", _HALF_TWICE),
        ),
        "One crawl costs 0.003 cents.",
    )
