"""Plots of a replay: the freshness of each policy by time and by budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, PercentFormatter

from afresh.plots.style import CYCLE, DASHES, GRID, SOFT, annotate, new_figure, plain, plot_style
from afresh.values.arrays import Floats
from afresh.values.units import UNIT_NAMES

_DAY_S = 86400.0  # times in matplotlib are days since 1970
_LABEL_GAP = 0.052  # the least distance between names at the right end, as a share of the height


@dataclass(frozen=True, slots=True)
class FreshnessOverTime:
    """One policy's freshness over time: ``freshness[j]`` from ``edges[j]`` to ``edges[j+1]`` (Unix seconds).
    ``mean`` is the mean freshness after the warm-up."""

    policy: str
    edges: Floats
    freshness: Floats
    mean: float


@dataclass(frozen=True, slots=True)
class FreshnessByBudget:
    """One policy's freshness after the warm-up at each budget; its 90 % interval is ``low`` to ``high``."""

    policy: str
    budgets: Floats
    freshness: Floats
    low: Floats
    high: Floats


def replay_figure(
    courses: Sequence[FreshnessOverTime],
    warm_up_end: float,
    over_budgets: Sequence[FreshnessByBudget] = (),
    *,
    unit: str = "d",
) -> Figure:
    """Return a figure of freshness by time, with the warm-up shaded, and also by budget if ``over_budgets``
    is given. ``warm_up_end`` is in Unix seconds; ``unit`` is the unit of time of the budgets.

    >>> edges = np.array([0.0, 1e6, 2e6, 3e6])
    >>> lines = [FreshnessOverTime("adaptive", edges, np.array([0.9, 0.95, 0.96]), 0.95)]
    >>> figure = replay_figure(lines, 1e6)
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['copies that are fresh']
    """
    with plot_style():
        panels = 2 if over_budgets else 1
        figure, places = new_figure(panels, width=6.4 if over_budgets else 9.0, height=4.4)
        _draw_courses(places[0], courses, warm_up_end)
        if over_budgets:
            least = plain(float(f"{float(over_budgets[0].budgets[0]):.3g}"))
            places[0].set_title(f"Freshness over time, at {least} per {UNIT_NAMES[unit]}", pad=10)
            _draw_budgets(places[1], over_budgets, unit)
    return figure


def _draw_courses(axes: Axes, courses: Sequence[FreshnessOverTime], warm_up_end: float) -> None:
    axes.set_title("Freshness over time", pad=10)
    axes.set_ylabel("copies that are fresh")
    ends = []
    for place, course in enumerate(courses):
        middle = (course.edges[1:] + course.edges[:-1]) / 2
        colour, dashes = _line_style(place)
        axes.plot(middle / _DAY_S, course.freshness, color=colour, linestyle=dashes, linewidth=1.5)
        ends.append((float(course.freshness[-1]), f"{course.policy}  {course.mean:.1%}", colour))
    if courses:
        start, end = float(courses[0].edges[0]), float(courses[0].edges[-1])
        axes.set_xlim(start / _DAY_S, end / _DAY_S)
        _shade_warm_up(axes, start, warm_up_end)
        locator = AutoDateLocator(minticks=4, maxticks=9)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    _set_percent_axis(axes, [course.freshness for course in courses])
    _label_line_ends(axes, ends)
    mean = "mean after the warm-up" if courses and warm_up_end > courses[0].edges[0] else "mean"
    annotate(axes, mean, (1.0, 1.0), (7, 10), xycoords="axes fraction", color=SOFT)


def _draw_budgets(axes: Axes, over: Sequence[FreshnessByBudget], unit: str) -> None:
    axes.set_title("Freshness over budgets", pad=10)
    axes.set_xlabel(f"budget per {UNIT_NAMES[unit]}")
    axes.set_xscale("log")
    for place, line in enumerate(over):
        colour, dashes = _line_style(place)
        axes.fill_between(line.budgets, line.low, line.high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(
            line.budgets, line.freshness, "o", linestyle=dashes, color=colour, markersize=4.5, linewidth=1.5
        )
    budgets = np.unique(np.concatenate([line.budgets for line in over]))
    if budgets.size <= 8:
        axes.set_xticks(budgets)
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(float(f"{value:.3g}"))))
    _set_percent_axis(axes, [values for line in over for values in (line.low, line.high)])
    ends = [
        (float(line.freshness[-1]), line.policy, _line_style(place)[0]) for place, line in enumerate(over)
    ]
    _label_line_ends(axes, ends)


def _line_style(place: int) -> tuple[str, str]:
    return CYCLE[place % len(CYCLE)], DASHES[place // len(CYCLE) % len(DASHES)]


def _shade_warm_up(axes: Axes, start: float, warm_up_end: float) -> None:
    if warm_up_end <= start:
        return
    axes.axvspan(start / _DAY_S, warm_up_end / _DAY_S, color=GRID, alpha=0.6, linewidth=0, zorder=0)
    top_left, above = (start / _DAY_S, 1.0), axes.get_xaxis_transform()
    annotate(axes, "warm-up", top_left, (5, -5), xycoords=above, va="top", color=SOFT)


def _set_percent_axis(axes: Axes, values: Sequence[Floats]) -> None:
    """Set the y axis to the range of the values, with a margin, as percentages."""
    every = np.concatenate([np.ones(0), *values])
    low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)
    room = max(0.08 * (high - low), 0.002)
    axes.set_ylim(max(0.0, low - room), min(1.0, high + room))
    decimals = 0 if high - low > 0.05 else 1
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=decimals))


def _label_line_ends(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write names of lines at their ends, apart from each other. ``ends`` has tuples (y, name, colour)."""
    low, high = axes.get_ylim()
    height = high - low
    order = sorted(range(len(ends)), key=lambda place: ends[place][0])
    heights = [(ends[place][0] - low) / height for place in order]
    for at in range(1, len(heights)):
        heights[at] = max(heights[at], heights[at - 1] + _LABEL_GAP)
    # Move names above the top back down, and with them the names below.
    for at in reversed(range(len(heights))):
        heights[at] = min(heights[at], 1.0 - _LABEL_GAP * (len(heights) - 1 - at))
    for place, y in zip(order, heights, strict=True):
        _, text, colour = ends[place]
        style: dict[str, Any] = {"va": "center", "color": colour, "fontweight": "bold", "fontsize": 9}
        annotate(axes, text, (1.0, y), (7, 0), xycoords="axes fraction", annotation_clip=False, **style)
