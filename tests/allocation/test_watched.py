"""Items whose staleness is seen: a knapsack, and no plan that has to look does better."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from afresh.allocation.allocate import allocate
from afresh.allocation.watched import allocate_watched, allocate_watched_age, first_change, refresh_gains
from afresh.values.errors import InputError

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

numbers = st.floats(1e-3, 1e3)
items = st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=8)


@settings(deadline=None)
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


@settings(deadline=None)
@given(items, numbers)
def test_looking_first_is_never_better(rows: list[tuple[float, float, float]], budget: float) -> None:
    rate, weight, cost = np.array(rows).T
    seen = allocate_watched(rate, budget, weights=weight, costs=cost)
    unseen = allocate(rate, budget, weights=weight, costs=cost)
    assert float(weight @ seen.freshness) / weight.sum() >= unseen.freshness - 1e-9


@settings(deadline=None)
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


def test_what_is_lost_while_a_refresh_is_paid_off() -> None:
    """A refresh of cost 3 at a budget of 0.5 keeps a better item waiting for 6 units of time."""
    rng = np.random.default_rng(2)
    changes = rng.exponential(1 / 0.4, 200_000)
    lost = float(np.maximum(6.0 - changes, 0.0).mean())
    gains = refresh_gains([True, False], [0.5, 0.4], 0.5, weights=[2.0, 3.0], costs=[3.0, 0.1])
    assert gains[0] == pytest.approx(2.0 / 0.5 - 3.0 * lost, abs=0.05)
    assert gains[1] == -np.inf


@settings(deadline=None)
@given(items, numbers)
def test_the_best_item_is_always_worth_its_refresh(
    rows: list[tuple[float, float, float]], budget: float
) -> None:
    rate, weight, cost = np.array(rows).T
    gains = refresh_gains(np.ones(len(rows)), rate, budget, weights=weight, costs=cost)
    best = int(np.argmax(allocate_watched(rate, budget, weights=weight, costs=cost).worth))
    assert gains[best] == pytest.approx(weight[best] / rate[best])
    assert np.all(gains <= weight / rate)


VIEW_RATES, VIEW_COSTS, SHARE = np.array([0.03, 0.11, 2.0, 0.7]), np.array([0.01, 0.02, 0.012, 0.3]), 0.05


def simulated(choose: Callable[[float, Flags, Array], int | None], seed: int) -> tuple[float, float]:
    """Mean freshness of four views whose tables change at random, and the share of time spent refreshing."""
    rng = np.random.default_rng(seed)
    step, end = 0.05, 500.0
    stale, last, changing = np.zeros(4, dtype=np.bool_), np.zeros(4), -np.expm1(-VIEW_RATES * step)
    now = fresh = spent = free = 0.0
    while now < end:
        stale |= rng.random(4) < changing
        chosen = choose(now, stale, last) if now >= free else None
        if chosen is not None:
            stale[chosen], last[chosen] = False, now
            spent += VIEW_COSTS[chosen]
            free = now + VIEW_COSTS[chosen] / SHARE
        fresh += step * float(1 - stale.mean())
        now += step
    return fresh / end, spent / end


@lru_cache
def best_of(stale: tuple[bool, ...]) -> int | None:
    gains = refresh_gains(stale, VIEW_RATES, SHARE, costs=VIEW_COSTS) / VIEW_COSTS
    return int(np.argmax(gains)) if gains.max() > 0 else None


def ours(_now: float, stale: Flags, _last: Array) -> int | None:
    return best_of(tuple(stale.tolist()))


def in_turn(_now: float, _stale: Flags, last: Array) -> int | None:
    return int(np.argmin(last))


def in_proportion(now: float, _stale: Flags, last: Array) -> int | None:
    return int(np.argmax((now - last) * VIEW_RATES))


def stale_in_turn(_now: float, stale: Flags, last: Array) -> int | None:
    return int(np.argmin(np.where(stale, last, np.inf))) if stale.any() else None


def test_views_are_fresher_than_by_other_orders_at_the_same_budget() -> None:
    mine, spent = simulated(ours, 1)
    assert spent <= SHARE * 1.01
    for rival in (in_turn, in_proportion, stale_in_turn):
        theirs, as_much = simulated(rival, 1)
        assert mine > theirs + 0.1
        assert spent <= as_much <= SHARE * 1.01


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="budget is 0"):
        refresh_gains([True], [1.0], 0.0)
    with pytest.raises(InputError, match="budget is -1"):
        allocate_watched([1.0], -1.0)
    with pytest.raises(InputError, match="a cost is 0"):
        allocate_watched([1.0], 1.0, costs=0.0)


def test_the_least_age_spends_the_budget_and_prefers_what_is_cheap() -> None:
    rate, cost = np.array([0.02, 0.02, 1.0]), np.array([1.0, 9.0, 1.0])
    plan = allocate_watched_age(rate, 0.1, costs=cost)
    assert plan.spend == pytest.approx(0.1)
    assert plan.frequency[0] > plan.frequency[1]
    # No other split of the budget gives less: w·age without the waits is f·T²/2 with T = 1/f − 1/λ.
    best = float(np.sum((1 - plan.frequency / rate) ** 2 / (2 * plan.frequency)))
    rng = np.random.default_rng(1)
    for _ in range(200):
        other = np.minimum(plan.frequency * rng.uniform(0.8, 1.25, 3), rate)
        other *= min(0.1 / float(cost @ other), 1.0)
        assert float(np.sum((1 - other / rate) ** 2 / (2 * other))) >= best - 1e-9
    ample = allocate_watched_age(rate, 100.0, costs=cost)
    assert np.allclose(ample.frequency, rate)


def test_a_change_that_is_seen_late_makes_the_copy_older_at_any_budget() -> None:
    """A refresh 30 s after every change: stale for 30 s of each 90 s, and 15 s old on average meanwhile."""
    soon = allocate_watched_age([1 / 60], 1.0, costs=[1e-9])
    late = allocate_watched_age([1 / 60], 1.0, costs=[1e-9], delays=[30.0])
    assert soon.age[0] == pytest.approx(0.0, abs=1e-6)
    assert late.age[0] == pytest.approx(30.0**2 / 2 / 90.0)
    assert late.freshness[0] == pytest.approx(60.0 / 90.0)


def test_the_first_change_of_a_window_is_that_of_drawn_changes() -> None:
    rng = np.random.default_rng(5)
    for rate in (0.05, 0.6, 4.0):
        first = rng.exponential(1 / rate, 200_000)
        seen = first[first <= 3.0]  # the window shows a change
        error = float(seen.std() / np.sqrt(seen.size))
        assert float(first_change(rate, 3.0)) == pytest.approx(float(seen.mean()), abs=4 * error)


def test_the_first_change_has_no_step_between_its_two_forms() -> None:
    below, above = first_change([0.01 * (1 - 1e-9), 0.01 * (1 + 1e-9)], 1.0)
    assert below == pytest.approx(above, rel=1e-7)
    assert first_change([1.0, 1e290], [0.0, 5.0]).tolist() == pytest.approx([0.0, 0.0])
