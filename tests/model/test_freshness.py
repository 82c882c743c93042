"""Freshness and age by order of refreshes: exact values, theorems, edges."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.model.freshness import ORDERS, age, freshness
from afresh.values.errors import InputError, UsageError

decades = st.floats(-12, 12).map(lambda e: 10.0**e)
every_order = pytest.mark.parametrize("order", ORDERS)


def exact(order: str, rate: float, frequency: float) -> tuple[Any, Any]:
    """Freshness and age from the distribution of the time X between two refreshes of an item.

    F = E[∫₀ˣ e^{−λs}ds]/E[X], A = E[∫₀ˣ (s − (1−e^{−λs})/λ)ds]/E[X]; in units of T, X is 1 (fixed), the sum
    of two uniforms (shuffled rounds) or exponential (memoryless).
    """
    r, f = mp.mpf(rate) / frequency, mp.mpf(frequency)
    half_square, left = {
        "fixed": (mp.mpf(1) / 2, mp.exp(-r)),
        "shuffled": (mp.mpf(7) / 12, (mp.expm1(-r) / r) ** 2),
        "memoryless": (mp.mpf(1), 1 / (1 + r)),
    }[order]
    return (1 - left) / r, (half_square - 1 / r + (1 - left) / r**2) / f


@every_order
@settings(deadline=None)
@given(rate=decades, frequency=decades)
def test_both_are_exact_over_48_decades(order: str, rate: float, frequency: float) -> None:
    with mp.workdps(150):
        fresh, old = exact(order, rate, frequency)
        assert abs(freshness(rate, frequency, order) / fresh - 1) < 4e-15
        assert abs(age(rate, frequency, order) / old - 1) < 4e-15


@every_order
@settings(deadline=None)
@given(rate=decades, frequency=decades, more=st.floats(1, 100))
def test_more_refreshes_are_never_worse(order: str, rate: float, frequency: float, more: float) -> None:
    assert (
        0
        <= freshness(rate, frequency, order)
        <= freshness(rate, frequency * more, order) + 2e-16
        <= 1 + 4e-16
    )
    assert age(rate, frequency * more, order) <= age(rate, frequency, order) * (1 + 1e-14)


@every_order
@settings(deadline=None)
@given(rate=decades, frequency=decades, scale=decades)
def test_only_the_unit_of_time_changes(order: str, rate: float, frequency: float, scale: float) -> None:
    assert freshness(scale * rate, scale * frequency, order) == pytest.approx(
        freshness(rate, frequency, order), rel=1e-14
    )
    assert age(scale * rate, scale * frequency, order) == pytest.approx(
        age(rate, frequency, order) / scale, rel=1e-14
    )


@settings(deadline=None)
@given(rate=decades, frequency=decades)
def test_fixed_order_beats_random_beats_memoryless(rate: float, frequency: float) -> None:
    fresh = [freshness(rate, frequency, order) for order in ("memoryless", "shuffled", "fixed")]
    old = [age(rate, frequency, order) for order in ("fixed", "shuffled", "memoryless")]
    assert fresh[0] <= fresh[1] * (1 + 1e-15) <= fresh[2] * (1 + 2e-15)
    assert old[0] <= old[1] * (1 + 1e-15) <= old[2] * (1 + 2e-15)


@settings(deadline=None)
@given(rates=st.lists(decades, min_size=2, max_size=8), budget=decades)
def test_uniform_is_never_below_proportional(rates: list[float], budget: float) -> None:
    # Cho & Garcia-Molina 2000, §5.1, for any rates.
    rate = np.array(rates)
    even, in_proportion = np.full(rate.size, budget / rate.size), budget * rate / rate.sum()
    assert freshness(rate, even).mean() >= freshness(rate, in_proportion).mean() * (1 - 1e-13)
    assert age(rate, even).mean() <= age(rate, in_proportion).mean() * (1 + 1e-13)


@every_order
def test_the_ends_are_exact(order: str) -> None:
    rate, frequency = [0.0, 0.0, 0.0, 2.0, 2.0], [0.0, 1.0, np.inf, 0.0, np.inf]
    np.testing.assert_array_equal(freshness(rate, frequency, order), [1, 1, 1, 0, 1])
    np.testing.assert_array_equal(age(rate, frequency, order), [0, 0, 0, np.inf, 0])


def test_what_cho_reads_off_figure_6() -> None:
    assert freshness(1.0, 1.0) == pytest.approx(0.632, abs=5e-4)
    assert freshness(0.46, 1.0) > 0.8 > freshness(0.47, 1.0)
    assert freshness(1.0, 1.0) / freshness(1.0, 1.0, "memoryless") == pytest.approx(1.26, abs=5e-3)
    assert age(1.0, 1.0) / age(1.0, 1.0, "memoryless") == pytest.approx(0.264, abs=5e-4)
    assert age(1.0, 1.0) / age(1.0, 1.0, "shuffled") == pytest.approx(0.72, abs=5e-3)


def test_few_changes_per_refresh() -> None:
    assert age(1e-5, 1.0) == pytest.approx(1e-5 / 6, rel=1e-5)
    assert age(1e-5, 1.0, "shuffled") == pytest.approx(1e-5 / 4, rel=1e-5)


def test_a_simulated_shuffle_agrees() -> None:
    # Many rounds of a shuffled database of N items: the formula is the limit of large N.
    rng, items, rounds, rate = np.random.default_rng(11), 200, 200, 1.5
    slots = np.array([rng.permutation(items) for _ in range(rounds)])
    times = np.arange(rounds)[:, None] + slots / items
    gaps = np.diff(times, axis=0)
    fresh = (-np.expm1(-rate * gaps) / rate).sum() / gaps.sum()
    assert fresh == pytest.approx(freshness(rate, 1.0, "shuffled"), abs=3e-3)


@pytest.mark.parametrize("function", [freshness, age])
def test_storage_types(function: Any) -> None:
    assert isinstance(function(1.0, 2), float)
    single = np.array([1.0, 2.0], dtype=np.float32)
    assert function(single, single).dtype == np.float32
    assert function(single, 2.0).dtype == np.float32
    assert function(single, np.array([1.0, 2.0])).dtype == np.float64
    assert function(np.zeros((0, 3)), 1.0).shape == (0, 3)
    assert function(np.ones((3, 1)), np.ones(4)).shape == (3, 4)
    # Computed in float64: the best float32, not a float32 computation.
    np.testing.assert_array_equal(
        function(single, 2.0), function(single.astype(float), 2.0).astype(np.float32)
    )


@pytest.mark.parametrize("function", [freshness, age])
def test_the_deprecated_name_is_the_shuffled_order(function: Any) -> None:
    with pytest.warns(DeprecationWarning, match="two meanings: here it is 'shuffled'") as warned:
        assert function(1.0, 2.0, "random") == function(1.0, 2.0, "shuffled") != function(1.0, 2.0)
    assert warned[0].filename == __file__


@pytest.mark.parametrize("function", [freshness, age])
def test_wrong_input_is_refused_in_words(function: Any) -> None:
    assert function(1.0, 1.0, "purely random") == function(1.0, 1.0, "memoryless")
    with pytest.raises(UsageError, match="unknown order 'fixt': did you mean 'fixed'"):
        function(1.0, 1.0, "fixt")
    with pytest.raises(InputError, match=r"rate\[1\] is -1.0"):
        function([1.0, -1.0], 1.0)
    with pytest.raises(InputError, match="rate is inf"):
        function(np.inf, 1.0)
    with pytest.raises(InputError, match="frequency is nan"):
        function(1.0, np.nan)
    with pytest.raises(InputError, match=r"rate of shape \(2,\) and frequency of shape \(3,\) do not fit"):
        function([1.0, 2.0], [1.0, 2.0, 3.0])
