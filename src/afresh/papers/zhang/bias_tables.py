"""Zhang, Tang, Yang & Li 2007, Tables 1 and 2 and the numbers in the text of §2 and §3."""

from __future__ import annotations

from afresh.papers.check import Check, Correction, row
from afresh.papers.report import Section
from afresh.papers.zhang.log_family_theory import (
    RANGES_OF_SEVEN,
    bias,
    exact_a,
    expectation,
    polls_needed,
    spread,
    suitable_a,
)
from afresh.rates.estimators.log_family import ratio_estimate

_RATIOS = (0.1, 0.5, 1.0, 1.5, 1.8, 2.0)
_TABLE_1 = {
    0.5: "1.0115 1.0067 0.9515 0.8625 0.8041 0.7656",
    0.4: "1.0507 1.0631 1.0212 0.9349 0.8750 0.8347",
}


def section_2() -> Section:
    """The a that takes the bias out at small r."""
    some = ", ".join(f"{exact_a(n):.4f} for n = {n}" for n in (1, 3, 7, 35))
    return Section(
        "§2.2: the a for which r̂ has no bias at small r",
        (Check("a as n grows without bound", "0.5", exact_a(10**9)),),
        f"a(n) = (n − (n−1)e^(1/n))/(e^(1/n) − 1): {some}.",
    )


def table_1() -> Section:
    """E[r̂]/r for three polls."""
    checks = (
        check
        for a, printed in _TABLE_1.items()
        for check in row(f"a = {a:g}, r = {{:g}}", _RATIOS, printed, expectation(_RATIOS, 3, a) / _RATIOS)
    )
    return Section("Table 1: E[r̂]/r for n = 3", tuple(checks))


def polls_for_small_bias() -> Section:
    """§3: how many polls keep the bias below 5 %."""
    too_few = Correction("5", f"with 3 polls r̂ is {100 * bias(0.44, 3, 0.4):.1f} % too high at r = 0.44")
    enough = Correction("6", "six polls already keep it below 5 %")
    return Section(
        "§3: polls that keep the bias below 5 % with a = 0.4",
        (
            Check("r up to 1", "3", polls_needed(0, 1), "polls", too_few),
            Check("r from 1 to 2", "7", polls_needed(1, 2), "polls", enough),
            Check("r from 2 to 4", "35", polls_needed(2, 4), "polls"),
            Check("r̂ if all of 7 polls find a change", "2.92", ratio_estimate(7, 7, 0.4)),
        ),
    )


def table_2() -> Section:
    """The best a for seven polls: bias and spread at the ends of each range."""
    checks = []
    for low, high, a in RANGES_OF_SEVEN:
        for r in (low, high):
            name = f"a = {a:g}, r = {r:g}"
            checks.append(Check(f"{name}: |bias|", "< 5", 100 * abs(bias(r, 7, a)), "%"))
            checks.append(Check(f"{name}: σ/r", "< 60", 100 * spread(r, 7, a), "%"))
    found = [(low, high, suitable_a(low, high)) for low, high, _ in RANGES_OF_SEVEN]
    kept = "; ".join(f"r {low:g}–{high:g}: a {each.low:.3f}–{each.high:.3f}" for low, high, each in found)
    return Section(
        "Table 2: the best a for n = 7",
        tuple(checks),
        "The paper writes σ²/r for the spread; its bound of 60 % is one on σ/r. Both bounds hold throughout "
        f"a range for {kept}: every printed a lies within.",
    )
