"""Razniewski 2016, §8.3 and §9: how many crawls pay. Time in days, the cost of one crawl is 1."""

from __future__ import annotations

import numpy as np

from afresh.allocation.allocate import allocate
from afresh.money.best_interval import solve_items
from afresh.money.inverse import implied_benefit
from afresh.money.priced_items import build_items
from afresh.papers.cho.budget_tables import INTERVALS_DAYS, MONTH_DAYS, SHARES
from afresh.papers.report import Check, Correction, Section, corrected, row

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
    ratios = np.array(_RATIOS)
    best = solve_items(build_items(_RATES, ratios[:, None], 1.0))
    base = allocate(_RATES, monthly, weights=sites, costs=sites)
    crawls = MONTH_DAYS * (best.frequency @ sites)
    # What the best number earns more than 270 crawls, all of them made whether they pay or not.
    fixed = ratios * base.freshness * sites.sum() - base.spend
    gains = 100 * (1 - fixed / (best.net_income @ sites))
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
