"""Pictures: what they show, for every shape of input, and that their bytes are what they should be."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from afresh.plots.line_plot import line_figure
from afresh.plots.panels import Mark, Panel, Series
from afresh.plots.plan_plot import MOST_DOTS, PlanPicture, plan_figure
from afresh.plots.style import PictureFormat, new_figure, picture_format, plain, render
from afresh.values.errors import UsageError

FORMATS: list[PictureFormat] = ["png", "svg"]


def picture(rate: Any, frequency: Any, **changes: Any) -> PlanPicture:
    """A plan's picture, dropping what is not refreshed."""
    rates, frequencies = np.asarray(rate, dtype=float), np.asarray(frequency, dtype=float)
    budgets = np.geomspace(0.1, 100, 20)
    filled: dict[str, Any] = {
        "rate": rates,
        "frequency": frequencies,
        "dropped": (rates > 0) & (frequencies == 0),
        "law_rate": np.geomspace(0.01, 100, 200),
        "law_frequency": np.geomspace(0.02, 2, 200),
        "cutoff": 4.6,
        "budgets": budgets,
        "freshness": budgets / (1 + budgets),
        "uniform": budgets / (2 + budgets),
        "budget": 5.0,
        "reached": 5 / 6,
    }
    return PlanPicture(**(filled | changes))


def texts(axes: Axes) -> list[str]:
    """The words in a pair of axes, beside its labels."""
    legend = axes.get_legend()
    named = [text.get_text() for text in legend.get_texts()] if legend else []
    return named + [text.get_text() for text in axes.texts]


CHO = picture([1, 2, 3, 4, 5], [1.15, 1.36, 1.35, 1.14, 0])
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


@pytest.mark.parametrize("shape", SHAPES)
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


@pytest.mark.parametrize("kind", FORMATS)
def test_equal_input_gives_equal_bytes_and_leaves_matplotlib_as_it_was(kind: PictureFormat) -> None:
    before = dict(mpl.rcParams)
    assert render(plan_figure(CHO), kind) == render(plan_figure(CHO), kind)
    assert dict(mpl.rcParams) == before


def test_svg_is_xml_that_names_no_date() -> None:
    data = render(plan_figure(CHO), "svg")
    assert ElementTree.fromstring(data).tag == "{http://www.w3.org/2000/svg}svg"
    assert b"dc:date" not in data


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.png.gz"])
def test_other_pictures_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"for a picture: use \.png or \.svg"):
        picture_format(name)


@pytest.mark.parametrize("mark", ["line", "dashed", "dots", "bars", "area", "rules"])
@pytest.mark.parametrize("log", [False, True])
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


@pytest.mark.parametrize(
    ("panels", "inches"), [(1, (5.2, 4)), (3, (15.6, 4)), (4, (10.4, 8)), (7, (15.6, 12))]
)
def test_panels_stand_at_most_three_in_a_row(panels: int, inches: tuple[float, float]) -> None:
    figure, axes = new_figure(panels)
    assert len(axes) == panels
    assert tuple(figure.get_size_inches()) == pytest.approx(inches)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.001, "10⁻³"), (12345.0, "12345"), (2e7, "2·10⁷"), (-0.5, "-0.5")]
)
def test_numbers_read_as_people_write_them(value: float, text: str) -> None:
    assert plain(value) == text
