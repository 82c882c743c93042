"""The vectorised root finder: smooth, kinked, noisy and jumping functions, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.model.roots import solve_decreasing


@given(
    power=st.floats(-4.0, -0.05),
    log_root=st.lists(st.floats(-50.0, 50.0), min_size=1, max_size=9),
    log_guess=st.floats(-50.0, 50.0),
)
@settings(deadline=None)
def test_powers_from_anywhere(power: float, log_root: list[float], log_guess: float) -> None:
    root = np.exp(np.array(log_root))
    found = solve_decreasing(lambda x: x**power, root**power, float(np.exp(log_guess)))
    np.testing.assert_allclose(found.low, root, rtol=1e-10)


@given(edge=st.floats(1e-30, 1e30), guess=st.floats(1e-30, 1e30), share=st.floats(0.01, 0.99))
@settings(deadline=None)
def test_a_jump_ends_at_adjacent_doubles(edge: float, guess: float, share: float) -> None:
    target = np.array([1 + share])
    found = solve_decreasing(lambda x: np.where(x < edge, 2.0, 1.0), target, guess)
    assert found.high[0] == edge
    assert found.low[0] == np.nextafter(edge, 0)
    assert found.share(target)[0] == pytest.approx(share)


def test_each_element_has_its_own_kind() -> None:
    def values(x: np.ndarray) -> np.ndarray:
        return np.array([np.exp(-x[0]), np.sqrt(max(1 - x[1], 0.0)), np.round(1 / x[2], 5)])

    target = np.array([1e-9, 1e-4, 0.123454])
    found = solve_decreasing(values, target, 0.5)
    assert found.low[0] == pytest.approx(9 * np.log(10), rel=1e-12)
    assert found.low[1] == pytest.approx(1 - 1e-8, rel=1e-14)
    assert found.at_low[2] >= target[2] >= found.at_high[2]
    assert found.high[2] == np.nextafter(found.low[2], 1e9)


def test_a_good_guess_needs_few_steps() -> None:
    calls = 0

    def values(x: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        return np.asarray(1 / (x + x**2))

    solve_decreasing(values, 1 / (2 + 4), 2.0001, slope=-1.7)
    assert calls <= 4
