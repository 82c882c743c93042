"""Razniewski 2016 as recomputed: the right values, not the printed ones, wherever the two differ."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from afresh.papers.report import Report

Values = Callable[..., list[float]]


def test_section_2_three_updates(values: Values) -> None:
    shares, updates, freshness = [50, 75, 20, 60], [2, 1], [0.75, 0.75]
    *whole, best, one, two, swapped = values("razniewski", "§2: three")
    assert whole == pytest.approx(shares + updates + freshness, rel=1e-12)
    assert (one, two, swapped) == pytest.approx((0.5, 0.875, 0.6875), rel=1e-12)
    # in closed form, frequencies go with √λ: 1 − (√(1/10) + √(1/20))²/(4·0.3)
    assert best == pytest.approx(1 - (math.sqrt(0.1) + math.sqrt(0.05)) ** 2 / 1.2, rel=1e-9)


def test_section_2_best_intervals(values: Values) -> None:
    smith = values("razniewski", "§2: the best", "Smith: ")
    assert smith == pytest.approx([4.4721, 2.2361, 0.7764, 7.7639, 5.5279], abs=5e-5)
    jones = values("razniewski", "§2: the best", "Jones: ")
    assert jones == pytest.approx([6.3246, 1.5811, 0.8419, 6.8377], abs=5e-5)
    updates, before, together, gain = values("razniewski", "§2: the best", "both")
    assert updates == pytest.approx(3.817, abs=5e-4)
    assert (before, together) == pytest.approx((12, 12.3656), abs=5e-5)
    assert gain == pytest.approx(3.0466, abs=5e-5)


def test_table_1(values: Values) -> None:
    assert values("razniewski", "Table 1", "linear") == pytest.approx([0.367, 0.271, 0.150, 0.093])
    assert values("razniewski", "Table 1", "exp") == pytest.approx([0.4573, 0.3161, 0.1625, 0.0976], abs=5e-5)
    assert values("razniewski", "Table 1", "half") == pytest.approx([1.516, 2.193, 4.265, 7.101], abs=5e-4)


def test_table_2_all_cells(values: Values) -> None:
    cells = np.reshape(values("razniewski", "Table 2")[:24], (4, 6))
    expected = [
        [94, 89, 80, 66, 39, 22],
        [96, 93, 86, 74, 50, 30],
        [98, 96, 92, 85, 68, 49],
        [99, 98, 95, 91, 79, 64],
    ]
    assert cells.round().tolist() == expected
    assert values("razniewski", "Table 2", "age 50, gain") == pytest.approx([15.3, 2.3], abs=0.05)


def test_examples_3_to_5(values: Values) -> None:
    assert values("razniewski", "Example 3") == pytest.approx([0.8534, 0.3534], abs=5e-5)
    assert values("razniewski", "Example 4", "interval") == pytest.approx(
        [3.380, 3.611, 4.421, 5.361], abs=5e-4
    )
    assert values("razniewski", "Example 4", "net") == pytest.approx(
        [0.2134, 0.3195, 0.4865, 0.5913], abs=5e-5
    )
    mean, uniform, optimal, gain = values("razniewski", "Example 4")[8:]
    assert mean == pytest.approx(4.19, abs=5e-3)
    assert (uniform, optimal) == pytest.approx((0.39733, 0.40266), abs=5e-6)
    assert gain == pytest.approx(1.34, abs=5e-3)
    assert values("razniewski", "Example 5") == pytest.approx([1, 1, math.log(2), 50, -0.5, 75, -1.25])


def test_the_printed_mean_interval_is_the_harmonic_mean(razniewski: Report) -> None:
    (check,) = [check for check in razniewski.checks() if check.printed == "4.06"]
    assert check.reason.startswith("4.06 is the interval of the mean frequency")


def test_example_7(values: Values) -> None:
    assert values("razniewski", "Example 7", "interval") == pytest.approx(
        [0.258, 0.516, 1.633, 3.651], abs=5e-4
    )


def test_example_8(values: Values, razniewski: Report) -> None:
    plain, fresh, wrong, stale, *rest = values("razniewski", "Example 8")
    assert (plain, stale) == pytest.approx((0.486, 0.199), abs=5e-4)
    assert (fresh, wrong) == pytest.approx((71.27, 0.2873), abs=5e-3)
    assert rest == pytest.approx([0.458, 79.1, 0.209, 0.249, 24.8], abs=0.05)
    assert rest[3] == pytest.approx(0.249, abs=5e-4)
    assert _note(razniewski, "Example 8") == "The optimum is every 2.89 years, with a net income of 0.249."


def test_example_9(values: Values, razniewski: Report) -> None:
    seldom, fresh, spent, yearly, gain = values("razniewski", "Example 9")
    assert (seldom, spent, yearly) == pytest.approx((0.574, 0.250, 0.672), abs=5e-4)
    assert (fresh, gain) == pytest.approx((92.28, 17.15), abs=5e-3)
    assert _note(razniewski, "Example 9") == "The optimum is every 1.30 years, with a net income of 0.677."


def test_table_3_rates_follow_only_where_some_stayed(values: Values, razniewski: Report) -> None:
    *moved, people, mean = values("razniewski", "Table 3")
    assert moved == pytest.approx([100, 62.5, 23.08, 10.53], abs=5e-3)
    assert people == 50
    assert mean == math.inf
    note = _note(razniewski, "Table 3")
    assert "academic researchers 0.1962, industrial researchers 0.0525, professors 0.0222" in note
    assert "students" not in note


def test_table_4(values: Values) -> None:
    crawls = values("razniewski", "Table 4", "crawls")
    assert [round(n) for n in crawls] == [92, 243, 270, 333, 1033, 4712, 16018]
    gains = values("razniewski", "Table 4", "gain")
    assert gains == pytest.approx([23.0, 0.17, 0, 0.50, 6.03, 25.80, 31.87], abs=0.01)
    assert values("razniewski", "Table 4", "B/C") == pytest.approx([0.3546], abs=5e-5)
    assert values("razniewski", "Table 4", "freshness") == pytest.approx([65.43], abs=5e-3)


def test_section_8_4(values: Values) -> None:
    assert values("razniewski", "§8.4", "interval") == pytest.approx([0.532, 1.129, 1.500], abs=5e-4)
    total, *uniform = values("razniewski", "§8.4", "net")
    assert [total, *uniform] == pytest.approx([1673.3, 1605.8, 1562.8, 1640.0], abs=0.05)
    assert values("razniewski", "§8.4", "loss") == pytest.approx([4.04, 6.61, 1.99], abs=5e-3)


def test_section_9(values: Values, razniewski: Report) -> None:
    ratio, daily, twice = values("razniewski", "§9")
    assert ratio == pytest.approx(11350, abs=0.5)
    assert (daily, twice) == pytest.approx((0.3405, 0.1718), abs=5e-5)
    (check,) = [check for check in razniewski.checks() if check.printed == "16e3"]
    assert "16331" in check.reason


@pytest.mark.parametrize("number", [1, 2, 4, 5, 6])
def test_every_figure_is_there(razniewski: Report, number: int) -> None:
    assert f"Figure {number}" in [figure.name for figure in razniewski.figures]


def test_maxima_of_figures_5_and_6_lie_on_top_of_their_curves(razniewski: Report) -> None:
    for figure in razniewski.figures[3:5]:
        *curves, tops = figure.panels[0].series
        for curve, x, y in zip(curves, tops.x, tops.y, strict=True):
            assert curve.y.max() == pytest.approx(y, abs=1e-4)
            assert curve.x[curve.y.argmax()] == pytest.approx(x, abs=0.05)


def _note(report: Report, section: str) -> str:
    (found,) = [part for part in report.sections if part.title.startswith(section)]
    return found.note
