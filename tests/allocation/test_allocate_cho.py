"""Cho & Garcia-Molina 2000: their tables as recomputed, and their theorems for any rates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.allocation.allocate import allocate

RATES = [1, 2, 3, 4, 5]
rate_lists = st.lists(st.floats(-6, 6).map(lambda x: 10.0**x), min_size=1, max_size=20)


def test_table_5_freshness() -> None:
    plan = allocate(RATES, 5)
    np.testing.assert_allclose(plan.frequency, [1.1499, 1.3584, 1.3538, 1.1379, 0], atol=5e-5)
    assert plan.dropped == 1
    assert plan.age == np.inf


def test_table_5_age() -> None:
    plan = allocate(RATES, 5, objective="age")
    np.testing.assert_allclose(plan.frequency, [0.8349, 0.9679, 1.0335, 1.0706, 1.0931], atol=5e-5)


@pytest.fixture(scope="module")
def web() -> tuple[np.ndarray, np.ndarray, float]:
    """Table 6: pages that change every 1, 7, 30, 120, 365 days, one refresh a page in 30 days."""
    return 1 / np.array([1.0, 7, 30, 120, 365]), np.array([23.0, 15, 16, 16, 30]) / 100, 1 / 30


@pytest.mark.parametrize(
    ("policy", "expected"), [("proportional", 0.1287), ("uniform", 0.5729), ("optimal", 0.6162)]
)
def test_table_6_freshness(web: tuple[np.ndarray, np.ndarray, float], policy: str, expected: float) -> None:
    rates, shares, budget = web
    plan = allocate(rates, budget, weights=shares, costs=shares, policy=policy)
    assert plan.freshness == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("policy", "expected"), [("proportional", 406.0), ("uniform", 5.612), ("optimal", 4.299)]
)
def test_table_6_age(web: tuple[np.ndarray, np.ndarray, float], policy: str, expected: float) -> None:
    rates, shares, budget = web
    plan = allocate(rates, budget, weights=shares, costs=shares, policy=policy, objective="age")
    assert plan.age == pytest.approx(expected, rel=2e-4)


@given(rates=rate_lists, effort=st.floats(-3, 3).map(lambda x: 10.0**x))
@settings(deadline=None)
def test_uniform_is_never_below_proportional(rates: list[float], effort: float) -> None:
    """Theorem 4.1 and its kin for age: whatever the rates."""
    budget = effort * sum(rates)
    uniform = allocate(rates, budget, policy="uniform")
    proportional = allocate(rates, budget, policy="proportional")
    assert uniform.freshness >= proportional.freshness - 1e-12
    assert uniform.age <= proportional.age * (1 + 1e-12)


def test_one_curve_for_every_database() -> None:
    """Figure 10: in units of w/(cμ) all plans lie on one curve, with its peak at r* = 1.7933."""
    rates = np.linspace(0.005, 3, 600)
    shapes = []
    for scale, budget in ((1.0, 100.0), (7.0, 50.0)):
        plan = allocate(rates * scale, budget * scale)
        x = rates * scale * plan.multiplier
        shapes.append((x, plan.frequency * plan.multiplier))
        peak = int(plan.frequency.argmax())
        assert rates[peak] * scale / plan.frequency[peak] == pytest.approx(1.7933, rel=0.01)
        assert x[peak] == pytest.approx(0.5352, rel=0.01)
        assert (plan.frequency[x >= 1] == 0).all()
        assert (plan.frequency[x < 0.999] > 0).all()
    (one, first), (two, second) = shapes
    inner = (two > 0.02) & (two < min(0.98, one[-1]))
    np.testing.assert_allclose(second[inner], np.interp(two[inner], one, first), rtol=2e-3)


def test_twice_the_weight_is_not_twice_the_visits() -> None:
    plan = allocate([1.0, 1.0], 2.0, weights=[1.0, 2.0])
    assert 1.0 < plan.frequency[1] / plan.frequency[0] < 2.0
    fast = allocate([4.0, 4.0], 2.0, weights=[1.0, 2.0])
    assert fast.frequency[0] == 0
