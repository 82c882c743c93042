"""The plot of a plan: the frequency of each item, and the freshness that each budget buys.

The left panel is like Figure 10 of Cho & Garcia-Molina 2000. The best frequency rises with an item's rate and
then falls to 0: an item that changes too often cannot be kept fresh. The right panel has freshness by budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from afresh.plots import style
from afresh.values.arrays import Bools, Floats
from afresh.values.units import UNIT_NAMES

MOST_DOTS = 5000  # more dots would hide each other; then cells are coloured by their number of items
_MOST_DROPPED = 1500  # marks on the axis; more would look like a solid bar
_CELLS = 64
_CROWD = LinearSegmentedColormap.from_list("crowd", ["#cfe3f1", style.BLUE, "#00304d"])


@dataclass(frozen=True, slots=True)
class PlanPicture:
    """The contents of the picture; rates, frequencies and budgets are per ``unit`` (s, m, h, d, w or y).

    ``rate``, ``frequency``, ``dropped``     one entry per item; dropped items are marked on the rate axis.
    ``law_rate``, ``law_frequency``          the theoretical curve for weight and cost 1; may be empty.
    ``cutoff``                               above this rate an item of weight and cost 1 is dropped.
    ``budgets``, ``freshness``, ``uniform``  freshness at each budget: best plan, uniform plan.
    ``budget``, ``reached``                  the chosen budget and the freshness that it gives.
    """

    rate: Floats
    frequency: Floats
    dropped: Bools
    law_rate: Floats
    law_frequency: Floats
    cutoff: float
    budgets: Floats
    freshness: Floats
    uniform: Floats
    budget: float
    reached: float
    unit: str = "d"


def plan_figure(picture: PlanPicture) -> Figure:
    """Return the figure of a plan; ``style.render`` converts it to bytes.

    >>> some = np.array([0.5, 1.0, 4.0])
    >>> picture = PlanPicture(some, some, some > 3, some, some, 3.0, some, some / 5, some / 6, 1.0, 0.2)
    >>> figure = plan_figure(picture)
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['changes of the item per day', 'budget per day']
    """
    with style.plot_style():
        figure, (left, right) = style.new_figure(2)
        _draw_items(figure, left, picture)
        _draw_budget(right, picture)
    return figure


def _draw_items(figure: Figure, axes: Axes, picture: PlanPicture) -> None:
    per = f"per {UNIT_NAMES[picture.unit]}"
    rate, frequency = np.asarray(picture.rate, dtype=float), np.asarray(picture.frequency, dtype=float)
    kept = (rate > 0) & (frequency > 0) & np.isfinite(frequency)
    dropped = rate[picture.dropped & (rate > 0)]
    seen_rates = np.concatenate([rate[kept], dropped])
    law = _law_between(picture, seen_rates)
    # Only the top of the curve must be visible, because the curve falls to 0 at both ends.
    top = law[1].max(initial=0, keepdims=True)
    seen_frequencies = np.concatenate([frequency[kept], top[top > 0]])
    _set_scales(axes, seen_rates, seen_frequencies)
    if kept.sum() > MOST_DOTS:
        _draw_crowd(figure, axes, rate[kept], frequency[kept])
        _set_scales(axes, seen_rates, seen_frequencies)  # because hexbin resets the limits
    else:
        look: dict[str, Any] = {"color": style.BLUE, "markeredgecolor": "white", "markeredgewidth": 0.5}
        axes.plot(rate[kept], frequency[kept], "o", markersize=5.5, label="items kept", zorder=3, **look)
    if law[0].size:
        axes.plot(*law, color=style.ORANGE, label="best for weight 1, cost 1", zorder=2.5)
    _draw_dropped(axes, dropped)
    one_law = not (rate[kept] > picture.cutoff).any() and not (dropped < picture.cutoff).any()
    _mark_cutoff(axes, picture.cutoff, per if one_law else f"{per} (at weight 1)")
    axes.set(xlabel=f"changes of the item {per}", ylabel=f"refreshes of the item {per}")
    axes.set_title("How often to refresh what", pad=10)
    axes.legend(loc="best", handlelength=1.6)


def _law_between(picture: PlanPicture, rates: Floats) -> tuple[Floats, Floats]:
    """Return the part of the theoretical curve in the range of the items' rates."""
    x, y = np.asarray(picture.law_rate, dtype=float), np.asarray(picture.law_frequency, dtype=float)
    inside = (x > 0) & (y > 0)
    if rates.size and style.spans_decades(rates):
        inside &= (x >= rates.min()) & (x <= rates.max())
    elif rates.size:
        inside &= x <= rates.max()
    return x[inside], y[inside]


