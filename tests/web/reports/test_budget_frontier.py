"""Plans of all budgets: spent whole, rising, and the optimum where rates are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.allocation.allocate import allocate
from afresh.engine.reporting.plan_sample import PlanSample, RatePosteriors
from afresh.values.arrays import Float64s
from afresh.web.reports.budget_frontier import BudgetFrontier

LADDER = np.geomspace(1e-3, 1e2, 18)


def sample_of(mass: Float64s, rates: Float64s) -> PlanSample:
    """Return items of weight and cost 1 with these beliefs about their rates."""
    one = np.ones(len(mass))
    prior = np.full(mass.shape[1], 1 / mass.shape[1])
    return PlanSample(
        ids=np.arange(len(mass)),
        posteriors=RatePosteriors(LADDER, prior, mass, rates),
        weight=one,
        value_per_cost=one,
        cost=one,
        interval_s=one,
        min_interval_s=0.0 * one,
        max_interval_s=np.inf * one,
    )


@settings(deadline=None)
@given(seed=st.integers(0, 10_000), objective=st.sampled_from(["freshness", "age", "lag"]))
def test_more_budget_is_never_less_fresh(seed: int, objective: str) -> None:
    mass = np.random.default_rng(seed).dirichlet(np.full(LADDER.size, 0.2), size=20)
    items = sample_of(mass, np.tile(LADDER, (20, 1)))
    frontier = BudgetFrontier(items, objective)
    budgets = np.geomspace(1e-2, 1e3, 21)
    plans = [frontier.plan_at(budget) for budget in budgets.tolist()]
    assert [plan @ items.cost for plan, _ in plans] == pytest.approx(budgets.tolist(), rel=1e-6)
    fresh = np.array([items.posteriors.mean_freshness(plan) for plan, _ in plans])
    assert np.all(np.diff(fresh, axis=0) >= -1e-12)
    assert np.all(np.diff([np.count_nonzero(plan == 0) for plan, _ in plans]) <= 0)
    assert np.all(np.diff([price for _, price in plans]) <= 0)


@pytest.mark.parametrize("budget", [0.3, 3.0, 30.0])
def test_of_known_rates_it_is_the_optimal_plan(budget: float) -> None:
    rates = np.geomspace(0.05, 5.0, 30)
    items = sample_of(np.ones((30, 1)), rates[:, None])
    frequency, price = BudgetFrontier(items, "freshness").plan_at(budget)
    best = allocate(rates, budget)
    assert np.mean(items.posteriors.mean_freshness(frequency)) == pytest.approx(best.freshness, abs=0.004)
    assert price == pytest.approx(best.multiplier, rel=0.1)


def test_what_does_not_pay_is_not_polled() -> None:
    items = sample_of(np.ones((3, 1)), np.array([[0.1], [1.0], [10.0]]))
    frequency, price = BudgetFrontier(items, "freshness", least_price=0.5).plan_at(1e6)
    assert price == 0.5
    assert frequency[2] == 0
    assert frequency[0] > 0
