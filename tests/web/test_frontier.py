"""Plans of all budgets: spent whole, rising, and the optimum where rates are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.allocation.allocate import allocate
from afresh.values.arrays import Float64s
from afresh.web.frontier import Believed, Frontier

LADDER = np.geomspace(1e-3, 1e2, 18)


def believed(mass: Float64s, rates: Float64s) -> Believed:
    one = np.ones(len(mass))
    return Believed(
        LADDER, np.full(mass.shape[1], 1 / mass.shape[1]), mass, rates, one, one, 0.0 * one, np.inf * one
    )


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), objective=st.sampled_from(["freshness", "age", "lag"]))
def test_more_budget_is_never_less_fresh(seed: int, objective: str) -> None:
    mass = np.random.default_rng(seed).dirichlet(np.full(LADDER.size, 0.2), size=20)
    items = believed(mass, np.tile(LADDER, (20, 1)))
    frontier = Frontier(items, objective)
    budgets = np.geomspace(1e-2, 1e3, 21)
    plans = [frontier.at(budget) for budget in budgets.tolist()]
    assert [plan @ items.cost for plan, _ in plans] == pytest.approx(budgets.tolist(), rel=1e-6)
    fresh = np.array([items.fresh(plan) for plan, _ in plans])
    assert np.all(np.diff(fresh, axis=0) >= -1e-12)
    assert np.all(np.diff([np.count_nonzero(plan == 0) for plan, _ in plans]) <= 0)
    assert np.all(np.diff([level for _, level in plans]) <= 0)


@pytest.mark.parametrize("budget", [0.3, 3.0, 30.0])
def test_of_known_rates_it_is_the_optimal_plan(budget: float) -> None:
    rates = np.geomspace(0.05, 5.0, 30)
    items = believed(np.ones((30, 1)), rates[:, None])
    frequency, level = Frontier(items, "freshness").at(budget)
    best = allocate(rates, budget)
    assert np.mean(items.fresh(frequency)) == pytest.approx(best.freshness, abs=0.004)
    assert level == pytest.approx(best.multiplier, rel=0.1)


def test_what_does_not_pay_is_not_polled() -> None:
    items = believed(np.ones((3, 1)), np.array([[0.1], [1.0], [10.0]]))
    frequency, level = Frontier(items, "freshness", floor=0.5).at(1e6)
    assert level == 0.5
    assert frequency[2] == 0
    assert frequency[0] > 0
