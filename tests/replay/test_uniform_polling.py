"""Uniform polling by arithmetic is uniform polling as it runs, with costs, weights and windows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.policy.policy import OpenTime, PolicyInput
from afresh.policy.ranking_policy import UniformPolicy
from afresh.replay.change_history import ChangeHistory
from afresh.replay.policy_run import run_policy
from afresh.replay.scores import scores_when_seen, seen_at
from afresh.replay.uniform_polling import UniformPolling

LENGTH = 100.0


def a_history(rng: np.random.Generator, items: int, costs: bool) -> ChangeHistory:
    changes = int(rng.integers(0, 60))
    item, time = rng.integers(0, items, changes), rng.uniform(0.0, LENGTH, changes)
    cost = rng.choice([0.5, 1.0, 2.5], items) if costs else np.ones(items)
    return ChangeHistory.of(items, item, time, 0.0, LENGTH, costs=cost, weights=rng.uniform(0.5, 2.0, items))


@given(st.integers(0, 10**6), st.integers(1, 12), st.booleans(), st.booleans(), st.floats(0.05, 20.0))
@settings(deadline=None)
def test_changes_are_seen_when_the_policy_sees_them(
    seed: int, items: int, costs: bool, windows: bool, budget: float
) -> None:
    history = a_history(np.random.default_rng(seed), items, costs)
    opens = np.array([3.0, 30.0, 31.0, 77.0])
    open_time = OpenTime.of(opens, opens + np.array([7.0, 1.0, 11.0, 23.0])) if windows else None
    start = PolicyInput.of(items, budget, costs=history.cost)
    visits = run_policy(history, UniformPolicy(start), budget, open_time=open_time, batch=3)
    want = seen_at(history.change_item, history.time, visits.item, visits.time, LENGTH)
    found = UniformPolling(history, replace(start, open_time=open_time)).seen(budget)
    np.testing.assert_allclose(found, want, rtol=1e-9)


def test_a_change_at_the_moment_of_a_poll_is_seen_by_it() -> None:
    history = ChangeHistory.of(3, [0, 1, 2, 2], [1.0, 2.0, 3.0, 6.0], 0.0, 9.0)
    np.testing.assert_allclose(UniformPolling(history).seen(1.0), [1.0, 2.0, 3.0, 6.0])


@pytest.mark.parametrize("budget", [2.0, 6.0, 12.0])
def test_capped_groups_are_polled_as_the_policy_polls_them(budget: float) -> None:
    """Not poll by poll, for an allowance is spent a little later, but as often and as evenly."""
    rng = np.random.default_rng(5)
    count = rng.poisson(rng.gamma(0.5, 0.4, 60) * LENGTH)
    time = rng.uniform(0.0, LENGTH, count.sum())
    history = ChangeHistory.of(60, np.repeat(np.arange(60), count), time, 0.0, LENGTH)
    group = np.arange(60) % 3
    start = replace(PolicyInput.of(60, budget), cap_group=group, caps=np.array([0.5, 2.0]))
    visits = run_policy(history, UniformPolicy(start), budget, batch=1)
    seen = seen_at(history.change_item, history.time, visits.item, visits.time, LENGTH)
    polling = UniformPolling(history, start)
    for number in range(3):
        of_group = group[history.change_item] == number
        delay = seen[of_group] - history.time[of_group]
        own = polling.seen(budget)[of_group] - history.time[of_group]
        assert own.mean() == pytest.approx(delay.mean(), rel=0.1)


def test_parts_of_the_window_add_up() -> None:
    history = a_history(np.random.default_rng(3), 7, costs=True)
    seen = UniformPolling(history).seen(0.4)
    parts = [scores_when_seen(history, seen, begin, begin + 25.0) for begin in (0.0, 25.0, 50.0, 75.0)]
    for measure, whole in scores_when_seen(history, seen, 0.0).items():
        np.testing.assert_allclose(np.mean([part[measure] for part in parts], axis=0), whole)
