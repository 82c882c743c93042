"""Razniewski 2016, §6, §8.2 and §8.4: many records refreshed at once. Money in dollars, time in years."""

from __future__ import annotations

from typing import Any

import numpy as np

from afresh.model.decay import Linear
from afresh.money.best_interval import best_interval
from afresh.papers.razniewski.incomes import against_uniform
from afresh.papers.report import Check, Correction, Section, corrected, row
from afresh.rates.log_ratio import ratio_estimate

# Example 7: doctors on one page, at the linear rate of age 40
_PAGES = (200, 50, 5, 1)
_FORTY_LINEAR = 0.15

# Table 3: people of 2010 whose affiliation differed in 2015
GROUPS = ("students", "academic researchers", "industrial researchers", "professors")
PEOPLE = np.array([10.0, 8.0, 13.0, 19.0])
MOVED = np.array([10.0, 5.0, 3.0, 2.0])
YEARS = 5.0

# §8.4: people on a site, and how many such sites there are
_SITES = ("big", "medium", "small")
_SIZES = np.array([1024.0, 61.0, 22.0])
_COUNTS = np.array([1.0, 10.0, 20.0])
_SITE_RATE = 0.24

_LAST_DIGIT = {1: Correction("3.651", "√(2/0.15) = 3.651 rounds to 3.65")}


def example_7() -> Section:
    best = [best_interval(_FORTY_LINEAR, n, 1.0, decay="linear").interval for n in _PAGES]
    wrong = 1 - float(Linear(_FORTY_LINEAR).survival(0.25))
    life = "from a longest life of 7 years; a rate of 0.15 is 6.67 years"
    return Section(
        "Example 7: pages that hold many doctors",
        (
            *row("interval, {} on the page", _PAGES, "0.26 0.52 1.63 3.66", best, "years", _LAST_DIGIT),
            Check("longest life at rate 0.15", "7", 1 / _FORTY_LINEAR, "years"),
            corrected("wrong after a quarter year", "0.0357", wrong, "0.0375", life),
            Check("wrong of 200 after a quarter year", "7", 200 * wrong),
        ),
        "Linear decay at the rate 0.15 of age 40; one page costs 1, one right record earns 1 a year.",
    )


def table_3() -> Section:
    some, rates = MOVED < PEOPLE, np.full(MOVED.shape, np.inf)  # infinite where all moved
    rates[some] = ratio_estimate(PEOPLE[some], MOVED[some], a=0.0) / YEARS
    mean = float((rates[3] + 2 * rates[1] + 5 * rates[0]) / 8)
    endless = Correction(
        "inf", "all 10 students moved, so their rate has no finite estimate; below, 0.24 is taken as given"
    )
    total = Correction("50", "the four groups of the table add up to 50")
    named = ", ".join(f"{group} {rate:.4f}" for group, rate in zip(GROUPS[1:], rates[1:], strict=True))
    return Section(
        "Table 3: relocation of academic personnel, 2010 to 2015",
        (
            *row("moved, {}", GROUPS, "100 63 23 11", 100 * MOVED / PEOPLE, "%"),
            Check("people in all", "51", float(PEOPLE.sum()), correction=total),
            Check("mean rate, professors : researchers : students 1 : 2 : 5", "0.24", mean, "/year", endless),
        ),
        f"Rates −ln(1 − k/n)/5 per year follow only where some stayed: {named}.",
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
    return Section(
        "§8.4: bulk updates of department pages",
        (
            *row("cost of one update, {}", _SITES, "32 7.8 4.7", costs, "$"),
            *row("interval, {}", _SITES, "0.53 1.13 1.50", intervals, "years"),
            Check("net income per year of 1 big, 10 medium, 20 small", "1672", total, "$", rounded),
            *row("net income per year, all at u = {:g}", plans, "1606 1563 1640", incomes, "$"),
            *row("loss, all at u = {:g}", plans, "3.96 6.53 1.92", lost, "%", losses),
        ),
        "Exponential decay at 0.24 a year; updating n records costs √n.",
    )
