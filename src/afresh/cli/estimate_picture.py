"""Pictures of ``estimate``: the rates with their intervals, and gaps against the Poisson line."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from afresh.plots.estimate_plots import poisson_figure
from afresh.plots.line_plot import line_figure
from afresh.plots.panels import Panel, Series
from afresh.rates.poisson_check import check_items, gap_histogram, gaps_near
from afresh.values.arrays import Float64s, Ints
from afresh.values.errors import InputError
from afresh.values.results import RateEstimates
from afresh.values.units import UNIT_NAMES

_MOST = 2000  # items shown: more would be one line anyhow
_NEAR = 0.3  # items whose mean gap is within this share of the typical one are drawn together


def rates_picture(found: RateEstimates, unit: str) -> Figure:
    """All rates from the slowest to the fastest item, with the ends of their intervals."""
    if not found.rate.size:
        raise InputError("no items, no picture")
    order = np.argsort(found.rate, kind="stable")[:: max(1, found.rate.size // _MOST)]
    share = np.arange(order.size) / max(1, order.size - 1)
    ends = [Series(name, share, getattr(found, name)[order], "dots") for name in ("low", "high")]
    series = (Series("estimated rate", share, found.rate[order]), *ends)
    label = f"changes per {UNIT_NAMES[unit]}"
    return line_figure([Panel("How often items change", "share of items", label, series, log_y=True)])


def gaps_picture(item: Ints, times: Float64s, unit: str) -> Figure:
    """Gaps of the items of typical pace against the exponential line (Cho & Garcia-Molina 2000, Fig. 11)."""
    checks = check_items(item, times)
    if not checks.item.size:
        raise InputError(checks.sentence)
    gaps = gaps_near(item, times, float(np.median(checks.mean_gap)), tolerance=_NEAR)
    return poisson_figure(gap_histogram(gaps), checks.sentence, unit)
