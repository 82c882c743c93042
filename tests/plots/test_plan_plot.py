"""The plot of a plan: every shape is drawn, and it says what is dropped."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from tests.plots.pictures import CHO, picture, texts
from tests.slow_cases import with_slow_cases

from afresh.plots.plan_plot import MOST_DOTS, plan_figure
from afresh.plots.style import render

NONE = np.empty(0)
SHAPES = {
    "five items": CHO,
    "no items": picture(NONE, NONE),
    "nothing kept": picture([1, 2], [0, 0], cutoff=0.5),
    "one item": picture([2], [1]),
    "all equal": picture(np.full(9, 3.0), np.ones(9)),
    "static items": picture([0, 0, 1], [0, 0, 1], cutoff=np.inf),
    "twenty decades": picture(np.geomspace(1e-10, 1e10, 50), np.geomspace(1e-6, 1e3, 50)),
    "no curves": picture(
        [1, 2], [1, 1], law_rate=NONE, law_frequency=NONE, budgets=NONE, freshness=NONE, uniform=NONE
    ),
    "a crowd": picture(np.linspace(1, 4, MOST_DOTS + 1), np.ones(MOST_DOTS + 1)),
    "a wide crowd": picture(np.geomspace(1e-3, 4, MOST_DOTS + 1), np.geomspace(1e-2, 1, MOST_DOTS + 1)),
    "budget 0": picture(
        [1, 2],
        [0, 0],
        budgets=np.linspace(0, 9, 10),
        freshness=np.linspace(0, 0.9, 10),
        uniform=np.linspace(0, 0.8, 10),
        budget=0.0,
        reached=0.0,
    ),
}


@pytest.mark.parametrize("shape", with_slow_cases(list(SHAPES), kept=3))
def test_every_shape_of_plan_is_drawn(shape: str) -> None:
    assert render(plan_figure(SHAPES[shape]), "png").startswith(b"\x89PNG\r\n")


def test_the_plan_says_what_is_dropped_and_what_is_reached() -> None:
    items, budget = plan_figure(CHO).axes
    assert "1 dropped" in texts(items)
    assert "dropped above\n4.6 per day" in texts(items)
    assert texts(budget) == ["best plan", "all equally often", "83.3% fresh\nat 5 per day"]
    assert items.get_ylabel() == "refreshes of the item per day"
    assert budget.get_ylim() == (0, 1)


def test_items_of_other_weights_make_the_cutoff_conditional() -> None:
    items = plan_figure(picture([1, 9], [1, 1])).axes[0]
    assert "dropped above\n4.6 per day (at weight 1)" in texts(items)


def test_axes_turn_logarithmic_where_values_span_decades() -> None:
    narrow = plan_figure(CHO).axes[0]
    wide = plan_figure(picture([0.001, 1, 4], [0.01, 0.5, 0.4])).axes[0]
    assert (narrow.get_xscale(), narrow.get_yscale()) == ("linear", "linear")
    assert (wide.get_xscale(), wide.get_yscale()) == ("log", "log")


def test_a_crowd_is_shown_by_cells_that_hold_every_item() -> None:
    figure = plan_figure(SHAPES["a wide crowd"])
    cells = [part for part in figure.axes[0].collections if isinstance(part, PolyCollection)]
    counts = cells[0].get_array()
    assert counts is not None
    assert float(np.sum(counts)) == MOST_DOTS + 1
