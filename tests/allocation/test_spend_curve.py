"""Shards that share a budget by their spend curves are polled as one planner over all items would."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.allocation.allocate import allocate
from afresh.allocation.spend_curve import SpendCurve, price_grid, share_budget
from afresh.values.arrays import Float64s


def curve(rates: Float64s, price: float) -> SpendCurve:
    """The curve of one shard of items whose rates are known."""
    prices = price_grid(price)
    expected = np.geomspace(1e-6, 60.0, 20_000)
    gain = -np.expm1(-expected) - expected * np.exp(-expected)
    wanted = prices * rates[:, None]
    frequency = np.where(wanted < 1.0, rates[:, None] / np.interp(wanted, gain, expected), 0.0)
    return SpendCurve(prices, frequency.sum(axis=0), np.zeros_like(prices))


@given(st.integers(0, 2**32), st.floats(0.2, 5.0))
def test_the_common_price_is_that_of_one_plan_over_all_items(seed: int, each: float) -> None:
    rng = np.random.default_rng(seed)
    shards = [np.exp(rng.normal(rng.normal(), 1.5, 1000)) for _ in range(4)]
    best = allocate(np.concatenate(shards), 4000.0 * each)
    shared = share_budget([curve(rates, 1.3 * best.multiplier) for rates in shards], 4000.0 * each)
    assert shared.price == pytest.approx(best.multiplier, rel=0.01)
    assert shared.spend.sum() == pytest.approx(4000.0 * each)
    wanted = best.frequency.reshape(4, 1000).sum(axis=1)
    np.testing.assert_allclose(shared.spend, wanted, rtol=0.02)


def test_the_fixed_part_is_paid_at_any_price() -> None:
    prices = np.array([1.0, 2.0, 4.0])
    curves = [
        SpendCurve(prices, 8.0 / prices, prices * 0, fixed=1.0),
        SpendCurve(prices, 8.0 / prices, prices * 0),
    ]
    shared = share_budget(curves, 9.0)
    assert shared.price == pytest.approx(2.0)
    np.testing.assert_allclose(shared.spend, [5.0, 4.0])


@pytest.mark.parametrize("budget", [0.1, 100.0])
def test_a_budget_that_no_price_spends_is_shared_in_proportion(budget: float) -> None:
    prices = np.array([1.0, 2.0])
    curves = [SpendCurve(prices, each / prices, prices * 0) for each in (1.0, 3.0)]
    np.testing.assert_allclose(share_budget(curves, budget).spend, [budget / 4, 3 * budget / 4])


def test_shards_that_want_nothing_get_equal_shares() -> None:
    nothing = SpendCurve(np.array([1.0]), np.array([0.0]), np.array([0.0]))
    np.testing.assert_allclose(share_budget([nothing, nothing], 2.0).spend, [1.0, 1.0])
    assert share_budget([], 2.0).spend.size == 0


def test_a_step_in_a_curve_still_spends_the_budget() -> None:
    prices = np.array([1.0, 2.0, 4.0])
    steep = SpendCurve(prices, np.array([10.0, 10.0, 0.0]), prices * 0)
    assert share_budget([steep, steep], 5.0).spend.sum() == pytest.approx(5.0)
