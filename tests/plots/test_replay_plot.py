"""The pictures of a replay: lines, shaded warm-up, names that do not overlap."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.axes import Axes
from tests.slow_cases import with_slow_cases

from afresh.plots.replay_plot import FreshnessByBudget, FreshnessOverTime, replay_figure
from afresh.plots.style import PictureFormat, render

EDGES = np.linspace(1.69e9, 1.78e9, 41)
POLICIES = ("adaptive", "uniform", "oracle", "nutch", "proportional", "lambdacrawl", "stormcrawler")


def course(policy: str, level: float) -> FreshnessOverTime:
    return FreshnessOverTime(policy, EDGES, np.full(40, level), level)


def over(policy: str, *freshness: float) -> FreshnessByBudget:
    some = np.array(freshness)
    return FreshnessByBudget(policy, np.geomspace(1, 100, some.size), some, some - 0.01, some + 0.01)


def labels(axes: Axes) -> dict[str, float]:
    """The names at the right and their heights as shares of the axes."""
    placed = [text for text in axes.texts if text.get_fontweight() == "bold"]
    return {text.get_text(): float(text.xy[1]) for text in placed}  # type: ignore[attr-defined]


def test_one_line_per_policy_named_with_its_mean() -> None:
    (axes,) = replay_figure([course("adaptive", 0.91), course("uniform", 0.8)], EDGES[10]).axes
    assert len(axes.lines) == 2
    assert set(labels(axes)) == {"adaptive  91.0%", "uniform  80.0%"}
    words = [text.get_text() for text in axes.texts]
    assert "warm-up" in words
    assert "mean after the warm-up" in words


def test_the_warm_up_is_shaded_as_long_as_it_lasts() -> None:
    (axes,) = replay_figure([course("adaptive", 0.9)], EDGES[10]).axes
    (shade,) = axes.patches
    box = shade.get_window_extent()
    low, high = (axes.transData.inverted().transform(point)[0] for point in (box.p0, box.p1))
    assert (low, high) == pytest.approx((EDGES[0] / 86400, EDGES[10] / 86400))


def test_without_a_warm_up_nothing_is_shaded() -> None:
    (axes,) = replay_figure([course("adaptive", 0.9)], EDGES[0]).axes
    assert not axes.patches
    assert [text.get_text() for text in axes.texts] == ["adaptive  90.0%", "mean"]


def test_equal_lines_have_names_that_stand_apart_and_inside() -> None:
    (axes,) = replay_figure([course(policy, 0.9) for policy in POLICIES], EDGES[10]).axes
    heights = sorted(labels(axes).values())
    assert all(above - below > 0.05 for below, above in pairwise(heights))
    assert heights[0] >= 0
    assert heights[-1] <= 1


def test_budgets_stand_beside_on_a_logarithmic_axis() -> None:
    lines = [over("adaptive", 0.8, 0.9, 0.95), over("uniform", 0.7, 0.8, 0.9)]
    figure = replay_figure([course("adaptive", 0.9)], EDGES[10], lines, unit="h")
    course_axes, axes = figure.axes
    assert course_axes.get_title(loc="left") == "Freshness over time, at 1 per hour"
    assert axes.get_xlabel() == "budget per hour"
    assert axes.get_xscale() == "log"
    assert axes.get_xticks().tolist() == pytest.approx([1, 10, 100])
    assert set(labels(axes)) == {"adaptive", "uniform"}
    assert axes.get_ylim()[0] < 0.69
    assert axes.get_ylim()[1] > 0.96


@pytest.mark.parametrize("kind", with_slow_cases(["png", "svg"], kept=1))
def test_every_shape_is_drawn(kind: PictureFormat) -> None:
    many = [over(policy, *np.linspace(0.5, 0.9, 12)) for policy in POLICIES]
    assert render(replay_figure([course(policy, 1.0) for policy in POLICIES], EDGES[3], many), kind)
    assert render(replay_figure([], 0.0), kind)
    short = FreshnessOverTime("adaptive", np.array([0.0, 60.0, 120.0]), np.array([0.0, 1.0]), 0.5)
    assert render(replay_figure([short], 60.0, [over("adaptive", 0.5)]), kind)


def test_more_policies_than_colours_are_told_apart_by_dashes() -> None:
    (axes,) = replay_figure([course(policy, 0.9) for policy in POLICIES], EDGES[10]).axes
    looks = {(line.get_color(), str(line.get_linestyle())) for line in axes.lines}
    assert len(looks) == len(POLICIES)
