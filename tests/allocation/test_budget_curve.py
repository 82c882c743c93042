"""The least budget for a target, and the whole curve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.allocation.allocate import POLICIES, allocate
from afresh.allocation.budget_curve import budget_curve, budget_for
from afresh.model.freshness import ORDERS
from afresh.values.errors import InfeasibleError, InputError, UsageError

rate_lists = st.lists(st.floats(-3, 3).map(lambda x: 10.0**x), min_size=1, max_size=10)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("order", ORDERS)
@given(rates=rate_lists, target=st.floats(0.01, 0.999))
@settings(deadline=None)
def test_the_plan_of_that_budget_has_the_freshness(
    policy: str, order: str, rates: list[float], target: float
) -> None:
    budget = budget_for(rates, target, policy=policy, order=order)
    plan = allocate(rates, budget, policy=policy, order=order)
    assert plan.freshness == pytest.approx(target, rel=1e-7)
    less = allocate(rates, budget * 0.99, policy=policy, order=order)
    assert less.freshness < target


@given(rates=rate_lists, target=st.floats(-4, 4).map(lambda x: 10.0**x))
@settings(deadline=None)
def test_the_plan_of_that_budget_has_the_age(rates: list[float], target: float) -> None:
    budget = budget_for(rates, target, objective="age")
    assert allocate(rates, budget, objective="age").age == pytest.approx(target, rel=1e-7)


@pytest.mark.parametrize("order", ORDERS)
def test_the_plan_of_that_budget_has_the_content_lag(order: str) -> None:
    rates, weights = [0.5, 3.0, 0.0, 9.0], [1.0, 4.0, 2.0, 0.5]
    budget = budget_for(rates, 0.2, target_is="lag", weights=weights, order=order)
    plan = allocate(rates, budget, objective="lag", weights=weights, order=order)
    share = {"fixed": 1 / 6, "shuffled": 1 / 4, "memoryless": 1.0}[order]
    lags = [
        weight * share * rate / frequency**2
        for rate, weight, frequency in zip(rates, weights, plan.frequency, strict=True)
        if rate
    ]
    assert sum(lags) / 4 == pytest.approx(0.2, rel=1e-9)
    assert budget < budget_for(rates, 0.2, target_is="lag", objective="age", weights=weights, order=order)


@pytest.mark.parametrize("order", ORDERS)
def test_an_age_is_reached_with_the_least_budget_unless_another_objective_is_named(order: str) -> None:
    rates = [1.0, 2.0, 3.0, 4.0, 5.0]
    least = budget_for(rates, 0.5, target_is="age", order=order)
    assert least == pytest.approx(budget_for(rates, 0.5, objective="age", order=order), rel=1e-12)
    assert least < 0.95 * budget_for(rates, 0.5, target_is="age", objective="freshness", order=order)


def test_age_under_another_objective() -> None:
    missed = budget_for([1.0, 5.0], 0.1, objective="missed", target_is="age")
    assert allocate([1.0, 5.0], missed, objective="missed").age == pytest.approx(0.1)
    assert missed > budget_for([1.0, 5.0], 0.1, objective="age")


@pytest.mark.parametrize(
    "options",
    [
        {"decay": "linear"},
        {"decay": "geometric"},
        {"decay": "weibull:0.5"},
        {"update_costs": 2.0, "costs": [1.0, 2.0, 3.0]},
        {"lower": 0.01, "upper": [3.0, 4.0, 50.0]},
        {"groups": ["a", "a", "b"], "caps": {"a": 3.5}},
    ],
    ids=str,
)
def test_every_kind_of_problem(options: dict[str, Any]) -> None:
    rates, target = [0.5, 1.0, 4.0], 0.62
    budget = budget_for(rates, target, **options)
    assert allocate(rates, budget, **options).freshness == pytest.approx(target, rel=1e-7)


def test_the_rule_of_thumb() -> None:
    """Fixed order needs r ≤ 0.46 for a freshness of 0.8."""
    assert 1 / budget_for([1.0], 0.8) == pytest.approx(0.4642, abs=1e-4)


def test_targets_that_cost_nothing() -> None:
    assert budget_for([1.0, 2.0], 0.0) == 0
    assert budget_for([0.0, 0.0], 1.0) == 0
    assert budget_for([], 0.9) == 0
    assert budget_for([0.0, 0.0, 1.0], 0.6) == 0
    assert budget_for([1.0], 0.5, lower=2.0) == 2.0  # the floor does it already


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        (1.0, {}, "no finite budget reaches freshness 1: 1 is only the limit"),
        (0.0, {"objective": "age"}, "no finite budget reaches age 0: 0 is only the limit"),
        (0.9, {"upper": 1.0}, "no budget reaches freshness 0.9: 0.632121 is the best there is"),
        (0.9, {"groups": [0], "caps": [1.0]}, "0.632121 is the best there is"),
    ],
)
def test_targets_out_of_reach(target: float, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InfeasibleError, match=message):
        budget_for([1.0], target, **options)


def test_wrong_targets() -> None:
    with pytest.raises(UsageError, match=r"a freshness of 1\.2 is no target: give a number from 0 to 1"):
        budget_for([1.0], 1.2)
    with pytest.raises(UsageError, match="an age of -1 is no target"):
        budget_for([1.0], -1.0, target_is="age")
    with pytest.raises(UsageError, match="a content lag of -1 is no target"):
        budget_for([1.0], -1.0, target_is="lag")
    with pytest.raises(UsageError, match="unknown target 'agee': did you mean 'age'"):
        budget_for([1.0], 0.5, target_is="agee")


def test_curve_by_default_spans_what_can_be_had() -> None:
    curve = budget_curve([1.0, 2.0, 3.0, 4.0, 5.0])
    assert curve.freshness[0] == pytest.approx(0.01)
    assert curve.freshness[-1] == pytest.approx(0.99)
    assert (np.diff(curve.freshness) > 0).all()
    assert (np.diff(curve.marginal) <= 0).all()
    assert (np.diff(curve.dropped) <= 0).all()
    # The marginal is the slope: of the weighted sum, five times the mean.
    slope = 5 * np.diff(curve.freshness) / np.diff(curve.budget)
    assert ((curve.marginal[1:] <= slope * (1 + 1e-9)) & (slope <= curve.marginal[:-1] * (1 + 1e-9))).all()


def test_curve_at_given_budgets_is_the_plan() -> None:
    options: dict[str, Any] = {"groups": [0, 0, 1], "caps": [1.0, 9.0], "objective": "age"}
    curve = budget_curve([1.0, 2.0, 3.0], [0.0, 1.0, 3.0, 50.0], **options)
    for row, budget in enumerate([0.0, 1.0, 3.0, 50.0]):
        plan = allocate([1.0, 2.0, 3.0], budget, **options)
        assert curve.freshness[row] == pytest.approx(plan.freshness)
        assert curve.age[row] == pytest.approx(plan.age)
        assert curve.marginal[row] == pytest.approx(plan.multiplier)
        assert curve.dropped[row] == plan.dropped


@pytest.mark.parametrize("policy", POLICIES)
def test_curve_of_every_policy_is_its_plan(policy: str) -> None:
    curve = budget_curve([1.0, 2.0, 0.0], [0.0, 1.0, 30.0], policy=policy)
    for row, budget in enumerate([0.0, 1.0, 30.0]):
        plan = allocate([1.0, 2.0, 0.0], budget, policy=policy)
        found = (curve.freshness[row], curve.age[row], curve.marginal[row], curve.dropped[row])
        assert found == pytest.approx((plan.freshness, plan.age, plan.multiplier, plan.dropped))


def test_curve_of_nothing() -> None:
    for rates in ([], [0.0, 0.0]):
        curve = budget_curve(rates)
        assert curve.budget.tolist() == [0.0]
        assert curve.freshness.tolist() == [1.0]
    with pytest.raises(InputError, match="budget"):
        budget_curve([1.0], [-1.0])


@pytest.mark.parametrize("decay", ["linear", "weibull:0.5", "weibull:3", "lomax:1.5"])
def test_perfect_freshness_has_no_finite_budget_under_smooth_decay(decay: str) -> None:
    with pytest.raises(InfeasibleError, match="no finite budget"):
        budget_for([1, 2], 1, decay=decay)


def test_perfect_freshness_is_reached_where_changes_come_in_steps() -> None:
    assert budget_for([1, 2], 1, decay="geometric") == pytest.approx(2)
    assert budget_for([1, 2], 0, target_is="age", decay="geometric") == pytest.approx(2)
