"""Plots of net income: by the refresh interval (Razniewski 2016, Figure 5), and by the benefit (Figure 6)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from afresh.money.compared_incomes import BEST, BenefitSweep, ComparedItems, compare_ways
from afresh.money.excess_income import income_at
from afresh.plots.panels import Panel, Series

_POINTS = 200


def income_panels(
    compared: ComparedItems, sweep: BenefitSweep, names: Mapping[str, str], unit: str = "day"
) -> tuple[Panel, Panel]:
    """Return a tuple of two panels. The first has the net income of all items if they are refreshed at one
    interval, by that interval, beside that of the best intervals. The second has the share of the best income
    that each way of ``names`` reaches, by the factor of the benefit; ways that lose money are cut off."""
    ways = compare_ways(compared)
    middle = ways["uniform"].interval[0]
    if not np.isfinite(middle) or middle <= 0:
        kept = ways[BEST].interval[np.isfinite(ways[BEST].interval) & (ways[BEST].interval > 0)]
        middle = float(np.median(kept)) if kept.size else 1.0
    interval = np.geomspace(middle / 30, middle * 30, _POINTS)
    rows = compared.counts.size
    income = np.array([compared.counts @ income_at(compared.items, np.full(rows, u)) for u in interval])
    shown = np.where(income > -0.5 * abs(ways[BEST].total), income, np.nan)
    best = Series(names[BEST], interval, np.full(interval.size, ways[BEST].total), "dashed")
    one = Panel(
        "Net income of one interval for all",
        f"interval, {unit}s",
        f"net income per {unit}",
        (Series(names["uniform"], interval, shown), best),
        log_x=True,
    )
    top = sweep.totals[BEST]
    share = {
        name: np.where((top > 0) & (values > 0), values / np.where(top > 0, top, 1.0), np.nan)
        for name, values in sweep.totals.items()
    }
    curves = tuple(Series(names[name], sweep.factor, values) for name, values in share.items())
    two = Panel(
        "If the benefit were larger or smaller",
        "factor of the benefit",
        "share of the best net income",
        curves,
        log_x=True,
    )
    return one, two
