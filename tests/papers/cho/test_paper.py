"""Cho & Garcia-Molina 2000 as recomputed: the right values, not the printed ones, wherever the two differ."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from afresh.papers.report import Report

Values = Callable[..., list[float]]

# uniform freshness and age, proportional freshness and age, at r = 1 and r = 10: quadrature over the Gamma
GAMMA_HALF = np.array(
    [[0.65066667, 0.12666667, 0.63212056, 0.17616075], [0.13022352, 0.39115646, 0.09999546, 0.54666606]]
)
GAMMA_WIDE = np.array([[0.73981885, 0.098739639, 0.63212056], [0.38216213, 0.27197686, 0.09999546]])


def test_table_2_is_what_the_formulas_say(values: Values) -> None:
    fixed, random, memoryless = np.reshape(values("cho", "Table 2"), (3, 3, 2))
    # r = 0.1, 1, 10, by mpmath from the definitions
    assert fixed == pytest.approx(
        np.array([[0.951626, 0.016258], [0.632121, 0.132121], [0.099995, 0.409999]]), abs=1e-6
    )
    assert random[1] == pytest.approx([0.600424, 0.183757], abs=1e-6)
    assert memoryless == pytest.approx(np.array([[1 / 1.1, 0.1 / 1.1], [0.5, 0.5], [1 / 11, 10 / 11]]))


def test_section_4(values: Values) -> None:
    fresh, ratio, per_change, above, quarter = values("cho", "§4")
    assert fresh == pytest.approx(0.6321, abs=5e-5)
    assert ratio == pytest.approx(0.4642, abs=5e-5)
    assert per_change == pytest.approx(2.1542, abs=5e-4)
    assert above == pytest.approx(26.42, abs=5e-3)
    assert quarter == pytest.approx(0.72, abs=5e-3)


def test_the_quarter_is_against_purely_random(cho: Report) -> None:
    (check,) = [check for check in cho.checks() if check.printed == "0.25"]
    assert "0.264" in check.reason


def test_table_3(values: Values) -> None:
    half, wide = np.reshape(values("cho", "Table 3"), (2, 2, 4))
    assert half == pytest.approx(GAMMA_HALF, abs=1e-7)
    assert wide[:, :3] == pytest.approx(GAMMA_WIDE, abs=1e-7)
    assert np.isinf(wide[:, 3]).all()


def test_figure_7_uniform_is_never_worse(values: Values) -> None:
    fresh, old, same_fresh, same_old = values("cho", "Figure 7")
    assert 0.99 < fresh < 1
    assert 0.99 < old < 1
    assert (same_fresh, same_old) == pytest.approx((1, 1), abs=1e-12)


def test_table_4_is_exact(values: Values) -> None:
    benefits = values("cho", "Table 4", "(")
    assert benefits == pytest.approx(
        [n / 36 for n in (1, 9, 2, 10, 12)] + [n / 72 for n in (30, 31, 36, 41, 40)], rel=1e-15
    )
    assert values("cho", "Table 4", "best") == [0, 1, 0, 2, 2, 3, 7, 3]


def test_table_5(values: Values) -> None:
    assert values("cho", "Table 5", "(b)") == pytest.approx([1.1499, 1.3584, 1.3538, 1.1379, 0], abs=5e-5)
    assert values("cho", "Table 5", "(c)") == pytest.approx(
        [0.8349, 0.9679, 1.0335, 1.0706, 1.0931], abs=5e-5
    )
    assert values("cho", "Table 5", "rate") == pytest.approx([2.473], abs=2e-3)


def test_figure_9(values: Values) -> None:
    few, many, worst = values("cho", "Figure 9")
    assert few == pytest.approx(1, abs=1e-12)
    assert many == pytest.approx(0.3114, abs=5e-5)
    assert worst < 1


def test_table_6(values: Values) -> None:
    assert values("cho", "Table 6", "freshness, ")[:3] == pytest.approx([0.1287, 0.5729, 0.6162], abs=5e-5)
    proportional, uniform, optimal = values("cho", "Table 6", "age, ")[:3]
    assert proportional == pytest.approx(406.0, abs=0.05)
    assert uniform == pytest.approx(5.612, abs=5e-4)
    assert optimal == pytest.approx(4.299, abs=5e-4)


def test_twice_the_weight_is_not_always_less_than_twice_the_visits(cho: Report, values: Values) -> None:
    least, slow, daily, fast, dropped = values("cho", "§8")
    assert 1 < least == slow < daily < 2 < fast < dropped == np.inf
    assert slow == pytest.approx(np.sqrt(2), rel=0.01)
    (part,) = [one for one in cho.sections if one.title.startswith("§8")]
    assert [check.verdict.value for check in part.checks] == ["agrees"] * 3 + ["differs"] * 2


def test_thirty_per_cent_is_not_26(cho: Report) -> None:
    (check,) = [one for part in cho.sections for one in part.checks if "above purely random" in one.name]
    assert (check.verdict.value, round(check.recomputed, 1)) == ("differs", 26.4)


@pytest.mark.parametrize("number", [2, 3, 6, 7, 9, 10, 12])
def test_every_figure_is_there(cho: Report, number: int) -> None:
    assert f"Figure {number}" in [figure.name for figure in cho.figures]


def test_figure_2_age_falls_to_nothing_at_a_refresh(cho: Report) -> None:
    fresh, old = cho.figures[0].panels
    time, age = old.series[0].x, old.series[0].y
    assert ((age == 0) == (fresh.series[0].y == 1)).all()
    after = np.searchsorted(time, old.series[2].x)
    assert age[after] == pytest.approx(0, abs=5e-3)
    assert age.max() > 0.5


def test_example_3_windows_move_polls_and_not_the_average(values: Values) -> None:
    found = values("cho", "Example 3")
    assert found[:5] == [10, 10, 10, 10, 0.7]
    assert found[5:] == pytest.approx([1, *[1 - np.exp(-1)] * 3], rel=1e-9)


def test_figure_5_shows_what_each_schedule_does_to_the_day(cho: Report) -> None:
    (figure,) = [figure for figure in cho.figures if figure.name == "Figure 5"]
    polls, courses = figure.panels
    assert [series.x.size for series in polls.series] == [10, 10, 10]
    assert polls.series[2].x == pytest.approx(2.4 * np.arange(1, 11))
    early, some, even = (series.y for series in courses.series)
    swing = [float(course.max() - course.min()) for course in (early, some, even)]
    assert swing[0] > swing[1] > swing[2]
    assert early[-1] == pytest.approx(np.exp(-(24 - np.arange(1, 11) / 10) / 24).mean(), abs=1e-9)
    assert even.max() - even.min() < 0.1
