"""Sharp changes in a history of rates: Zhang's step 3."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.papers.zhang.simulated_pages import simulate_saa
from afresh.rates.change_points import change_points
from afresh.values.errors import InputError

HISTORIES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30)


def test_a_step_up_and_a_step_down_bound_one_period() -> None:
    rates = [1.0] * 4 + [2.0] * 6 + [1.0] * 5
    found = change_points(np.arange(15) * 10.0, rates)
    assert found.marks.tolist() == [4, 10]
    assert found.periods.tolist() == [60.0]
    assert (found.period, found.rate, found.until) == (60.0, 1.0, 160.0)


def test_the_period_is_the_median_of_several() -> None:
    rates = [1, 5, 1, 1, 5, 5, 5, 5, 5, 1]
    found = change_points(range(10), rates)
    assert found.marks.tolist() == [1, 2, 4, 9]
    assert found.periods.tolist() == [1, 2, 5]
    assert found.period == 2


@settings(deadline=None)
@given(rates=HISTORIES, k=st.floats(0.1, 0.3), scale=st.floats(1e-3, 1e3))
def test_marks_follow_the_definition_and_no_unit(rates: list[float], k: float, scale: float) -> None:
    found = change_points(range(len(rates)), rates, k)
    mean = math.fsum(rates) / len(rates)
    jumps = [(i, abs(rates[i] - rates[i - 1])) for i in range(1, len(rates))]
    clear = [(i, jump) for i, jump in jumps if abs(jump - k * mean) > 1e-9 * mean]
    for i, jump in clear:
        assert (i in found.marks) == (jump > k * mean)
    if len(clear) == len(jumps):
        scaled = change_points(np.arange(len(rates)) * 7.0, np.array(rates) * scale, k)
        assert scaled.marks.tolist() == found.marks.tolist()
        assert scaled.period == pytest.approx(found.period * 7)
        assert scaled.rate == pytest.approx(found.rate * scale)


def test_a_steady_history_has_no_end_in_sight() -> None:
    found = change_points([0, 1, 2], [1.0, 1.05, 0.97])
    assert found.marks.size == 0
    assert found.rate == pytest.approx(1.00667, abs=1e-5)
    assert (found.period, found.until) == (math.inf, math.inf)


def test_an_item_that_never_changes_is_steady() -> None:
    assert change_points([3.0, 4.0], [0.0, 0.0]).marks.size == 0


def test_a_larger_k_marks_less() -> None:
    rng = np.random.default_rng(1)
    rates = rng.gamma(20, size=200)
    marks = [set(change_points(range(200), rates, k).marks.tolist()) for k in (0.1, 0.2, 0.3)]
    assert marks[0] > marks[1] > marks[2]


def test_a_change_of_pace_shows_in_averaged_estimates() -> None:
    rng = np.random.default_rng(5)
    true = np.repeat([1.0, 4.0, 1.0], 10)
    estimates = [simulate_saa(np.full(400, rate), 1.0, rng).rate.mean() for rate in true]
    assert change_points(range(30), estimates, 0.3).marks.tolist() == [10, 20]


def test_noise_makes_no_periods_once_its_size_is_known() -> None:
    rates = simulate_saa(np.full(400, 1.0), 1.0, np.random.default_rng(3)).rate
    by_the_paper = change_points(range(400), rates).marks.size
    with_errors = change_points(range(400), rates, errors=rates.std()).marks.size
    assert by_the_paper > 200
    assert with_errors < 0.1 * by_the_paper
    step = change_points(range(20), np.repeat([1.0, 9.0], 10), errors=np.repeat([0.4, 3.5], 10))
    assert step.marks.tolist() == [10]
    with pytest.raises(InputError, match="2 errors and 3 rates"):
        change_points([0, 1, 2], [1.0, 2.0, 3.0], errors=[0.1, 0.1])


@pytest.mark.parametrize(
    ("times", "rates", "k", "says"),
    [
        ([0, 1], [1.0], 0.2, "one time for each rate"),
        ([], [], 0.2, "at least one"),
        ([1, 1], [1.0, 2.0], 0.2, r"times\[1\] is 1: must come after times\[0\]"),
        ([0, math.nan], [1.0, 2.0], 0.2, "finite"),
        ([0, 1], [1.0, -2.0], 0.2, r"rates\[1\] is -2"),
        ([0, 1], [1.0, 2.0], 0.0, "k is 0"),
    ],
)
def test_wrong_histories_are_refused(times: list[float], rates: list[float], k: float, says: str) -> None:
    with pytest.raises(InputError, match=says):
        change_points(times, rates, k)
