"""The picture of a demo (``--plot``): freshness over time, and what uniform polling needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from afresh.cli.proving.demo.comparison import DemoResult
from afresh.plots.panels import Panel, Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDE = 110


def demo_figure(days: Sequence[float], lines: Mapping[str, Sequence[float]], found: DemoResult) -> Figure:
    """Return the figure. ``lines`` has by name of the copy its freshness on each of ``days``."""
    from afresh.plots.line_plot import captioned_figure

    x = np.array(days)
    over_time = Panel(
        "Freshness over time",
        "days of the site",
        "freshness by weight",
        tuple(Series(name, x, np.array(values)) for name, values in lines.items()),
    )
    needs = np.array([score.uniform_needs for score in (found.afresh, found.uniform, found.rule)])
    saved = Panel(
        "What uniform polling needs to be as fresh",
        "",
        "times the requests",
        (Series("", np.arange(needs.size, dtype=float), needs, "bars"),),
        x_names=tuple(lines),
    )
    sentence = f"{found.sentence} The second half of the time counts."
    return captioned_figure([over_time, saved], sentence, _WIDE)
