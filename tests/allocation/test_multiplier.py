"""Floors, ceilings and group caps: against other solvers, and where they cannot be met."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.allocation.allocate import allocate
from afresh.allocation.explain import CAPPED, KEPT, explain_parts
from afresh.values.errors import InfeasibleError, InputError, UsageError

RATES = np.array([0.5, 1.0, 2.0, 3.0, 4.0, 8.0])
WEIGHTS = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 5.0])
COSTS = np.array([1.0, 1.0, 2.0, 1.0, 3.0, 1.0])


def freshness(frequency: np.ndarray) -> float:
    f = np.maximum(frequency, 1e-12)
    return float(WEIGHTS @ (f * -np.expm1(-RATES / f) / RATES))


def rival(budget: float, low: Any, high: Any, rows: list[tuple[np.ndarray, float]]) -> float:
    """The best freshness that SLSQP finds from several starts."""
    from scipy import optimize

    minimize: Any = optimize.minimize

    limits = [(COSTS, budget), *rows]
    best = 0.0
    for share in (0.3, 0.7):
        start = np.clip(np.full(6, share * budget / COSTS.sum()), low, high)
        found = minimize(
            lambda f: -freshness(f),
            start,
            method="SLSQP",
            bounds=list(zip(np.broadcast_to(low, 6), np.broadcast_to(high, 6), strict=True)),
            constraints=[{"type": "ineq", "fun": lambda f, a=a, b=b: b - a @ f} for a, b in limits],
            options={"ftol": 1e-13, "maxiter": 1000},
        )
        assert all(a @ found.x <= b * (1 + 1e-7) + 1e-9 for a, b in limits)
        best = max(best, freshness(found.x))
    return best


@pytest.mark.parametrize("budget", [4.0, 8.0, 15.0])
def test_bounds_against_slsqp(budget: float) -> None:
    low, high = np.array([0.1, 0, 0, 0.5, 0, 0.2]), np.array([5, 1.0, 0.8, 5, 5, 2.0])
    plan = allocate(RATES, budget, weights=WEIGHTS, costs=COSTS, lower=low, upper=high)
    assert plan.spend == pytest.approx(budget, rel=1e-9)
    assert ((plan.frequency >= low) & (plan.frequency <= high)).all()
    assert freshness(plan.frequency) == pytest.approx(rival(budget, low, high, []), rel=1e-6)
    assert plan.gap < 1e-10


@pytest.mark.parametrize("budget", [3.0, 8.0, 15.0])
def test_caps_and_bounds_against_slsqp(budget: float) -> None:
    groups, caps = ["a", "a", "b", "b", "b", "c"], {"a": 1.5, "b": 2.5}
    plan = allocate(
        RATES, budget, weights=WEIGHTS, costs=COSTS, upper=4.0, lower=0.05, groups=groups, caps=caps
    )
    a, b = (np.where(np.array(groups) == name, COSTS, 0.0) for name in "ab")
    assert a @ plan.frequency <= 1.5 * (1 + 1e-9)
    assert b @ plan.frequency <= 2.5 * (1 + 1e-9)
    best = rival(budget, 0.05, 4.0, [(a, 1.5), (b, 2.5)])
    assert freshness(plan.frequency) == pytest.approx(best, rel=1e-6)
    assert plan.gap < 1e-10


@st.composite
def grouped(draw: st.DrawFn) -> dict[str, Any]:
    n, groups = draw(st.integers(2, 30)), draw(st.integers(1, 6))

    def column(width: float) -> np.ndarray:
        return 10.0 ** np.array(draw(st.lists(st.floats(-width, width), min_size=n, max_size=n)))

    rates, costs = column(3.0), column(1.0)
    scale = float(rates @ costs)
    caps = 10.0 ** np.array(draw(st.lists(st.floats(-4, 1), min_size=groups, max_size=groups))) * scale
    numbers = draw(st.lists(st.integers(0, groups - 1), min_size=n, max_size=n))
    budget = scale * 10.0 ** draw(st.floats(-3, 1))
    return {
        "rates": rates,
        "budget": budget,
        "weights": column(1.0),
        "costs": costs,
        "groups": numbers,
        "caps": caps,
    }


@pytest.mark.parametrize("objective", ["freshness", "age", "missed"])
@given(case=grouped())
@settings(deadline=None)
def test_caps_hold_and_the_gap_proves_the_plan(objective: str, case: dict[str, Any]) -> None:
    """The dual bound is a proof by itself: whatever the search did, no plan is better."""
    rates, budget = case.pop("rates"), case.pop("budget")
    plan = allocate(rates, budget, objective=objective, **case)
    spent = np.bincount(case["groups"], weights=case["costs"] * plan.frequency, minlength=len(case["caps"]))
    assert (spent <= case["caps"] * (1 + 1e-9)).all()
    assert plan.spend <= budget * (1 + 1e-9)
    reachable = min(budget, case["caps"][np.unique(case["groups"])].sum())
    assert plan.spend == pytest.approx(reachable, rel=1e-9)
    why = explain_parts(rates, plan, objective=objective, **case)(slice(None))
    worth = float((why.marginal * case["costs"] * plan.frequency).sum())
    assert 0 <= plan.gap <= 1e-8 * worth
    kept = why.status == KEPT
    np.testing.assert_allclose(why.marginal[kept], plan.multiplier, rtol=1e-6)


def test_thousands_of_groups() -> None:
    rng = np.random.default_rng(5)
    groups = rng.integers(0, 2000, 20_000)
    rates, weights = rng.lognormal(0, 2, 20_000), rng.lognormal(0, 1, 20_000)
    caps = rng.lognormal(-1, 1, 2000)
    plan = allocate(rates, 600.0, weights=weights, groups=groups, caps=caps.tolist())
    spent = np.bincount(groups, weights=plan.frequency, minlength=2000)
    assert (spent <= caps * (1 + 1e-9)).all()
    assert plan.spend == pytest.approx(600.0, rel=1e-9)
    assert plan.gap < 1e-9 * weights.sum()
    assert 100 < (spent > caps * (1 - 1e-9)).sum() < 2000


def test_a_slack_cap_changes_nothing() -> None:
    free = allocate(RATES, 8.0)
    capped = allocate(RATES, 8.0, groups=list("aabbcc"), caps={"a": 100.0, "b": np.inf})
    np.testing.assert_array_equal(capped.frequency, free.frequency)


def test_numbered_groups_take_a_list_of_caps() -> None:
    by_list = allocate(RATES, 8.0, groups=[0, 0, 1, 1, 2, 2], caps=[0.5, 1.0, 9.0])
    by_name = allocate(RATES, 8.0, groups=list("aabbcc"), caps={"a": 0.5, "b": 1.0, "c": 9.0})
    np.testing.assert_array_equal(by_list.frequency, by_name.frequency)


def test_missing_labels_are_free() -> None:
    plan = allocate([1.0, 1.0, 1.0], 3.0, groups=["a", None, None], caps={"a": 0.5})
    np.testing.assert_allclose(plan.frequency, [0.5, 1.25, 1.25])


def test_a_cap_of_nothing() -> None:
    plan = allocate([1.0, 2.0], 3.0, groups=["a", "b"], caps={"a": 0.0})
    np.testing.assert_allclose(plan.frequency, [0.0, 3.0], rtol=1e-9)
    assert (
        explain_parts([1.0, 2.0], plan, groups=["a", "b"], caps={"a": 0.0})(slice(None)).status[0] == CAPPED
    )


@pytest.mark.parametrize("objective", ["freshness", "age"])
def test_floors_that_use_up_a_cap(objective: str) -> None:
    for floor in (0.0, 0.25):
        options: dict[str, Any] = {"lower": floor, "groups": ["a", "a", "b"], "caps": {"a": 2 * floor}}
        plan = allocate([1.0, 2.0, 3.0], 3.0, objective=objective, **options)
        np.testing.assert_allclose(plan.frequency, [floor, floor, 3.0 - 2 * floor], rtol=1e-9)
        assert plan.gap < 1e-9


def test_budget_beyond_ceilings_and_caps_is_left_unspent() -> None:
    ceilings = allocate([1.0, 2.0, 0.0], 10.0, upper=[1.0, 2.0, 5.0])
    np.testing.assert_array_equal(ceilings.frequency, [1.0, 2.0, 0.0])
    assert (ceilings.spend, ceilings.multiplier, ceilings.gap) == (3.0, 0.0, 0.0)
    caps = allocate([1.0, 2.0], 10.0, groups=["a", "a"], caps={"a": 4.0})
    assert caps.spend == pytest.approx(4.0, rel=1e-9)
    assert caps.multiplier == 0
    assert caps.gap < 1e-9


def test_a_floor_is_a_floor_for_static_and_unweighted_items_too() -> None:
    plan = allocate([0.0, 1.0, 1.0], 3.0, weights=[1.0, 0.0, 1.0], lower=[0.5, 0.25, 0.0])
    np.testing.assert_allclose(plan.frequency, [0.5, 0.25, 2.25], rtol=1e-9)


def test_floors_that_use_up_the_budget() -> None:
    plan = allocate([1.0, 2.0], 3.0, lower=[1.0, 2.0])
    np.testing.assert_array_equal(plan.frequency, [1.0, 2.0])
    assert plan.gap == 0
    assert plan.multiplier == pytest.approx(0.2642411, rel=1e-6)  # g(1)/1: what the next unit would buy


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lower": [2.0, 2.5]}, "the lower bounds need a budget of 4.5: 1.5 more than 3"),
        ({"lower": [0.0, 2.0], "upper": 1.5}, "item 1 has lower bound 2 above upper bound 1.5, by 0.5"),
        (
            {"lower": 1.0, "groups": ["x", "x"], "caps": {"x": 1.25}},
            "group 'x' needs 2 for its lower bounds, 0.75 more than its cap of 1.25",
        ),
    ],
)
def test_infeasible_bounds_say_by_how_much(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InfeasibleError) as error:
        allocate([1.0, 2.0], 3.0, **options)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (
            {"groups": ["ham", "spam"], "caps": {"spma": 1.0}},
            InputError,
            "'spma' in caps: did you mean 'spam'",
        ),
        ({"caps": {"a": 1.0}}, UsageError, "caps need groups"),
        ({"groups": ["a"], "caps": {"a": 1.0}}, InputError, "groups has 1 labels for 2 items"),
        ({"groups": [0, 2], "caps": [1.0, 1.0]}, InputError, "group 2 has no place in a list of 2 caps"),
        ({"groups": [0, 1], "caps": [1.0, -1.0]}, InputError, "cap"),
        ({"policy": "uniform", "lower": 0.1}, UsageError, "policy 'uniform' takes no bounds and no caps"),
        ({"policy": "proportional", "upper": 9.0}, UsageError, "policy 'proportional' takes no bounds"),
        ({"upper": [1.0, np.nan]}, InputError, "upper"),
        ({"lower": -0.1}, InputError, "lower"),
    ],
)
def test_wrong_bounds_and_caps(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        allocate([1.0, 2.0], 3.0, **options)
