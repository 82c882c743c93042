"""Line plots: every mark on every scale, bars, legends."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.plots.pictures import texts
from tests.slow_cases import with_slow_cases

from afresh.plots.line_plot import line_figure
from afresh.plots.panels import Mark, Panel, Series
from afresh.plots.style import render


@pytest.mark.parametrize("mark", ["line", "dashed", "dots", "bars", "area", "rules"])
@pytest.mark.parametrize("log", with_slow_cases([True, False], kept=1))
def test_every_mark_is_drawn_on_every_scale(mark: Mark, log: bool) -> None:
    x = np.array([1.0, 10.0, 1000.0])
    some = Series("some", x, x**2, mark)
    other = Series("other", x, np.array([1.0, np.nan, 3.0]), mark)
    figure = line_figure([Panel("title", "x, days", "y", (some, other), log_x=log, log_y=log)])
    axes = figure.axes[0]
    assert texts(axes) == ["some", "other"]
    assert (axes.get_xscale() == "log") is log
    assert len(axes.lines) + len(axes.patches) + len(axes.collections) > 0
    assert render(figure, "svg")


def test_bars_stand_beside_each_other_over_their_names() -> None:
    places = np.arange(2.0)
    series = tuple(Series(name, places, places + 1, "bars") for name in ("a", "b"))
    axes = line_figure([Panel("", "", "", series, x_names=("first", "second"))]).axes[0]
    edges = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches)  # type: ignore[attr-defined]
    assert all(left[1] <= right[0] for left, right in pairwise(edges))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["first", "second"]


def test_a_series_without_a_name_stays_out_of_the_legend() -> None:
    x = np.array([1.0, 2.0])
    series = (Series("a", x, x), Series("b", x, x), Series("", x, x))
    assert texts(line_figure([Panel("", "", "", series)]).axes[0]) == ["a", "b"]
