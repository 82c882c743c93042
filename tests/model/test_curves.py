"""The curves against 60 or more digits, and their inverses by bracketing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.model import curves
from afresh.values.arrays import Float64s

Curve = Callable[[Any], Float64s]
Exact = Callable[[Any], Any]

EXACT: dict[str, Exact] = {
    "freshness_curve": lambda x: -mp.expm1(-x) / x,
    "g": lambda x: 1 - (1 + x) * mp.exp(-x),
    "age_curve": lambda x: mp.mpf(1) / 2 - 1 / x + (1 - mp.exp(-x)) / x**2,
    "k": lambda x: x * x / 2 - 1 + (1 + x) * mp.exp(-x),
    "h": lambda x: x - 1 + mp.exp(-x),
    "ein": lambda x: mp.e1(x) + mp.log(x) + mp.euler,
    "harmonic_curve": lambda x: mp.e1(x) + mp.log(x) + mp.euler - 1 - mp.expm1(-x) / x,
}
INVERSES = {"phi": "g", "k_inverse": "k", "h_inverse": "h"}

exponents = st.floats(-75, 75)
around_one = st.floats(-2, 2)


def exactly(function: Exact, x: Any) -> Any:
    """``function(x)`` with enough digits to survive the cancellation of its textbook form."""
    lost = max(0.0, -float(mp.log10(x))) * 3
    with mp.workdps(40 + int(lost)):
        return +function(mp.mpf(x))


@pytest.mark.parametrize("name", EXACT)
@settings(deadline=None)
@given(exponent=st.one_of(exponents, around_one))
def test_a_curve_is_exact_to_a_few_units_in_the_last_place(name: str, exponent: float) -> None:
    x = 10.0**exponent
    curve: Curve = getattr(curves, name)
    assert abs(float(curve(x)) / exactly(EXACT[name], x) - 1) < 2e-15


@pytest.mark.parametrize("name", INVERSES)
@settings(deadline=None)
@given(exponent=st.one_of(exponents, around_one))
def test_an_inverse_is_bracketed_to_fifteen_digits(name: str, exponent: float) -> None:
    y = 10.0**exponent
    if name == "phi":
        y = y / (1 + y) if y < 1e15 else np.nextafter(1.0, 0.0)
    inverse: Curve = getattr(curves, name)
    r = mp.mpf(float(inverse(y)))
    forward = EXACT[INVERSES[name]]
    assert exactly(forward, r * (1 - mp.mpf("2e-15"))) < y < exactly(forward, r * (1 + mp.mpf("2e-15")))


def test_phi_agrees_with_the_inverse_incomplete_gamma() -> None:
    from scipy.special import gammaincinv

    y = np.concatenate([np.geomspace(1e-60, 0.5, 500), 1 - np.geomspace(0.5, 1e-15, 500)])
    np.testing.assert_allclose(curves.phi(y), gammaincinv(2, y), rtol=2e-14)


def test_phi_drops_what_is_worth_one_or_less() -> None:
    assert np.isinf(curves.phi([1.0, 1.5, np.inf])).all()
    assert np.isfinite(curves.phi(np.nextafter(1.0, 0.0)))


def test_the_optimal_frequency_peaks_at_1_79_changes_per_refresh() -> None:
    y = np.linspace(0.5, 0.6, 100_001)
    frequency = y / curves.phi(y)
    peak = y[np.argmax(frequency)]
    assert peak == pytest.approx(0.5352, abs=5e-5)
    assert float(curves.phi(peak)) == pytest.approx(1.7933, abs=2e-4)


@pytest.mark.parametrize("name", [*EXACT, *INVERSES])
def test_a_curve_takes_any_shape_and_the_ends_of_the_range(name: str) -> None:
    curve: Curve = getattr(curves, name)
    ends = curve([0.0, 5e-324, 1e-300, 1e300, np.inf])
    assert not np.isnan(ends).any()
    falls = name == "freshness_curve"
    assert (np.diff(ends) <= 0).all() if falls else (np.diff(ends[:-1]) >= 0).all()
    assert curve(0.5).shape == ()
    assert curve(np.full((2, 3), 0.5, dtype=np.float32)).shape == (2, 3)
    assert curve(np.zeros((0, 2))).shape == (0, 2)
    assert curve(np.float32(2)).dtype == np.float64


@pytest.mark.parametrize("name", [*EXACT, *INVERSES])
def test_a_curve_has_no_step_where_its_series_ends(name: str) -> None:
    curve: Curve = getattr(curves, name)
    joins = np.array([0.005, 0.1, 1.0, 2.5, 40.0]) if name != "phi" else np.array([0.00499, 0.1, 0.956])
    near = np.nextafter(joins, 0.0), joins, np.nextafter(joins, np.inf)
    below, at, above = (curve(x) for x in near)
    np.testing.assert_allclose(below, at, rtol=5e-15)
    np.testing.assert_allclose(above, at, rtol=5e-15)
