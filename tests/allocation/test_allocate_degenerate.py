"""The corners: nothing to do, nothing to spend, too little, too much, too far apart, and wrong input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from afresh.allocation.allocate import POLICIES, allocate
from afresh.allocation.budget_curve import budget_for
from afresh.allocation.objectives import OBJECTIVES
from afresh.model.freshness import ORDERS, age, freshness
from afresh.values.errors import InputError, UsageError

every = pytest.mark.parametrize("key", sorted(OBJECTIVES), ids="-".join)
policies = pytest.mark.parametrize("policy", POLICIES)


@every
@policies
def test_no_items(key: tuple[str, str], policy: str) -> None:
    plan = allocate([], 5.0, objective=key[0], order=key[1], policy=policy)
    assert plan.frequency.shape == (0,)
    assert (plan.spend, plan.gap, plan.freshness, plan.age, plan.dropped) == (0, 0, 1, 0, 0)
    assert plan.multiplier == 0


@every
@policies
def test_one_item(key: tuple[str, str], policy: str) -> None:
    plan = allocate([2.0], 3.0, costs=[1.5], objective=key[0], order=key[1], policy=policy)
    np.testing.assert_allclose(plan.frequency, [2.0], rtol=1e-9)


@every
@policies
@pytest.mark.parametrize("budget", [1e-9, 1e-3, 0.1, 1.0, 1e3, 1e9])
def test_equal_items_share_equally(key: tuple[str, str], policy: str, budget: float) -> None:
    """Tiny budgets jump: beyond r ≈ 37 no price has just this spend, so the plan is interpolated."""
    plan = allocate(np.full(7, 3.0), budget, objective=key[0], order=key[1], policy=policy)
    np.testing.assert_allclose(plan.frequency, budget / 7, rtol=1e-9)
    assert plan.dropped == 0


@pytest.mark.parametrize("rate", [0.0075648595108416886, 0.1, 1 / 3, 7.7, 1e9 / 3])
@pytest.mark.parametrize("share", [1e-2, 1e-9, 1e-30])
def test_a_single_item_at_a_tiny_budget(rate: float, share: float) -> None:
    """At the highest price rounding may leave the item in: the search must look just above it."""
    plan = allocate([rate], share * rate)
    assert plan.frequency[0] == pytest.approx(share * rate, rel=1e-9)
    assert plan.freshness == pytest.approx(share, rel=1e-9)


@every
@policies
def test_budget_of_nothing(key: tuple[str, str], policy: str) -> None:
    plan = allocate([1.0, 2.0, 0.0], 0.0, objective=key[0], order=key[1], policy=policy)
    assert (plan.frequency == 0).all()
    assert (plan.spend, plan.gap, plan.dropped) == (0, 0, 2)
    assert plan.freshness == pytest.approx(1 / 3)
    assert plan.age == np.inf
    if key[0] == "freshness" and policy == "optimal":
        assert plan.multiplier == 1.0  # the first refresh goes to the slowest item
    assert plan.multiplier > 0


@every
def test_only_static_or_unweighted_items(key: tuple[str, str]) -> None:
    plan = allocate([0.0, 3.0], 1.0, weights=[1.0, 0.0], objective=key[0], order=key[1])
    assert (plan.frequency == 0).all()
    assert (plan.spend, plan.multiplier, plan.gap, plan.dropped) == (0, 0, 0, 0)
    assert (plan.freshness, plan.age) == (1, 0)


@every
def test_no_weight_at_all(key: tuple[str, str]) -> None:
    plan = allocate([1.0, 3.0], 1.0, weights=0.0, objective=key[0], order=key[1])
    assert (plan.spend, plan.freshness, plan.age) == (0, 1, 0)


@every
@policies
@pytest.mark.parametrize("budget", [1e-8, 1.0, 1e8, 1e14])
def test_twenty_decades(key: tuple[str, str], policy: str, budget: float) -> None:
    rates = np.logspace(-10, 10, 21)
    weights, costs = np.logspace(5, -5, 21), np.logspace(-3, 3, 21)
    options: dict[str, Any] = {"weights": weights, "costs": costs, "objective": key[0], "order": key[1]}
    plan = allocate(rates, budget, policy=policy, **options)
    assert plan.spend == pytest.approx(budget, rel=1e-9)
    assert np.isfinite(plan.frequency).all()
    assert 0 <= plan.gap < np.inf


def test_uniform_serves_static_items_too() -> None:
    """Cho's uniform knows no rates: every item is refreshed equally often."""
    plan = allocate([0.0, 1.0, 9.0], 6.0, costs=[1.0, 2.0, 3.0], policy="uniform")
    np.testing.assert_allclose(plan.frequency, 1.0)
    plan = allocate([0.0, 1.0, 9.0], 6.0, policy="proportional")
    np.testing.assert_allclose(plan.frequency, [0.0, 0.6, 5.4])


