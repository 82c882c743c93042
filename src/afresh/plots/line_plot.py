"""Draws panels of named series: lines, dashed lines, dots, bars, areas and vertical rules."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from afresh.plots.panels import Panel, Series
from afresh.plots.style import CYCLE, DASHES, SOFT, new_figure, plot_style, use_log

_FULL_LEGEND = 6  # a legend of more entries has two columns
_BAR_SHARE = 0.8  # the share of the space between two x values that their bars fill


def line_figure(panels: Sequence[Panel]) -> Figure:
    """Return a figure with the panels side by side.

    >>> x = np.linspace(0.01, 5, 50)
    >>> curve = Series("fixed order", x, (1 - np.exp(-x)) / x)
    >>> figure = line_figure([Panel("Freshness", "changes per refresh", "freshness", (curve,))])
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['changes per refresh']
    """
    with plot_style():
        figure, places = new_figure(len(panels))
        for axes, panel in zip(places, panels, strict=True):
            _draw_panel(axes, panel)
    return figure


def captioned_figure(panels: Sequence[Panel], sentence: str, width: int) -> Figure:
    """Return a figure with the panels side by side, and a sentence below them, ``width`` characters wide."""
    figure = line_figure(panels)
    with plot_style():
        figure.supxlabel(textwrap.fill(sentence, width), fontsize=9.5, x=0.02, ha="left")
    return figure


def _draw_panel(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, pad=10)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    # Scales are set first, because margins and rules that are drawn later depend on them.
    if panel.log_x:
        use_log(axes, "x", *_positive_range([series.x for series in panel.series]))
    if panel.log_y:
        use_log(axes, "y", *_positive_range([series.y for series in panel.series if series.mark != "rules"]))
    bars = [series for series in panel.series if series.mark == "bars"]
    for place, series in enumerate(panel.series):
        style: dict[str, Any] = {"color": CYCLE[place % len(CYCLE)], "label": series.label or "_unnamed"}
        if series.mark == "bars":
            _draw_bars(axes, series, bars.index(series), len(bars), style)
        else:
            _draw_series(axes, series, DASHES[place // len(CYCLE) % len(DASHES)], style)
    if panel.x_names:
        axes.set_xticks(range(len(panel.x_names)), panel.x_names)
        axes.grid(visible=False, axis="x")
    named = sum(bool(series.label) for series in panel.series)
    if named > 1:
        axes.legend(ncols=2 if named > _FULL_LEGEND else 1, handlelength=1.8)


def _draw_series(axes: Axes, series: Series, dashes: str, style: dict[str, Any]) -> None:
    x, y = np.asarray(series.x, dtype=float), np.asarray(series.y, dtype=float)
    if series.mark == "dots":
        axes.plot(x, y, "o", markersize=5, markeredgecolor="white", markeredgewidth=0.7, zorder=3, **style)
    elif series.mark == "area":
        axes.fill_between(x, y, alpha=0.3, linewidth=0, **style)
    elif series.mark == "rules":
        for place, at in enumerate(x):
            once = style | {"label": style["label"] if place == 0 else "_again", "color": SOFT}
            axes.axvline(at, linewidth=1, linestyle=(0, (4, 3)), zorder=1, **once)
    else:
        axes.plot(x, y, linestyle="--" if series.mark == "dashed" else dashes, **style)


def _draw_bars(axes: Axes, series: Series, place: int, count: int, style: dict[str, Any]) -> None:
    """Draw the bars of the series at ``place`` of ``count`` series, which are side by side at each x."""
    x, y = np.asarray(series.x, dtype=float), np.asarray(series.y, dtype=float)
    step = float(np.diff(np.unique(x)).min()) if np.unique(x).size > 1 else 1.0
    width = _BAR_SHARE * step / count
    axes.bar(x + (place - (count - 1) / 2) * width, y, width=0.94 * width, **style)


def _positive_range(values: Sequence[Any]) -> tuple[float, float]:
    every = np.concatenate([np.empty(0), *(np.ravel(np.asarray(part, dtype=float)) for part in values)])
    positive = every[(every > 0) & np.isfinite(every)]
    return (float(positive.min()), float(positive.max())) if positive.size else (1.0, 10.0)
