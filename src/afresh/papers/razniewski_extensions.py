"""Razniewski 2016, §7: wrong records cost money, checks cost less than updates. Dollars and years."""

from __future__ import annotations

from afresh.model.decay import Exponential
from afresh.money.best_interval import best_interval
from afresh.papers.check import Check, Correction
from afresh.papers.razniewski_addresses import FORTY, mean_freshness
from afresh.papers.razniewski_net_income import net_income
from afresh.papers.report import Section

_WRONG_042 = Correction("0.486", "Example 4 has 0.49 for the same address and interval")


def example_8() -> Section:
    """A wrong record costs money too."""
    every = (4.42, 3.0)
    fresh = [mean_freshness(Exponential(FORTY), u) for u in every]
    plain = net_income(every, FORTY, 1.0, 1.0).tolist()
    stale = net_income(every, FORTY, 1.0, 1.0, stale_cost=1.0).tolist()
    best = best_interval(FORTY, 1.0, 1.0, stale_cost=1.0)
    share = "72 % would follow from a rate of 0.16"
    return Section(
        "Example 8: a wrong address costs 1 a year, age 40",
        (
            Check("every 4.42 years, no such cost: net income", "0.42", plain[0], correction=_WRONG_042),
            Check("every 4.42 years: right on average", "72", 100 * fresh[0], "%", Correction("71.3", share)),
            Check(
                "every 4.42 years: cost of wrong", "0.28", 1 - fresh[0], correction=Correction("0.287", share)
            ),
            Check("every 4.42 years: net income", "0.20", stale[0]),
            Check("every 3 years, no such cost: net income", "0.46", plain[1]),
            Check("every 3 years: right on average", "79", 100 * fresh[1], "%"),
            Check("every 3 years: cost of wrong", "0.21", 1 - fresh[1]),
            Check(
                "every 3 years: net income",
                "0.24",
                stale[1],
                correction=Correction("0.249", "the paper's own figures give 0.46 − 0.21 = 0.25"),
            ),
            Check(
                "gain of every 3 over every 4.42 years",
                "20",
                100 * (stale[1] / stale[0] - 1),
                "%",
                Correction("24.8", "follows from 0.24 for 0.249"),
            ),
        ),
        f"The optimum is every {best.interval:.2f} years, with a net income of {best.net_income:.3f}.",
    )


def example_9() -> Section:
    """A check is cheaper than an update."""
    income = net_income((4.42, 1.0), FORTY, 1.0, 0.1, update_cost=1.0).tolist()
    fresh = mean_freshness(Exponential(FORTY), 1.0)
    best = best_interval(FORTY, 1.0, 0.1, update_cost=1.0)
    mixed = "the paper takes 1 − F for the chance 1 − z(u) that a check finds a change"
    seldom = Correction("0.574", "does not follow, nor with 1 − F for 1 − z(u), which would give 0.63")
    spent = Correction("0.250", f"{mixed}: 0.92 · 0.10 + 0.08 · 1.10, which is 0.18")
    return Section(
        "Example 9: a check costs 0.10, an update 1 more, age 40",
        (
            Check("every 4.42 years: net income", "0.60", income[0], correction=seldom),
            Check("every year: right on average", "92", 100 * fresh, "%"),
            Check("every year: spent", "0.19", fresh - income[1], correction=spent),
            Check("every year: net income", "0.73", income[1], correction=Correction("0.672", mixed)),
            Check(
                "gain of every year over every 4.42 years",
                "22",
                100 * (income[1] / income[0] - 1),
                "%",
                Correction("17.2", mixed),
            ),
        ),
        f"The optimum is every {best.interval:.2f} years, with a net income of {best.net_income:.3f}.",
    )
