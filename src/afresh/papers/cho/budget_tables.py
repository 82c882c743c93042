"""Cho & Garcia-Molina 2000, §5.2, §5.3, §6.3 and §8: the best allocation of a budget.

Table 4 shows, with two elements (items), why it is best not to refresh an element that changes too often. An
element that changes λ times a day changes exactly once in each of λ equal parts of the day, at an unknown
time. Refreshes are distributed evenly over the parts, and evenly in each part. m refreshes divide a part into
m+1 gaps, and the change falls into each gap with probability 1/(m+1). After a change in one of the first m
gaps, the next refresh makes the copy right for the rest of the part. The expected gain is m/(2(m+1)·λ) days
of freshness per part.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from afresh.allocation.allocate import allocate
from afresh.allocation.objectives import objective_for
from afresh.papers.report import Check, Correction, Section, corrected_check, row_checks
from afresh.values.arrays import Floats
from afresh.values.results import Allocation


def expected_benefit(rates: Sequence[int], frequencies: Sequence[int]) -> Fraction:
    """Return the days of freshness gained per day by the refreshes of Table 4.
    Element i changes ``rates[i]`` times and is refreshed ``frequencies[i]`` times a day.

    >>> expected_benefit([9, 1], [7, 3]) == Fraction(41, 72)  # row (i), the best of ten refreshes
    True
    """
    return sum((_element_gain(rate, f) for rate, f in zip(rates, frequencies, strict=True)), Fraction(0))


def best_split(rates: Sequence[int], total: int) -> tuple[int, ...]:
    """Return the refreshes per day of each element with the highest benefit, if they add up to ``total``.
    The benefit of an element is concave in its refreshes. So it is optimal to give one refresh after the
    other to the element that gains most from it. Of two equal gains the earlier element is chosen.

    >>> best_split([9, 1], 2), best_split([9, 1], 5), best_split([9, 1], 10)
    ((0, 2), (2, 3), (7, 3))
    """
    split = [0] * len(rates)
    gains = [_element_gain(rate, 1) for rate in rates]
    for _ in range(total):
        best = max(range(len(rates)), key=gains.__getitem__)
        split[best] += 1
        gains[best] = _element_gain(rates[best], split[best] + 1) - _element_gain(rates[best], split[best])
    return tuple(split)


def _element_gain(rate: int, frequency: int) -> Fraction:
    few, parts_with_one_more = divmod(frequency, rate)
    days = parts_with_one_more * _part_gain(few + 1) + (rate - parts_with_one_more) * _part_gain(few)
    return days / rate


def _part_gain(refreshes: int) -> Fraction:
    """Return the fresh time that ``refreshes`` in one part of the day gain, as a share of this part."""
    return Fraction(refreshes, 2 * (refreshes + 1))


# §6.1, Fig. 12: 720 000 pages of 270 sites were crawled daily for four months. Table 6 assumes that the pages
# of the figure's five classes change every day, week, month, four months and year. Razniewski 2016, Table 4,
# uses the same classes.
CLASSES = ("up to 1 day", "to 1 week", "to 1 month", "to 4 months", "longer")
SHARES: Floats = np.array([0.23, 0.15, 0.16, 0.16, 0.30])
INTERVALS_DAYS: Floats = np.array([1.0, 7.0, 30.0, 120.0, 365.0])
MONTH_DAYS = 30.0


# §5.2: two elements that change 9 times a day and once a day
PAIR_RATES = (9, 1)
PAIR_TOTALS = (1.0, 5.0, 10.0)
# Table 4: (f₁, f₂) and the benefit printed
_BENEFITS = (
    ("a", (1, 0), "1/36"),
    ("b", (0, 1), "9/36"),
    ("c", (2, 0), "2/36"),
    ("d", (1, 1), "10/36"),
    ("e", (0, 2), "12/36"),
    ("f", (3, 2), "30/72"),
    ("g", (2, 3), "31/72"),
    ("h", (9, 1), "36/72"),
    ("i", (7, 3), "41/72"),
    ("j", (5, 5), "40/72"),
)
_BEST_SPLITS = ((1, "0 1"), (2, "0 2"), (5, "2 3"), (10, "7 3"))

# Example 4: five elements, five refreshes a day
FIVE_RATES = np.arange(1.0, 6.0)
FIVE_BUDGET = 5.0


def web_plan(policy: str, objective: str) -> Allocation:
    """Return the plan of Table 6 for the pages of Fig. 12, with a budget of one refresh per page and month.
    Rates and frequencies are per day. The plan has one item for each class of pages. The weight and the cost
    of this item are the share of all pages that are in the class."""
    rates, budget = 1 / INTERVALS_DAYS, 1 / MONTH_DAYS
    return allocate(rates, budget, weights=SHARES, costs=SHARES, policy=policy, objective=objective)


def frequencies_at(rates: Floats, multiplier: float, objective: str) -> Floats:
    """Return the best frequency for each rate in a plan with this multiplier: the curve of Fig. 10."""
    curve = objective_for(objective, "fixed")
    return np.asarray(rates / curve.inverse(multiplier * rates**curve.power))


def example_1() -> Section:
    rates = (4.0, 3.0, 2.0)
    uniform = allocate(rates, 9.0, policy="uniform").frequency
    proportional = allocate(rates, 9.0, policy="proportional").frequency
    return Section.of(
        "Example 1: three elements, nine refreshes a day",
        *row_checks("uniform, e{}", (1, 2, 3), "3 3 3", uniform, "/day"),
        *row_checks("proportional, e{}", (1, 2, 3), "4 3 2", proportional, "/day"),
    )


def table_4() -> Section:
    checks = []
    for letter, (fast, slow), printed in _BENEFITS:
        benefit = float(expected_benefit(PAIR_RATES, (fast, slow)))
        checks.append(Check(f"({letter}) f₁ = {fast}, f₂ = {slow}", printed, benefit))
    for total, printed in _BEST_SPLITS:
        best = best_split(PAIR_RATES, total)
        checks += row_checks(f"best f{{}} for f₁ + f₂ = {total}", ("₁", "₂"), printed, best)
    return Section.of("Table 4: benefit of refreshing two elements", *checks)


def figure_9() -> Section:
    shares, ratios = {}, []
    for total in PAIR_TOTALS:
        optimal, uniform, proportional = (
            allocate(PAIR_RATES, total, policy=policy) for policy in ("optimal", "uniform", "proportional")
        )
        shares[total] = float(optimal.frequency[1]) / total
        ratios.append(proportional.freshness / uniform.freshness)
    return Section.of(
        "Figure 9: two elements under a Poisson process",
        Check("(a) best share of e₂, few refreshes", "1", shares[1.0]),
        Check("(c) best share of e₂, many refreshes", "0.3", shares[10.0]),
        Check("proportional / uniform freshness, largest", "< 1", max(ratios)),
        note="The text does not state f₁ + f₂; the values 1, 5 and 10 are in Table 4 and fit the text.",
    )


def table_5() -> Section:
    first = {1: Correction("0.8349", "rounds to 0.83; printed as 0.84, the row adds up to 5")}
    fresh = allocate(FIVE_RATES, FIVE_BUDGET)
    old = allocate(FIVE_RATES, FIVE_BUDGET, objective="age")
    # Fig. 10(a) has the same shape for every database; its peak is found on a fine grid at this multiplier.
    grid = np.linspace(0.01, 5, 4991)
    peak = float(grid[np.argmax(frequencies_at(grid, fresh.multiplier, "freshness"))])
    elements = (1, 2, 3, 4, 5)
    return Section.of(
        "Table 5: optimal frequencies of Example 4",
        *row_checks("(b) for freshness, e{}", elements, "1.15 1.36 1.35 1.14 0.00", fresh.frequency, "/day"),
        *row_checks("(c) for age, e{}", elements, "0.84 0.97 1.03 1.07 1.09", old.frequency, "/day", first),
        Check("rate beyond which the frequency falls", "2.5", peak, "/day"),
    )


def table_6() -> Section:
    policies = ("proportional", "uniform", "optimal")
    fresh = [web_plan(policy, "freshness").freshness for policy in policies]
    old = [web_plan(policy, "age").age for policy in policies]
    cut = Correction("0.1287", "cut after two decimals instead of rounded")
    five = "0.62 is five times 0.12 (and 4.8 times 0.129), which is an increase by about 400 %"
    above = 100 * (fresh[2] / fresh[0] - 1)
    return Section.of(
        "Table 6: the web, one refresh per page and month",
        *row_checks("freshness, {}", policies, "0.12 0.57 0.62", fresh, corrections={"proportional": cut}),
        *row_checks("age, {}", policies, "4e2 5.6 4.3", old, "days"),
        corrected_check("freshness, optimal above proportional", "5e2", above, "379", five, "%"),
        Check("age, optimal below uniform", "23", 100 * (1 - old[2] / old[1]), "%"),
        Check("age, proportional / optimal", "1e2", old[0] / old[2]),
        note="23, 15, 16, 16 and 30 % of pages change every 1, 7, 30, 120 and 365 days; a month is 30 days. "
        "The optimal age is that of the plan made for age: the plan made for freshness drops pages, "
        "whose age is infinite.",
    )


def weights() -> Section:
    plans = {
        rate: allocate([rate, rate], 2.0, weights=[2.0, 1.0]).frequency for rate in (0.01, 1.0, 2.0, 4.0)
    }
    ratios = {rate: float(np.divide(*plan)) if plan[1] > 0 else np.inf for rate, plan in plans.items()}
    name = "its refreshes per refresh of the other, {:g} changes a day"
    faster = "not necessarily twice: the faster both change, the larger the ratio, here more than twice"
    dropped = "the less important one is dropped, since both change too fast for the budget"
    return Section.of(
        "§8: an element twice as important",
        Check("its refreshes per refresh of the other, smallest", "> 1", min(ratios.values())),
        Check(name.format(0.01), "< 2", ratios[0.01]),
        Check(name.format(1), "< 2", ratios[1.0]),
        corrected_check(name.format(2), "< 2", ratios[2.0], "2.30", faster),
        corrected_check(name.format(4), "< 2", ratios[4.0], "inf", dropped),
        note="The paper gives no rates; here both change equally often, at two refreshes a day. If both "
        "change rarely, the ratio is √2.",
    )
