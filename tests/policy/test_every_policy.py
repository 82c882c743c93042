"""What every policy must do, found in the table: a new one is tested by existing."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.policy import OpenTime, Policy, PolicyInput
from afresh.policy.registry import POLICIES, make_policy
from afresh.replay.change_history import UNSEEN_CHANGES, ChangeHistory
from afresh.replay.policy_run import Visits, run_policy

ITEMS, LENGTH = 30, 100.0
every_policy = pytest.mark.parametrize("name", POLICIES)


def a_history(seed: int, items: int = ITEMS, costs: np.ndarray | None = None) -> ChangeHistory:
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.5, 0.2, items)
    count = rng.poisson(rates * LENGTH)
    time = rng.uniform(0.0, LENGTH, count.sum())
    return ChangeHistory.of(items, np.repeat(np.arange(items), count), time, 0.0, LENGTH, costs=costs)


def a_start(history: ChangeHistory, budget: float = 3.0) -> PolicyInput:
    families = np.stack([np.arange(history.items) // 5, np.full(history.items, -1)], axis=1)
    start = PolicyInput.of(history.items, budget, costs=history.cost)
    return replace(start, rates=history.rates(UNSEEN_CHANGES), families=families)


def same(one: Visits, other: Visits) -> bool:
    return all(np.array_equal(getattr(one, field), getattr(other, field)) for field in ("item", "time"))


@every_policy
def test_the_budget_is_spent_exactly_and_never_in_advance(name: str) -> None:
    history = a_history(1)
    visits = run_policy(history, make_policy(name, a_start(history)), 3.0, batch=4)
    assert visits.time.size == 3 * LENGTH
    np.testing.assert_allclose(visits.time, (np.arange(visits.time.size) + 1) / 3.0)


@every_policy
def test_costs_are_paid_for(name: str) -> None:
    costs = np.where(np.arange(ITEMS) % 2 == 0, 1.0, 3.5)
    history = a_history(2, costs=costs)
    visits = run_policy(history, make_policy(name, a_start(history)), 3.0, batch=4)
    spent = np.cumsum(costs[visits.item])
    assert np.all(spent <= 3.0 * visits.time * (1 + 1e-9))
    assert spent[-1] > 3.0 * LENGTH - 3.5 - 1e-6


@every_policy
def test_the_same_twice_and_after_pickling(name: str) -> None:
    history = a_history(3)
    once = run_policy(history, make_policy(name, a_start(history)), 3.0)
    assert same(once, run_policy(history, make_policy(name, a_start(history)), 3.0))
    policy = make_policy(name, a_start(history))
    for now in range(1, 60):
        items = policy.next(float(now), 3)
        policy.observe(items, float(now), items % 3 == 0)
    copy: Policy = pickle.loads(pickle.dumps(policy))
    for now in range(60, 80):
        mine, its = policy.next(float(now), 3), copy.next(float(now), 3)
        np.testing.assert_array_equal(mine, its)
        policy.observe(mine, float(now), mine % 3 == 0)
        copy.observe(its, float(now), its % 3 == 0)


@every_policy
def test_never_outside_the_windows(name: str) -> None:
    history = a_history(4)
    opens = np.arange(0.0, LENGTH, 10.0)
    nights = OpenTime.of(opens, opens + 2.5)
    policy = make_policy(name, replace(a_start(history), open_time=nights))
    visits = run_policy(history, policy, 3.0, open_time=nights)
    assert np.all(visits.time % 10.0 <= 2.5 + 1e-9)
    assert abs(visits.time.size - 3 * LENGTH) <= 1
    assert policy.next(LENGTH - 5.0, 4).size == 0


def test_items_come_and_go() -> None:
    policy = Adaptive(a_start(a_history(5)))
    policy.remove([0, 1, 2])
    new = policy.add([1.0, 1.0], 1.0, 5.0, np.array([[0, -1], [99, -1]]))
    assert new.tolist() == [ITEMS, ITEMS + 1]
    seen: set[int] = set()
    for now in range(6, 200):
        items = policy.next(float(now), 4)
        assert len(set(items.tolist())) == items.size == 4
        seen.update(items.tolist())
        policy.observe(items, float(now), np.zeros(items.size, dtype=bool))
    assert not seen & {0, 1, 2}
    assert set(new.tolist()) <= seen
    policy.remove(np.arange(3, ITEMS + 1))
    assert policy.next(300.0, 10).tolist() == [ITEMS + 1]


def test_another_budget_weights_and_a_refit_at_any_time() -> None:
    policy = Adaptive(a_start(a_history(6)))
    for now in range(1, 100):
        items = policy.next(float(now), 3)
        policy.observe(items, np.full(items.size, float(now)), items % 2 == 0)
        if now == 40:
            policy.set_budget(9.0, 40.0)
            policy.reweigh([3, 4], [5.0, 0.5], [2.0, 1.0])
            policy.refit(40.0)
            policy.notice([7, 7, 8], [39.0, 40.0, 40.0])
    assert policy.next(100.0, 3).size == 3


@every_policy
def test_caps_hold(name: str) -> None:
    history = a_history(7)
    group = np.where(np.arange(ITEMS) < 15, 0, 1)
    policy = make_policy(name, replace(a_start(history), cap_group=group, caps=np.array([0.5])))
    visits = run_policy(history, policy, 3.0, batch=4)
    capped = visits.time[group[visits.item] == 0]
    assert capped.size <= 0.5 * LENGTH + 5
    assert capped.size >= 0.25 * LENGTH
    assert visits.time.size >= 2.5 * LENGTH


@every_policy
def test_wrong_arguments_are_named(name: str) -> None:
    policy = make_policy(name, a_start(a_history(8)))
    with pytest.raises(ValueError, match="2 items were polled but 1 outcomes"):
        policy.observe([0, 1], 1.0, [True])


def test_wrong_items_budgets_and_costs_are_named() -> None:
    policy = Adaptive(a_start(a_history(8)))
    with pytest.raises(ValueError, match="no item 99"):
        policy.remove([99])
    with pytest.raises(ValueError, match="budget is 0"):
        policy.set_budget(0.0, 1.0)
    with pytest.raises(ValueError, match="cost is 0"):
        policy.add([1.0], [0.0], 1.0)


@given(st.integers(0, 10**6), st.sampled_from(sorted(POLICIES)))
@settings(deadline=None)
def test_any_outcomes_are_survived(seed: int, name: str) -> None:
    """Random bits, repeated moments, long silences: distinct items, always as many as asked."""
    rng = np.random.default_rng(seed)
    policy = make_policy(name, a_start(a_history(seed % 7)))
    now = 0.0
    for _ in range(40):
        now += float(rng.choice([0.0, 1e-9, 1.0, 1e4]))
        items = policy.next(now, 5)
        assert np.unique(items).size == 5
        policy.observe(items, now, rng.random(5) < rng.random())


def test_an_item_of_no_weight_is_no_trouble() -> None:
    """Warnings are errors here: nothing overflows for an item that is never worth a poll."""
    start = PolicyInput.of(3, 0.5, weights=np.array([1.0, 0.0, 2.0]))
    policy = make_policy("adaptive", start)
    for now in range(1, 60):
        chosen = policy.next(float(now), 1)
        policy.observe(chosen, float(now), np.zeros(chosen.size, dtype=bool))
