"""Items whose staleness is seen: a knapsack, and no plan that has to look does better."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from afresh.allocation.allocate import allocate
from afresh.allocation.watched import allocate_watched
from afresh.values.errors import InputError

numbers = st.floats(1e-3, 1e3)
items = st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=8)


@settings(max_examples=80, deadline=None)
@given(items, numbers)
def test_it_is_the_optimum_of_the_linear_program(
    rows: list[tuple[float, float, float]], budget: float
) -> None:
    rate, weight, cost = np.array(rows).T
    plan = allocate_watched(rate, budget, weights=weight, costs=cost)
    # in shares of the changes met, so that the program is well scaled
    best = linprog(-weight, A_ub=[cost * rate / budget], b_ub=[1.0], bounds=[(0, 1)] * len(rows))
    assert best.fun is not None
    assert float(weight @ plan.freshness) == pytest.approx(-best.fun, rel=1e-6)
    assert plan.spend == pytest.approx(min(budget, float(cost @ rate)))


@settings(max_examples=80, deadline=None)
@given(items, numbers)
def test_looking_first_is_never_better(rows: list[tuple[float, float, float]], budget: float) -> None:
    rate, weight, cost = np.array(rows).T
    seen = allocate_watched(rate, budget, weights=weight, costs=cost)
    unseen = allocate(rate, budget, weights=weight, costs=cost)
    assert float(weight @ seen.freshness) / weight.sum() >= unseen.freshness - 1e-9


@settings(max_examples=80, deadline=None)
@given(items, numbers)
def test_the_price_parts_what_is_refreshed_from_what_is_not(
    rows: list[tuple[float, float, float]], budget: float
) -> None:
    rate, weight, cost = np.array(rows).T
    plan = allocate_watched(rate, budget, weights=weight, costs=cost)
    assert np.all(plan.freshness[plan.worth > plan.price] == 1)
    assert np.all(plan.freshness[plan.worth < plan.price] == 0)


def test_what_never_changes_or_weighs_nothing_costs_nothing() -> None:
    plan = allocate_watched([0.0, 1.0, 1.0], 10.0, weights=[1.0, 0.0, 1.0])
    assert plan.frequency.tolist() == [0.0, 0.0, 1.0]
    assert plan.freshness.tolist() == [1.0, 0.0, 1.0]
    assert (plan.price, plan.spend) == (0.0, 1.0)
    assert allocate_watched([1.0], 0.0).freshness.tolist() == [0.0]
    assert allocate_watched([1e-300, 1e300], 1.0).freshness.tolist() == [1.0, pytest.approx(1e-300)]


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="budget is -1"):
        allocate_watched([1.0], -1.0)
    with pytest.raises(InputError, match="a cost is 0"):
        allocate_watched([1.0], 1.0, costs=0.0)