def test_the_deprecated_name_is_the_memoryless_order_in_plans() -> None:
    with pytest.warns(DeprecationWarning, match="two meanings: here it is 'memoryless'") as warned:
        old = allocate([1.0, 2.0], 2.0, order="random")
    assert warned[0].filename == __file__
    np.testing.assert_array_equal(old.frequency, allocate([1.0, 2.0], 2.0, order="memoryless").frequency)
    with pytest.warns(DeprecationWarning, match="memoryless"):
        budget = budget_for([1.0, 2.0], 0.5, order="random")
    assert budget == budget_for([1.0, 2.0], 0.5, order="memoryless")


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_means_the_same_in_plans_and_in_the_formulas(order: str) -> None:
    plan = allocate([1.0, 3.0], 4.0, order=order, policy="uniform")
    assert plan.freshness == pytest.approx(freshness([1.0, 3.0], 2.0, order).mean(), rel=1e-14)
    assert plan.age == pytest.approx(age([1.0, 3.0], 2.0, order).mean(), rel=1e-14)


@pytest.mark.parametrize(
    ("rates", "budget", "options", "kind", "message"),
    [
        ([1.0, -1.0], 1.0, {}, InputError, r"rate\[1\] is -1"),
        ([1.0, np.nan], 1.0, {}, InputError, r"rate\[1\] is nan"),
        ([np.inf], 1.0, {}, InputError, r"rate\[0\] is inf"),
        (["x"], 1.0, {}, InputError, "rate is not a list of numbers"),
        ([[1.0]], 1.0, {}, InputError, "rate has 2 dimensions"),
        (1.0, 1.0, {}, InputError, "rate has 0 dimensions"),
        ([1.0], -1.0, {}, InputError, "budget is -1"),
        ([1.0], np.inf, {}, InputError, "budget is inf"),
        ([1.0], [1.0, 2.0], {}, InputError, "budget must be one number"),
        ([1.0], 1.0, {"weights": [1.0, 2.0]}, InputError, "weight has 2 values for 1 items"),
        ([1.0], 1.0, {"weights": [-1.0]}, InputError, r"weight\[0\] is -1"),
        ([1.0, 1.0], 1.0, {"costs": [1.0, 0.0]}, InputError, r"cost\[1\] is 0"),
        ([1.0], 1.0, {"policy": "best"}, UsageError, "unknown policy 'best'"),
        ([1.0], 1.0, {"objective": "freshnes"}, UsageError, "did you mean 'freshness'"),
        ([1.0], 1.0, {"order": "shufled"}, UsageError, "did you mean 'shuffled'"),
        ([1.0], 1.0, {"update_costs": 1.0, "objective": "age"}, UsageError, "update costs need objective"),
        ([1.0], 1.0, {"update_costs": 1.0, "order": "shuffled"}, UsageError, "update costs need objective"),
    ],
)
def test_wrong_input(
    rates: Any, budget: Any, options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message) as error:
        allocate(rates, budget, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("rates", [[1e-320, 1.0], [1e-200, 1.0], [1.0, 1e160]])
def test_rates_beyond_all_reason_are_refused_not_turned_into_nan(rates: list[float]) -> None:
    with pytest.raises(InputError, match=r"must be 0 or from 1e-50 to 1e\+50; choose another unit"):
        allocate(rates, 5, objective="age")


@pytest.mark.parametrize("objective", ["freshness", "age", "harmonic", "missed", "lag"])
def test_a_hundred_decades_of_rates_give_finite_plans(objective: str) -> None:
    plan = allocate([1e-50, 1.0, 1e50], 5, objective=objective)
    assert np.isfinite(plan.frequency).all()
    assert plan.spend == pytest.approx(5, rel=1e-9)


def test_exponential_by_name_is_no_special_decay() -> None:
    plain = allocate([1, 2], 3, update_costs=[0.5, 1])
    named = allocate([1, 2], 3, update_costs=[0.5, 1], decay=["exponential", "exponential"])
    np.testing.assert_array_equal(plain.frequency, named.frequency)
