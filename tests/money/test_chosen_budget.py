"""The budget chosen by net income: each item at its best interval, nothing gained by more or less."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.allocation.allocate import allocate
from afresh.money.best_interval import best_interval
from afresh.money.chosen_budget import choose_budget
from afresh.money.total_refreshes import best_total_refreshes
from afresh.papers.razniewski.incomes import net_income
from afresh.values.errors import InputError

positive = st.floats(1e-3, 1e3)


@settings(deadline=None)
@given(st.lists(st.tuples(positive, positive, positive), min_size=1, max_size=6), positive)
def test_every_item_is_at_its_own_best_interval(rows: list[tuple[float, float, float]], stale: float) -> None:
    rate, benefit, cost = np.array(rows).T
    chosen = choose_budget(rate, benefit, cost, stale_cost=stale)
    for at in range(len(rows)):
        one = best_interval(rate[at], benefit[at], cost[at], stale_cost=stale)
        assert chosen.interval[at] == pytest.approx(one.interval, rel=1e-9)
        assert chosen.net_income[at] == pytest.approx(one.net_income, rel=1e-9, abs=1e-9)
        assert chosen.futile[at] == one.futile


def test_the_amounts_are_those_of_the_plan() -> None:
    rate, benefit, cost = np.array([0.2, 1.0, 3.0]), np.array([5.0, 4.0, 9.0]), np.array([0.1, 0.2, 0.4])
    chosen = choose_budget(rate, benefit, cost, requests=[1, 2, 3])
    assert chosen.requests == pytest.approx((np.array([1, 2, 3]) / chosen.interval).sum())
    assert chosen.money == pytest.approx((cost / chosen.interval).sum(), rel=1e-12)


def test_it_is_the_plan_of_the_allocation_at_that_budget_with_multiplier_one() -> None:
    rng = np.random.default_rng(1)
    rate, benefit = rng.gamma(0.7, 1.0, 200), rng.gamma(2.0, 1.0, 200)
    cost = rng.gamma(2.0, 0.3, 200)
    chosen = choose_budget(rate, benefit, cost, stale_cost=0.5)
    plan = allocate(rate, chosen.money, weights=benefit + 0.5, costs=cost)
    assert plan.multiplier == pytest.approx(1.0, rel=1e-6)
    np.testing.assert_allclose(plan.frequency, 1 / chosen.interval, rtol=1e-6, atol=1e-9)


def test_no_other_budget_earns_more() -> None:
    rate, benefit = np.array([0.1, 0.5, 2.0]), np.array([3.0, 3.0, 9.0])
    chosen = choose_budget(rate, benefit, 1.0)
    for factor in (0.5, 0.9, 1.1, 2.0):
        plan = allocate(rate, factor * chosen.money, weights=benefit)
        earned = float(benefit @ (plan.frequency / rate * -np.expm1(-rate / plan.frequency))) - plan.spend
        assert earned < chosen.net_income.sum()
    assert chosen.requests == pytest.approx(best_total_refreshes(rate, benefit, 1.0))


def test_a_limit_has_a_price_and_drops_items() -> None:
    rate, benefit = np.array([0.1, 0.5, 2.0, 9.0]), np.array([3.0, 3.0, 3.0, 3.0])
    free = choose_budget(rate, benefit, 1.0)
    assert free.price == 0
    assert free.futile.tolist() == [False, False, False, True]
    assert not free.dropped.any()
    bound = choose_budget(rate, benefit, 1.0, limit=free.money / 4)
    assert bound.money == pytest.approx(free.money / 4)
    assert bound.price > 0
    assert bound.dropped.tolist() == [False, False, True, False]
    more = choose_budget(rate, benefit, 1.0, limit=free.money / 4 + 1e-6)
    assert (more.net_income.sum() - bound.net_income.sum()) / 1e-6 == pytest.approx(bound.price, rel=1e-3)
    slack = choose_budget(rate, benefit, 1.0, limit=2 * free.money)
    np.testing.assert_array_equal(slack.interval, free.interval)


@pytest.mark.parametrize("money", [None, 0.4])
def test_a_limit_of_requests_is_kept_and_costs_income(money: float | None) -> None:
    rate, benefit = np.array([0.1, 0.5, 2.0, 0.3]), np.full(4, 3.0)
    cost, requests = np.array([0.2, 0.3, 0.2, 0.5]), np.array([1, 1, 1, 5])
    free = choose_budget(rate, benefit, cost, requests=requests, limit=money)
    most = 0.4 * free.requests
    bound = choose_budget(rate, benefit, cost, requests=requests, limit=money, most_requests=most)
    assert bound.requests == pytest.approx(most, rel=1e-6)
    assert bound.money <= free.money
    assert money is None or bound.money <= money * (1 + 1e-9)
    more = choose_budget(rate, benefit, cost, requests=requests, limit=money, most_requests=most + 1e-4)
    assert bound.net_income.sum() < more.net_income.sum() < free.net_income.sum()
    with pytest.raises(InputError, match="most_requests is 0"):
        choose_budget(rate, benefit, cost, requests=requests, most_requests=0.0)


def test_futile_items_cost_and_earn_nothing_but_their_staleness() -> None:
    chosen = choose_budget([5.0, 0.0], [1.0, 1.0], 1.0, stale_cost=0.25)
    assert chosen.futile.all()
    assert (chosen.money, chosen.requests) == (0.0, 0.0)
    assert chosen.net_income.tolist() == [-0.25, 1.0]
    assert chosen.net_income[0] == pytest.approx(net_income(np.inf, 5.0, 1.0, 1.0, stale_cost=0.25))


def test_what_costs_nothing_has_no_best_budget() -> None:
    with pytest.raises(InputError, match="no budget is best: give it a cost"):
        choose_budget([1.0], [1.0], 0.0)
    assert choose_budget([0.0], [1.0], 0.0).money == 0.0


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="cost"):
        choose_budget([1.0], [1.0], -1.0)
