"""Razniewski 2016, §2 to §5 and §7: the income of doctors' addresses, in dollars, with time in years."""

from __future__ import annotations

import numpy as np

from afresh.allocation.allocate import allocate
from afresh.model.decay import Decay, Exponential, Linear
from afresh.money.best_interval import best_interval
from afresh.papers.razniewski.incomes import against_uniform, net_income
from afresh.papers.report import Check, Correction, Section, corrected_check, row_checks
from afresh.rates.log_ratio import ratio_estimate
from afresh.values.arrays import Floats

# §2: the linear rate per year at which an address is wrong after at most 10 (Smith) or 20 (Jones) years
SMITH, JONES = 1 / 10, 1 / 20

AGES = (25, 30, 40, 50)
# Table 1: of 1000 people of each age, those who moved within a year
_MOVED = np.array([367.0, 271.0, 150.0, 93.0])
LINEAR_RATES: Floats = _MOVED / 1000
# The paper uses the rounded rates that it prints.
RATES: Floats = np.array([0.457, 0.316, 0.163, 0.098])
FORTY = 0.163  # the rate of age 40

_INTERVALS = (0.25, 0.5, 1, 2, 5, 10)
_FRESHNESS = {
    25: "94 89 80 66 39 22",
    30: "96 93 86 74 50 30",
    40: "98 96 92 85 68 49",
    50: "99 98 95 91 79 64",
}


def mean_freshness(decay: Decay, interval: float) -> float:
    """Return the mean freshness if refreshes are ``interval`` apart, the mean of the decay (Eq. 3)."""
    return float(decay.integral(interval)) / interval


def two_doctors() -> Section:
    smith, jones = Linear(SMITH), Linear(JONES)
    # Three updates for one person leave the other address wrong for ever, with an average freshness of at
    # most 0.46. So the best plan is 1 + 2 or 2 + 1.
    whole = max(range(1, 3), key=lambda updates: _pair_freshness(updates, 3 - updates))
    plan = allocate([SMITH, JONES], 0.3, decay="linear")
    any_number = Correction(
        "0.757",
        f"0.75 is best in whole numbers; {10 * plan.frequency[0]:.2f} and {10 * plan.frequency[1]:.2f} "
        "updates per ten years do better",
    )
    who = ("Smith", "Jones")
    return Section.of(
        "§2: three updates per ten years for two addresses",
        *row_checks("{} right after 5 years", who, "50 75", _right_after(5.0), "%"),
        *row_checks("{} right after 8 years", who, "20 60", _right_after(8.0), "%"),
        *row_checks("best whole number of updates of {}", who, "2 1", (whole, 3 - whole)),
        Check("Smith right on average, two updates", "0.75", mean_freshness(smith, 5.0)),
        Check("Jones right on average, one update", "0.75", mean_freshness(jones, 10.0)),
        Check("both right on average at best", "0.75", plan.freshness, correction=any_number),
        Check("Smith right on average, one update", "0.5", mean_freshness(smith, 10.0)),
        Check("Jones right on average, two updates", "0.875", mean_freshness(jones, 5.0)),
        Check("both right on average, numbers swapped", "0.6875", _pair_freshness(1, 2)),
        note="Linear decay to 0 within 10 years (Smith) and 20 years (Jones).",
    )


def _right_after(years: float) -> list[float]:
    return [100 * float(Linear(rate).survival(years)) for rate in (SMITH, JONES)]


def _pair_freshness(smith: int, jones: int) -> float:
    """Return the mean freshness of both addresses; ``smith`` and ``jones`` are updates per ten years."""
    return (mean_freshness(Linear(SMITH), 10 / smith) + mean_freshness(Linear(JONES), 10 / jones)) / 2


