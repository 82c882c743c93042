"""The plot of the Poisson check: gaps between changes on a logarithmic axis, beside the exponential line.

Cho & Garcia-Molina 2000, Figure 11: a Poisson process makes the shares of longer and longer gaps fall on a
straight line.
"""

from __future__ import annotations

from matplotlib.figure import Figure

from afresh.plots.line_plot import captioned_figure
from afresh.plots.panels import Panel, Series
from afresh.rates.poisson_check import GapHistogram
from afresh.values.units import UNIT_NAMES


def poisson_panel(gaps: GapHistogram, unit: str = "d", title: str = "Gaps between changes") -> Panel:
    """Observed shares as dots and the model's line; empty bins have no place on a logarithmic axis."""
    middle = (gaps.edges[1:] + gaps.edges[:-1]) / 2
    seen = gaps.share > 0
    return Panel(
        title,
        f"gap between changes, {UNIT_NAMES[unit]}s",
        "share of gaps",
        (
            Series("Poisson model", middle, gaps.expected),
            Series("observed", middle[seen], gaps.share[seen], "dots"),
        ),
        log_y=True,
    )


def poisson_figure(gaps: GapHistogram, sentence: str, unit: str = "d") -> Figure:
    """The panel with the finding as a sentence below it.

    >>> from afresh.rates.poisson_check import gap_histogram
    >>> figure = poisson_figure(gap_histogram(range(1, 50)), "Changes come regularly.")
    >>> figure.axes[0].get_yscale()
    'log'
    """
    return captioned_figure([poisson_panel(gaps, unit)], sentence, 62)
