"""The log family's theory against high-precision sums, simulation and Zhang's two tables."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.papers.zhang.bias_tables import (
    RANGES_OF_SEVEN,
    bias,
    exact_a,
    expectation,
    polls_needed,
    spread,
    suitable_a,
)
from afresh.rates.log_ratio import ratio_estimate, ratio_interval
from afresh.values.errors import InputError


def moments_by_mpmath(r: float, n: int, a: float) -> tuple[float, float]:
    """E[r̂] and σ by the binomial sum in 40 digits."""
    with mpmath.workdps(40):
        p = -mpmath.expm1(-mpmath.mpf(r))
        chances = [mpmath.binomial(n, x) * p**x * (1 - p) ** (n - x) for x in range(n + 1)]
        values = [-mpmath.log((n - x + mpmath.mpf(a)) / (n + mpmath.mpf(a))) for x in range(n + 1)]
        mean = mpmath.fdot(chances, values)
        variance = mpmath.fdot(chances, [(value - mean) ** 2 for value in values])
        return float(mean), float(mpmath.sqrt(variance))


@pytest.mark.parametrize(
    ("a", "printed"),
    [
        (0.5, [1.0115, 1.0067, 0.9515, 0.8625, 0.8041, 0.7656]),
        (0.4, [1.0507, 1.0631, 1.0212, 0.9349, 0.8750, 0.8347]),
    ],
)
def test_zhang_table_1_to_four_decimals(a: float, printed: list[float]) -> None:
    r = np.array([0.1, 0.5, 1.0, 1.5, 1.8, 2.0])
    np.testing.assert_array_equal(np.round(expectation(r, 3, a) / r, 4), printed)


@pytest.mark.parametrize(("low", "high", "a"), RANGES_OF_SEVEN)
def test_zhang_table_2_holds_and_is_what_our_rule_finds(low: float, high: float, a: float) -> None:
    r = np.linspace(low, high, 777)
    assert np.max(np.abs(bias(r, 7, a))) < 0.05
    assert np.max(spread(r, 7, a)) < 0.60
    least, most = suitable_a(low, high)
    assert least <= a <= most


def test_each_of_zhangs_a_fails_in_the_next_range_but_one() -> None:
    for (_, _, a), (low, high, _) in zip(RANGES_OF_SEVEN, RANGES_OF_SEVEN[2:], strict=False):
        assert np.max(np.abs(bias(np.linspace(low, high, 99), 7, a))) > 0.05


def test_polls_needed_agrees_with_the_paper_where_the_paper_is_right() -> None:
    assert polls_needed(2, 4) == 35
    assert polls_needed(1, 2) == 6
    assert polls_needed(0, 1) == 5
    three = bias(np.linspace(0, 1, 1001), 3, 0.4)
    assert 0.0637 < three.max() < 0.0638


@settings(deadline=None)
@given(
    r=st.floats(1e-12, 40.0),
    n=st.integers(1, 60),
    a=st.floats(0.05, 2.0),
)
def test_moments_match_high_precision_sums(r: float, n: int, a: float) -> None:
    mean, sigma = moments_by_mpmath(r, n, a)
    assert expectation(r, n, a) == pytest.approx(mean, rel=1e-12)
    assert bias(r, n, a) == pytest.approx(mean / r - 1, rel=1e-11, abs=1e-11)
    # Where all chance sits on X = n the spread is the rounding of the mean.
    assert spread(r, n, a) == pytest.approx(sigma / r, rel=1e-10, abs=1e-14)


@settings(deadline=None)
@given(r=st.floats(1e-6, 8.0), n=st.integers(1, 40), a=st.floats(0.05, 0.9))
def test_larger_a_lowers_expectation_and_spread(r: float, n: int, a: float) -> None:
    assert expectation(r, n, a * 1.1) < expectation(r, n, a)
    assert spread(r, n, a * 1.1) <= spread(r, n, a) * (1 + 1e-12) + 1e-14


def test_consistent_as_polls_grow() -> None:
    for a in (0.4, 0.5, 0.7):
        far = np.abs(bias([0.1, 1.0, 3.0], 4000, a))
        assert far.max() < 0.002
        assert np.all(spread([0.1, 1.0, 3.0], 4000, a) < 0.06)


def test_limits_at_zero_and_far_out() -> None:
    assert bias(0.0, 7, 0.4) == pytest.approx(bias(1e-12, 7, 0.4), abs=1e-10)
    assert expectation(0.0, 7) == 0
    assert spread(0.0, 7) == np.inf
    assert expectation(1e12, 7) == pytest.approx(np.log(15))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 50, 10**6, 10**12])
def test_exact_a_in_high_precision(n: int) -> None:
    with mpmath.workdps(60):
        grown = mpmath.exp(mpmath.mpf(1) / n)
        exact = (n - (n - 1) * grown) / (grown - 1)
    assert exact_a(n) == pytest.approx(float(exact), rel=2e-15)


@pytest.mark.parametrize("n", [1, 3, 7, 30])
def test_exact_a_makes_the_slope_one(n: int) -> None:
    assert bias(0.0, n, exact_a(n)) == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("r", [0.2, 1.0, 2.5])
def test_interval_covers_what_it_promises(r: float) -> None:
    n, chance = 12, -np.expm1(-r)
    x = np.arange(n + 1)
    low, high = ratio_interval(np.full(n + 1, n), x, 0.9)
    weights = [float(mpmath.binomial(n, int(k)) * chance**k * (1 - chance) ** (n - k)) for k in x]
    assert 0.9 <= float(np.dot(weights, (low <= r) & (r <= high))) <= 1
    assert np.all(low < high)


def test_interval_holds_the_maximum_likelihood_estimate() -> None:
    n, x = 40, np.arange(1, 40)
    low, high = ratio_interval(np.full(39, n), x)
    mle = -np.log1p(-x / n)
    assert np.all((low < mle) & (mle < high))


@pytest.mark.parametrize("n", [1, 7, 10**6, 10**12])
def test_interval_ends_in_closed_form(n: int) -> None:
    """None of n: (0, −ln(tail)/n). All of n: the low end is −ln(1−tail^(1/n))."""
    low, high = ratio_interval(n, 0, 0.9)
    assert low == 0
    assert high == pytest.approx(-np.log(0.05) / n, rel=1e-9)
    low, high = ratio_interval(n, n, 0.9)
    assert high == np.inf
    assert low == pytest.approx(-np.log(-np.expm1(np.log(0.05) / n)), rel=1e-6)


def test_a_of_zero_is_the_maximum_likelihood_estimate() -> None:
    assert ratio_estimate([4, 4], [2, 4], a=0).tolist() == [np.log(2), np.inf]


def test_wrong_questions_are_refused_in_words() -> None:
    with pytest.raises(InputError, match="between 0 and the number of polls"):
        ratio_estimate(3, 4)
    with pytest.raises(InputError, match="between 0 and the number of polls"):
        ratio_interval(3, 4)
    with pytest.raises(InputError, match=r"a is -0\.1: must be 0 or more"):
        ratio_estimate(3, 1, a=-0.1)
    with pytest.raises(InputError, match="level is 1"):
        ratio_interval(7, 3, level=1)
