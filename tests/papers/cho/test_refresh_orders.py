"""Gamma-distributed rates: Cho & Garcia-Molina 2000, Table 3, at its singular points and around them."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.slow_cases import with_slow_cases

from afresh.model.freshness import age, freshness
from afresh.papers.cho.refresh_orders import ALLOCATIONS, gamma_age, gamma_freshness

NEAR = [0.0, 1e-15, 1e-9, 1e-6, 1e-3]
SINGULAR = [0.0, 0.5**0.5, 1.0]
FEW = [*SINGULAR, 1.0 - 1e-9, 0.5**0.5 + 1e-6, 0.3]
AROUND = {max(point + sign * near, 0.0) for point in SINGULAR for near in NEAR for sign in (-1, 1)}
DELTAS = sorted(AROUND - set(FEW))


def by_quadrature(r: float, delta: float) -> tuple[Any, Any]:
    """∫₀¹ z and ∫₀¹ (1−s)(1−z), z(s) = E[e^{−Λs}], by panels that follow the decay."""
    mean, square = mp.mpf(r), mp.mpf(delta) ** 2

    def log_survival(s: Any) -> Any:
        return -mean * s if square == 0 else -mp.log1p(mean * square * s) / square

    ends = [mp.mpf(0), *(p for e in range(-3, 3) if (p := mp.mpf(10) ** e / max(mean, 1)) < 1), mp.mpf(1)]
    fresh = mp.quad(lambda s: mp.exp(log_survival(s)), ends)
    return fresh, mp.quad(lambda s: -(1 - s) * mp.expm1(log_survival(s)), ends)


@pytest.mark.parametrize("delta", with_slow_cases([*FEW, *DELTAS, 2.0, 10.0], kept=4))
def test_uniform_at_and_near_the_singular_points(delta: float) -> None:
    with mp.workdps(25):
        for r in (1e-12, 1e-8, 1e-5, 1e-2, 1.0, 7.0, 300.0):
            fresh, old = by_quadrature(r, delta)
            assert abs(gamma_freshness(r, 1.0, delta) / fresh - 1) < 1e-12
            assert abs(gamma_age(r, 1.0, delta) / old - 1) < 2e-12


@settings(deadline=None)
@given(r=st.floats(-12, 12).map(lambda e: 10.0**e), delta=st.floats(1e-5, 100))
def test_uniform_is_the_printed_formula(r: float, delta: float) -> None:
    with mp.workdps(120):
        d, x = mp.mpf(delta) ** 2, mp.mpf(r)
        if min(abs(d - 1), abs(d - 0.5)) < 1e-30:
            return
        base = 1 + x * d
        fresh = (1 - base ** (1 - 1 / d)) / (x * (1 - d))
        old = ((1 - d) / 2 - 1 / x + (1 - base ** (2 - 1 / d)) / (x**2 * (1 - 2 * d))) / (1 - d)
        assert abs(gamma_freshness(r, 1.0, delta) / fresh - 1) < 1e-10
        assert abs(gamma_age(r, 1.0, delta) / old - 1) < 1e-9


@pytest.mark.parametrize("delta", [0.4, 1.0, 1.7])
def test_it_is_the_mean_over_gamma_rates(delta: float) -> None:
    from scipy.stats import gamma

    shares = (np.arange(100_000) + 0.5) / 100_000
    rates = gamma.ppf(shares, 1 / delta**2, scale=2.0 * delta**2)
    fresh, old = freshness(rates, 0.5), age(rates, 0.5)
    assert gamma_freshness(2.0, 0.5, delta) == pytest.approx(fresh.mean(), rel=1e-4)
    assert gamma_age(2.0, 0.5, delta) == pytest.approx(old.mean(), rel=1e-4)


def test_the_limits_that_have_a_name() -> None:
    r = np.geomspace(1e-3, 1e3, 13)
    np.testing.assert_allclose(gamma_freshness(r, 1.0, 1.0), np.log1p(r) / r, rtol=1e-13)
    at_half = 2 * (1 / 4 - 1 / r + 2 * np.log1p(r / 2) / r**2)
    np.testing.assert_allclose(gamma_age(r, 1.0, 0.5**0.5)[5:], at_half[5:], rtol=1e-9)
    assert gamma_age(1e-9, 1.0, 0.8) == pytest.approx(1e-9 / 6, rel=1e-8)


@settings(deadline=None)
@given(r=st.floats(-6, 6).map(lambda e: 10.0**e), delta=st.floats(0, 0.999))
def test_uniform_beats_proportional(r: float, delta: float) -> None:
    both = [(gamma_freshness(r, 1.0, delta, a), gamma_age(r, 1.0, delta, a)) for a in ALLOCATIONS]
    (fresh_u, old_u), (fresh_p, old_p) = both
    assert fresh_u >= fresh_p * (1 - 1e-14)
    assert old_u <= old_p * (1 + 1e-13)


def test_proportional_ages_for_ever_from_delta_one_on() -> None:
    np.testing.assert_array_equal(gamma_age(1.0, 1.0, [1.0, 2.0], "proportional"), np.inf)
    assert gamma_age(1.0, 1.0, 0.5, "proportional") == pytest.approx(age(1.0, 1.0) / 0.75)
    np.testing.assert_array_equal(gamma_age(0.0, 1.0, [0.5, 2.0], "proportional"), 0)


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_the_ends(allocation: str) -> None:
    rate, frequency = [0.0, 0.0, 2.0, 2.0], [0.0, 1.0, 0.0, np.inf]
    np.testing.assert_array_equal(gamma_freshness(rate, frequency, 0.5, allocation), [1, 1, 0, 1])
    np.testing.assert_array_equal(gamma_age(rate, frequency, 0.5, allocation), [0, 0, np.inf, 0])


def test_types() -> None:
    assert isinstance(gamma_age(1.0, 1.0, 0.5), float)
    assert gamma_freshness(np.ones(2, dtype=np.float32), 1.0, 0.5).dtype == np.float32