def _set_scales(axes: Axes, rates: Floats, frequencies: Floats) -> None:
    """Set the limits of both axes, and make an axis logarithmic if its values span decades."""
    sides: tuple[tuple[style.Side, Floats], ...] = (("x", rates), ("y", frequencies))
    for side, values in sides:
        if style.spans_decades(values):
            low, high = np.log10(values.min()), np.log10(values.max())
            room = 0.05 * (high - low)
            limits = (float(10 ** (low - 1.5 * room)), float(10 ** (high + room)))
            style.use_log(axes, side, *limits)
            axes.set(**{f"{side}lim": limits})
        elif values.size:
            axes.set(**{f"{side}lim": (0, float(values.max()) * 1.08)})


def _draw_crowd(figure: Figure, axes: Axes, rate: Floats, frequency: Floats) -> None:
    scales = axes.get_xscale(), axes.get_yscale()
    limits = np.array(axes.get_xlim()), np.array(axes.get_ylim())
    sides = zip(limits, scales, strict=True)
    extent = [np.log10(limit) if scale == "log" else limit for limit, scale in sides]
    cells = axes.hexbin(
        rate,
        frequency,
        gridsize=(_CELLS, _CELLS * 2 // 3),
        bins="log",
        mincnt=1,
        cmap=_CROWD,
        linewidths=0.2,
        xscale=scales[0],  # type: ignore[arg-type]
        yscale=scales[1],  # type: ignore[arg-type]
        extent=(*extent[0], *extent[1]),
    )
    bar = figure.colorbar(
        cells, ax=axes, shrink=0.55, aspect=18, pad=0.02, format=lambda x, _: style.plain(x)
    )
    bar.set_label("items kept")
    bar.outline.set_visible(False)
    bar.ax.minorticks_off()


def _draw_dropped(axes: Axes, rates: Floats) -> None:
    if not rates.size:
        return
    marks = np.sort(rates)[:: max(1, rates.size // _MOST_DROPPED)]
    look: dict[str, Any] = {"color": style.VERMILION, "markersize": 9, "markeredgewidth": 1, "zorder": 4}
    look |= {"alpha": 1.0 if marks.size < 100 else 0.3, "label": f"{rates.size:,} dropped"}
    on_axis: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "clip_on": False}
    axes.plot(marks, np.full(marks.shape, 0.012), "|", **look, **on_axis)


def _mark_cutoff(axes: Axes, cutoff: float, per: str) -> None:
    low, high = axes.get_xlim()
    if not low < cutoff < high:
        return
    axes.axvline(cutoff, color=style.VERMILION, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    # The text is on the side with more space, low down, where it does not cover the theoretical curve.
    place = axes.transLimits.transform(axes.transScale.transform((cutoff, axes.get_ylim()[1])))[0]
    rightward = place < 0.62
    offset, side = ((6, 0), "left") if rightward else ((-6, 0), "right")
    look: dict[str, Any] = {"va": "bottom", "color": style.VERMILION, "fontsize": 8.5, "zorder": 5}
    text = f"dropped above\n{cutoff:.3g} {per}"
    style.annotate(axes, text, (cutoff, 0.06), offset, xycoords=axes.get_xaxis_transform(), ha=side, **look)


def _draw_budget(axes: Axes, picture: PlanPicture) -> None:
    per = f"per {UNIT_NAMES[picture.unit]}"
    axes.set(xlabel=f"budget {per}", ylabel="freshness of the copies", ylim=(0, 1))
    axes.set_title("What the budget buys", pad=10)
    budgets = np.asarray(picture.budgets, dtype=float)
    shown = np.ones(budgets.shape, dtype=bool)
    if style.spans_decades(budgets):
        shown = budgets > 0
        style.use_log(axes, "x", float(budgets[shown].min()), float(budgets.max()))
    axes.plot(budgets[shown], picture.freshness[shown], color=style.BLUE, label="best plan")
    if picture.uniform.size:
        axes.plot(budgets[shown], picture.uniform[shown], "--", color=style.SOFT, label="all equally often")
    axes.plot([picture.budget], [picture.reached], "o", color=style.INK, markersize=7, zorder=4)
    text = f"{picture.reached:.1%} fresh\nat {style.plain(float(f'{picture.budget:.3g}'))} {per}"
    style.annotate(axes, text, (picture.budget, picture.reached), (9, -9), va="top", fontweight="bold")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.legend(loc="upper left", handlelength=1.8)