def two_incomes() -> Section:
    smith, jones = (best_interval(rate, 1.0, 1.0, decay="linear") for rate in (SMITH, JONES))
    three_years = mean_freshness(Linear(SMITH), 10 / 3)
    three, two = (_ten_years(SMITH, updates) for updates in (3, 2))
    once = _ten_years(JONES, 1)
    together, before = 10 * (smith.net_income + jones.net_income), two + once
    rounded = Correction("5.53", "the paper subtracts rounded figures, 7.8 − 2.2")
    cut = Correction("0.842", "1 − 6.32/40 rounds to 0.84")
    above = Correction("3.05", "from 12.4 rounded; 12.37 is 3.05 % above 12")
    return Section.of(
        "§2: the best intervals at a benefit of 1 a year and a cost of 1 an update",
        Check("Smith: interval", "4.5", smith.interval, "years"),
        Check("Smith: updates, and their cost, per ten years", "2.2", 10 / smith.interval),
        Check("Smith: right on average", "0.78", smith.freshness),
        Check("Smith: benefit per ten years", "7.8", 10 * smith.freshness),
        Check("Smith: net income per ten years", "5.6", 10 * smith.net_income, correction=rounded),
        Check("Smith, three updates: right on average", "0.83", three_years),
        Check("Smith, three updates: net income", "5.3", three),
        Check("Smith, two updates: net income", "5.5", two),
        Check("Jones: interval", "6.3", jones.interval, "years"),
        Check("Jones: updates per ten years", "1.6", 10 / jones.interval),
        Check("Jones: right on average", "0.83", jones.freshness, correction=cut),
        Check("Jones: net income per ten years", "6.8", 10 * jones.net_income),
        Check("Jones, one update: net income", "6.5", once),
        Check("both: updates per ten years", "3.8", 10 / smith.interval + 10 / jones.interval),
        Check("both, three updates: net income", "12", before),
        Check("both: net income per ten years", "12.4", together),
        Check("both: gain over three updates", "3.3", 100 * (together / before - 1), "%", above),
    )


def _ten_years(rate: float, updates: int) -> float:
    return 10 * float(net_income(10 / updates, rate, 1.0, 1.0, decay="linear"))


def table_1() -> Section:
    exponential = ratio_estimate(1000, _MOVED, a=0.0)
    half_lives = np.log(2) / exponential
    rounded = "computed from the rounded rate"
    corrections = {40: Correction("4.27", rounded), 50: Correction("7.10", rounded)}
    return Section.of(
        "Table 1: decay rates of addresses",
        *row_checks("linear rate, age {}", AGES, "0.37 0.27 0.15 0.09", LINEAR_RATES, "/year"),
        *row_checks("exponential rate, age {}", AGES, "0.457 0.316 0.163 0.098", exponential, "/year"),
        *row_checks("half-life, age {}", AGES, "1.52 2.19 4.25 7.07", half_lives, "years", corrections),
        note="From the shares that moved within a year: 36.7, 27.1, 15.0 and 9.3 %.",
    )


def table_2() -> Section:
    fresh = {
        age: [100 * mean_freshness(Exponential(rate), u) for u in _INTERVALS]
        for age, rate in zip(AGES, RATES, strict=True)
    }
    tables = (
        check
        for age, printed in _FRESHNESS.items()
        for check in row_checks(f"age {age}, u = {{:g}} years", _INTERVALS, printed, fresh[age], "%")
    )
    _, half, one, _, five, ten = fresh[50]
    cells = Correction("2.3", "the difference of rounded cells, 98 − 95")
    return Section.of(
        "Table 2 and Example 2: average freshness of addresses",
        *tables,
        Check("age 50, gain from every 10 to every 5 years", "15", five - ten, "points"),
        Check("age 50, gain from every 1 to every 0.5 years", "3", half - one, "points", cells),
    )


def example_3() -> Section:
    return Section.of(
        "Example 3: age 40, updated every two years",
        Check("right on average", "0.85", mean_freshness(Exponential(FORTY), 2.0)),
        Check("net income per year", "0.35", float(net_income(2.0, FORTY, 1.0, 1.0))),
    )


def example_4() -> Section:
    best = [best_interval(float(rate), 1.0, 1.0) for rate in RATES]
    intervals = np.array([income.interval for income in best])
    mean = float(np.mean([income.net_income for income in best]))
    uniform = against_uniform(RATES, 1.0, 1.0, interval=4.06)[0] / RATES.size
    harmonic = float(1 / np.mean(1 / intervals))
    incomes = [income.net_income for income in best]
    mean_interval = Correction(
        "4.19", f"{harmonic:.2f} is the interval of the mean frequency (harmonic mean)"
    )
    cut = Correction("0.40266", "cut after four decimals instead of rounded")
    return Section.of(
        "Example 4: optimal intervals",
        *row_checks("interval, age {}", AGES, "3.38 3.61 4.42 5.36", intervals, "years"),
        *row_checks("net income per year, age {}", AGES, "0.21 0.32 0.49 0.59", incomes),
        Check("mean of the four intervals", "4.06", float(intervals.mean()), "years", mean_interval),
        Check("mean income if all are updated every 4.06 years", "0.3973", uniform),
        Check("mean income at the optimal intervals", "0.4026", mean, correction=cut),
        Check("gain of optimal over uniform", "1.3", 100 * (mean / uniform - 1), "%"),
        note="Yearly benefit and cost of an update are 1.",
    )


