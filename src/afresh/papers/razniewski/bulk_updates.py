"""Razniewski 2016, §6, §8.2 to §8.4 and §9: records that are refreshed together, and how many crawls pay.

Money is in dollars and time in years. For crawls (§8.3 and §9) time is in days, and one crawl costs 1. B is
the benefit of a right record per unit of time, and C the cost of a refresh.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from afresh.allocation.allocate import allocate
from afresh.model.decay import Linear
from afresh.money.best_interval import best_interval, solve_items
from afresh.money.inverse import implied_benefit
from afresh.money.priced_items import build_items
from afresh.papers.cho.budget_tables import INTERVALS_DAYS, MONTH_DAYS, SHARES
from afresh.papers.razniewski.incomes import against_uniform
from afresh.papers.report import Check, Correction, Section, corrected_check, row_checks
from afresh.rates.log_ratio import ratio_estimate

# Example 7: the number of doctors on one page, and the linear rate of age 40
_PAGES = (200, 50, 5, 1)
_FORTY_LINEAR = 0.15

# Table 3: people in 2010, and those of them whose affiliation was another one in 2015
GROUPS = ("students", "academic researchers", "industrial researchers", "professors")
PEOPLE = np.array([10.0, 8.0, 13.0, 19.0])
MOVED = np.array([10.0, 5.0, 3.0, 2.0])
YEARS = 5.0

# §8.4: the number of people on a site, and the number of such sites
_SITES = ("big", "medium", "small")
_SIZES = np.array([1024.0, 61.0, 22.0])
_COUNTS = np.array([1.0, 10.0, 20.0])
_SITE_RATE = 0.24

_LAST_DIGIT = {1: Correction("3.651", "√(2/0.15) = 3.651 rounds to 3.65")}


def example_7() -> Section:
    best = [best_interval(_FORTY_LINEAR, n, 1.0, decay="linear").interval for n in _PAGES]
    wrong = 1 - float(Linear(_FORTY_LINEAR).survival(0.25))
    life = "from a longest life of 7 years; a rate of 0.15 is 6.67 years"
    return Section.of(
        "Example 7: pages that hold many doctors",
        *row_checks("interval, {} on the page", _PAGES, "0.26 0.52 1.63 3.66", best, "years", _LAST_DIGIT),
        Check("longest life at rate 0.15", "7", 1 / _FORTY_LINEAR, "years"),
        corrected_check("wrong after a quarter year", "0.0357", wrong, "0.0375", life),
        Check("wrong of 200 after a quarter year", "7", 200 * wrong),
        note="Linear decay at the rate 0.15 of age 40. A page costs 1; a right record earns 1 a year.",
    )


def table_3() -> Section:
    some, rates = MOVED < PEOPLE, np.full(MOVED.shape, np.inf)  # the rate is infinite where all moved
    rates[some] = ratio_estimate(PEOPLE[some], MOVED[some], a=0.0) / YEARS
    mean = float((rates[3] + 2 * rates[1] + 5 * rates[0]) / 8)
    endless = Correction(
        "inf", "all 10 students moved, so their rate has no finite estimate; §8.4 uses 0.24 as printed"
    )
    total = Correction("50", "the four groups of the table add up to 50")
    named = ", ".join(f"{group} {rate:.4f}" for group, rate in zip(GROUPS[1:], rates[1:], strict=True))
    return Section.of(
        "Table 3: relocation of academic personnel, 2010 to 2015",
        *row_checks("moved, {}", GROUPS, "100 63 23 11", 100 * MOVED / PEOPLE, "%"),
        Check("people in all", "51", float(PEOPLE.sum()), correction=total),
        Check("mean rate, professors : researchers : students 1 : 2 : 5", "0.24", mean, "/year", endless),
        note=f"The rate −ln(1 − k/n)/5 per year, if k of n moved, exists only if some stayed: {named}.",
    )


def section_8_4() -> Section:
    costs = np.sqrt(_SIZES)
    best = [best_interval(_SITE_RATE, n, c) for n, c in zip(_SIZES, costs, strict=True)]
    intervals = [income.interval for income in best]
    sites: dict[str, Any] = {"size": _SIZES, "cost_of_size": "sqrt", "count": _COUNTS}
    plans = {u: against_uniform(_SITE_RATE, 1.0, 1.0, interval=u, **sites) for u in (1.5, 0.53, 1.0)}
    incomes, total = [alike for alike, _ in plans.values()], plans[1.0][1]
    lost = [100 * (1 - alike / total) for alike in incomes]
    rounded = Correction("1673.3", "the paper adds rounded incomes: 901 + 10 · 46.5 + 20 · 15.3")
    follows = "follows from 1672 for 1673.3"
    losses = {
        1.5: Correction("4.04", follows),
        0.53: Correction("6.61", follows),
        1.0: Correction("1.99", follows),
    }
    return Section.of(
        "§8.4: bulk updates of department pages",
        *row_checks("cost of one update, {}", _SITES, "32 7.8 4.7", costs, "$"),
        *row_checks("interval, {}", _SITES, "0.53 1.13 1.50", intervals, "years"),
        Check("net income per year of 1 big, 10 medium, 20 small", "1672", total, "$", rounded),
        *row_checks("net income per year, all at u = {:g}", plans, "1606 1563 1640", incomes, "$"),
        *row_checks("loss, all at u = {:g}", plans, "3.96 6.53 1.92", lost, "%", losses),
        note="Exponential decay at the rate 0.24 per year; an update of n records costs √n.",
    )


_CRAWLED = 270
_RATIOS = (0.1, 0.3, 0.355, 0.5, 1.0, 10.0, 100.0)
# The printed numbers follow only if a site that "changes every x" has a half-life of x.
_CRAWL_RATES = np.log(2) / INTERVALS_DAYS

_CRAWLS = {
    0.1: Correction("92.5", "does not follow; without the monthly class it would be 59.6"),
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
    sites = _CRAWLED * SHARES
    monthly = _CRAWLED / MONTH_DAYS
    ratios = np.array(_RATIOS)
    best = solve_items(build_items(_CRAWL_RATES, ratios[:, None], 1.0))
    base = allocate(_CRAWL_RATES, monthly, weights=sites, costs=sites)
    crawls = MONTH_DAYS * (best.frequency @ sites)
    # The gain of the best number of crawls over exactly 270, which include crawls that do not pay.
    fixed = ratios * base.freshness * sites.sum() - base.spend
    gains = 100 * (1 - fixed / (best.net_income @ sites))
    return Section.of(
        "Table 4: the best number of crawls of 270 sites a month",
        *row_checks("crawls at B/C = {:g}", _RATIOS, "60 242 270 333 1033 4710 15882", crawls, "", _CRAWLS),
        *row_checks(
            "gain over 270 at B/C = {:g}", _RATIOS, "18.5 0.1 0.0 0.5 6.0 25.8 31.8", gains, "%", _GAINS
        ),
        Check("B/C at which 270 are optimal", "0.355", 1 / base.multiplier),
        Check("freshness that 270 achieve", "6e1", 100 * base.freshness, "%", _FRESHNESS),
        note="The numbers follow if B is per day, a month is 30 days, a site that changes every 1, 7, 30, "
        "120 or 365 days has that half-life, and the gain is 1 − income of 270 / best income. "
        "A dash in the table stands for 0.",
    )


def search_engine() -> Section:
    often = 1 / 75
    daily, twice = (implied_benefit(often, rate, 1.0) for rate in (1.0, 2.0))
    half_life = implied_benefit(often, float(np.log(2)), 1.0)
    half_lives = f"16 000 takes a day for the half-life, which gives {half_life:.0f}"
    return Section.of(
        "§9: what a page crawled 75 times a day is worth",
        corrected_check("B/C, changing daily", "16e3", daily, "11350", half_lives),
        Check("benefit per day, changing daily", "0.48", daily * _CRAWL_COST, "$", _HALF),
        Check("benefit per day, changing twice a day", "0.24", twice * _CRAWL_COST, "$", _HALF_TWICE),
        note="One crawl costs 0.003 cents.",
    )
