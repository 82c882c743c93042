"""Closed forms against high precision, against dense search, and at the ends of the range."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import lambertw

from afresh.model.decay import Decay, Exponential, Geometric, Linear
from afresh.money.best_interval import find_optimum
from afresh.money.excess_income import excess_income
from afresh.money.terms import IncomeTerms, IntervalOptimum

TIMES = settings(deadline=None)
amounts = st.floats(1e-3, 1e3)
extras = st.one_of(st.just(0.0), st.floats(1e-3, 1e2))
extremes = st.floats(-12, 12).map(lambda exponent: 10.0**exponent)


def terms(gain: float, check: float, update: float = 0.0) -> IncomeTerms:
    return IncomeTerms(*(np.array([x]) for x in (gain, 0.0, check, update)))


def lambert_interval(rate: float, ratio: float, branch: int) -> mpmath.mpf:
    """Eq. 11 of the paper with the branch spelt out, to 60 digits."""
    with mpmath.workdps(60):
        lam, b = mpmath.mpf(rate), mpmath.mpf(ratio)
        return (-mpmath.lambertw((lam - b) / (b * mpmath.e), branch).real - 1) / lam


@TIMES
@given(extremes, st.floats(1e-9, 0.999))
def test_exponential_is_branch_minus_one(rate: float, price: float) -> None:
    ratio = rate / price
    found = find_optimum(Exponential(rate), terms(ratio, 1.0)).interval[0]
    assert found == pytest.approx(float(lambert_interval(rate, ratio, -1)), rel=1e-12)


@TIMES
@given(st.floats(1e-3, 1e3), st.floats(1e-3, 0.9))
def test_the_other_branch_is_the_interval_zero(rate: float, price: float) -> None:
    """−W₀(−(1−y)/e)−1 < 0 for 0 < y < 1: no interval at all. SciPy's branches agree on which is which."""
    ratio = rate / price
    assert lambert_interval(rate, ratio, 0) < 0
    argument = (rate - ratio) / (ratio * np.e)
    scipy = (-lambertw(argument, -1).real - 1) / rate
    assert find_optimum(Exponential(rate), terms(ratio, 1.0)).interval[0] == pytest.approx(scipy, rel=1e-6)


@TIMES
@given(amounts, amounts, st.floats(1e-3, 1e2), extras)
def test_linear_solves_the_quadratic(rate: float, gain: float, check: float, update: float) -> None:
    best = find_optimum(Linear(rate), terms(gain, check, update))
    pays = gain > np.sqrt(2 * rate * check * gain) + rate * update
    if abs(gain - best.threshold[0]) > 1e-9 * gain:
        assert np.isfinite(best.interval[0]) == pays
    if best.excess[0] > 0:
        assert best.interval[0] == pytest.approx(np.sqrt(2 * check / (rate * gain)))
        assert best.excess[0] == pytest.approx(
            gain - np.sqrt(2 * rate * check * gain) - rate * update, abs=1e-9 * gain
        )


def densest(decay: Decay, some: IncomeTerms, extra: list[float] | None = None) -> tuple[float, float]:
    """(u, E(u)) of the highest of many points, or never."""
    u = np.sort(np.concatenate([np.geomspace(1e-7, 1e7, 40_001), extra or []]))
    value = excess_income(decay, some, u)
    best = int(np.argmax(value))
    return (float(u[best]), float(value[best])) if value[best] > 0 else (np.inf, 0.0)


@TIMES
@given(st.sampled_from(["exponential", "linear"]), amounts, amounts, st.floats(1e-3, 1e2), extras)
def test_no_interval_beats_it(name: str, rate: float, gain: float, check: float, update: float) -> None:
    decay: Decay = Exponential(rate) if name == "exponential" else Linear(rate)
    some = terms(gain, check, update)
    best = find_optimum(decay, some)
    _, searched = densest(decay, some)
    assert best.excess[0] >= searched - 1e-12 * gain
    assert best.excess[0] <= searched + 1e-3 * gain
    assert_consistent(decay, some, best)


@TIMES
@given(st.floats(1e-4, 1.0), st.floats(1e-2, 1e2), amounts, st.floats(1e-3, 1e2), extras)
def test_geometric_takes_whole_steps(p: float, step: float, gain: float, check: float, update: float) -> None:
    decay, some = Geometric(p, step), terms(gain, check, update)
    best = find_optimum(decay, some)
    before = 1 - 8 * np.finfo(float).eps
    _, searched = densest(decay, some, [j * step * before for j in range(1, 3000)])
    assert best.excess[0] >= searched - 1e-11 * gain
    assert_consistent(decay, some, best)
    if best.excess[0] > 0:
        assert best.interval[0] / step == pytest.approx(round(best.interval[0] / step))


def assert_consistent(decay: Decay, some: IncomeTerms, best: IntervalOptimum) -> None:
    """The income said is that at the interval said, and futile means a gain no higher than the threshold."""
    gain = float(some.gain[0])
    if np.isfinite(best.interval[0]):
        assert excess_income(decay, some, best.interval)[0] == pytest.approx(best.excess[0], abs=1e-12 * gain)
        assert decay.integral(best.interval)[0] / best.interval[0] == pytest.approx(best.freshness[0])
    if abs(gain - best.threshold[0]) > 1e-9 * gain:
        assert (best.excess[0] > 0) == (gain > best.threshold[0])


@TIMES
@given(extremes, extremes, extremes, st.one_of(st.just(0.0), extremes))
def test_extreme_numbers_give_numbers(rate: float, gain: float, check: float, update: float) -> None:
    for decay in (Exponential(rate), Linear(rate), Geometric(-np.expm1(-rate))):
        best = find_optimum(decay, terms(gain, check, update))
        for column in (best.interval, best.excess, best.freshness, best.threshold):
            assert not np.isnan(column).any()
        assert best.interval[0] > 0
        assert 0 <= best.excess[0] <= gain
        assert 0 <= best.freshness[0] <= 1


def test_free_checks_are_made_all_the_time() -> None:
    for decay in (Exponential(2.0), Linear(2.0)):
        best = find_optimum(decay, terms(10.0, 0.0, 1.0))
        assert (best.interval[0], best.freshness[0], best.excess[0]) == (0.0, 1.0, 8.0)


def test_what_never_changes_is_never_refreshed() -> None:
    for decay in (Exponential(0.0), Linear(0.0), Geometric(0.0)):
        best = find_optimum(decay, terms(10.0, 1.0, 1.0))
        assert (best.interval[0], best.excess[0], best.freshness[0]) == (np.inf, 0.0, 1.0)
        assert best.threshold[0] == np.inf


def test_a_certain_change_at_each_step() -> None:
    """z falls from 1 to 0 at the step: refresh just before it, and no update is ever paid."""
    best = find_optimum(Geometric(1.0, 2.0), terms(3.0, 1.0, 100.0))
    assert best.interval[0] == pytest.approx(2.0)
    assert best.interval[0] < 2.0
    assert best.excess[0] == pytest.approx(3.0 - 0.5)