def example_5() -> Section:
    linear, exponential = best_interval(0.5, 1.0, 1.0, decay="linear"), best_interval(1.0, 1.0, 1.0)
    fresh = [mean_freshness(Linear(1.0), interval) for interval in (1.0, 0.5)]
    income = net_income((1.0, 0.5), 1.0, 1.0, 1.0, decay="linear").tolist()
    return Section.of(
        "Example 5: futile entities at a benefit of 1 a year and a cost of 1",
        Check("benefit that breaks even, linear rate 0.5", "1", linear.break_even),
        Check("benefit that breaks even, exponential rate 1", "1", exponential.break_even),
        Check("half-life at exponential rate 1", "0.69", float(np.log(2)), "years"),
        Check("linear rate 1, every year: right on average", "50", 100 * fresh[0], "%"),
        Check("linear rate 1, every year: net income", "-0.5", income[0]),
        Check("linear rate 1, every half year: right on average", "75", 100 * fresh[1], "%"),
        Check("linear rate 1, every half year: net income", "-1.25", income[1]),
    )


_WRONG_042 = Correction("0.486", "Example 4 has 0.49 for the same address and interval")


def example_8() -> Section:
    every = (4.42, 3.0)
    fresh = [mean_freshness(Exponential(FORTY), u) for u in every]
    plain = net_income(every, FORTY, 1.0, 1.0).tolist()
    stale = net_income(every, FORTY, 1.0, 1.0, stale_cost=1.0).tolist()
    best = best_interval(FORTY, 1.0, 1.0, stale_cost=1.0)
    share = "72 % would follow from a rate of 0.16"
    own, gain = "the paper's own figures give 0.46 − 0.21 = 0.25", 100 * (stale[1] / stale[0] - 1)
    follows = Correction("24.8", "follows from 0.24 for 0.249")
    return Section.of(
        "Example 8: a wrong address costs 1 a year, age 40",
        Check("every 4.42 years, no such cost: net income", "0.42", plain[0], correction=_WRONG_042),
        corrected_check("every 4.42 years: right on average", "72", 100 * fresh[0], "71.3", share, "%"),
        corrected_check("every 4.42 years: cost of wrong", "0.28", 1 - fresh[0], "0.287", share),
        Check("every 4.42 years: net income", "0.20", stale[0]),
        Check("every 3 years, no such cost: net income", "0.46", plain[1]),
        Check("every 3 years: right on average", "79", 100 * fresh[1], "%"),
        Check("every 3 years: cost of wrong", "0.21", 1 - fresh[1]),
        corrected_check("every 3 years: net income", "0.24", stale[1], "0.249", own),
        Check("gain of every 3 over every 4.42 years", "20", gain, "%", follows),
        note=f"The optimum is every {best.interval:.2f} years, with a net income of {best.net_income:.3f}.",
    )


def example_9() -> Section:
    income = net_income((4.42, 1.0), FORTY, 1.0, 0.1, update_cost=1.0).tolist()
    fresh = mean_freshness(Exponential(FORTY), 1.0)
    best = best_interval(FORTY, 1.0, 0.1, update_cost=1.0)
    gain = 100 * (income[1] / income[0] - 1)
    mixed = "the paper takes 1 − F for the chance 1 − z(u) that a check finds a change"
    seldom = Correction("0.574", "does not follow, nor with 1 − F for 1 − z(u), which would give 0.63")
    spent = Correction("0.250", f"{mixed}: 0.92 · 0.10 + 0.08 · 1.10, which is 0.18")
    return Section.of(
        "Example 9: a check costs 0.10, an update 1 more, age 40",
        Check("every 4.42 years: net income", "0.60", income[0], correction=seldom),
        Check("every year: right on average", "92", 100 * fresh, "%"),
        Check("every year: spent", "0.19", fresh - income[1], correction=spent),
        corrected_check("every year: net income", "0.73", income[1], "0.672", mixed),
        corrected_check("gain of every year over every 4.42 years", "22", gain, "17.2", mixed, "%"),
        note=f"The optimum is every {best.interval:.2f} years, with a net income of {best.net_income:.3f}.",
    )
