"""How a policy is run: polls evenly in open time, within the windows, in batches."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.policy.policy import OpenTime, PolicyInput
from afresh.policy.ranking_policy import UniformPolicy
from afresh.replay.change_history import ChangeHistory
from afresh.replay.policy_run import ORACLE_BATCHES, BudgetClock, batch_for, run_policy


def test_few_items_are_decided_on_one_by_one_and_many_in_small_parts() -> None:
    assert [batch_for(items, ORACLE_BATCHES) for items in (1, 1999, 4087, 10**6)] == [1, 1, 4, 333]
    assert [batch_for(items) for items in (1, 599, 4087, 10**6)] == [1, 1, 13, 333]


def test_a_batch_is_spread_over_its_time() -> None:
    history = ChangeHistory.of(10, [0], [1.0], 0.0, 10.0)
    visits = run_policy(history, UniformPolicy(PolicyInput.of(10, 2.0)), 2.0, batch=5)
    np.testing.assert_allclose(visits.time, np.arange(1, 21) / 2.0)


SPANS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=6)


def open_windows(spans: list[tuple[int, int]]) -> OpenTime:
    """Windows from pairs of a pause and a length."""
    edges = np.cumsum(np.array(spans).ravel()).astype(np.float64)
    return OpenTime.of(edges[::2], edges[1::2])


def elapsed_in(window: OpenTime, now: float) -> float:
    """Open time before ``now``."""
    return float(np.clip(now - window.opens, 0.0, window.closes - window.opens).sum())


def total(window: OpenTime) -> float:
    """All open time."""
    return elapsed_in(window, np.inf)


@given(SPANS, st.integers(1, 60))
@settings(deadline=None)
def test_so_many_polls_evenly_in_open_time(spans: list[tuple[int, int]], polls: int) -> None:
    window = open_windows(spans)
    length = 100.0
    clock = BudgetClock(window, polls / length, length)
    moments = clock.moments(np.arange(1.0, polls + 2))
    assert np.isfinite(moments[:-1]).all()
    assert np.isinf(moments[-1])
    inside = [np.any((window.opens < when) & (when <= window.closes)) for when in moments[:-1]]
    assert all(inside)
    elapsed = np.array([elapsed_in(window, when) for when in moments[:-1]])
    np.testing.assert_allclose(elapsed, total(window) * np.arange(1, polls + 1) / polls, rtol=1e-9)


@given(SPANS, st.floats(0, 1.2))
@settings(deadline=None)
def test_decisions_are_made_while_a_window_is_open(spans: list[tuple[int, int]], share: float) -> None:
    window = open_windows(spans)
    clock = BudgetClock(window, 1.0, total(window))
    now = clock.now(share * total(window))
    if share >= 1:
        assert now is None
    else:
        assert now is not None
        assert window.is_open(now)
        assert np.isclose(elapsed_in(window, now), share * total(window), atol=1e-9)


def test_a_poll_earned_at_the_close_is_made_before_it() -> None:
    days = 24.0 * np.arange(3)
    clock = BudgetClock(OpenTime.of(days, days + 1.0), 10 / 24.0, 72.0)
    hours = clock.moments(np.arange(1.0, 31.0)) % 24.0
    assert (hours <= 1.0 + 1e-9).all()
    assert np.isclose(hours, 1.0).sum() == 3


NAMED_RUN = """
from dataclasses import replace
from hashlib import blake2b
import numpy as np
from afresh.policy.families import families_of
from afresh.policy.policy import PolicyInput
from afresh.policy.registry import make_policy
from afresh.replay.change_history import ChangeHistory
from afresh.replay.policy_run import run_policy
rng = np.random.default_rng(1)
names = [f"{top}/topic{item % 9}/Page{item % 5}Part{item}" for top in ("en", "de") for item in range(30)]
owner, moment = rng.integers(0, 60, 400) // 3, rng.uniform(0.0, 90.0, 400)
history = ChangeHistory.of(60, owner, moment, 0.0, 90.0)
families = families_of(names)
start = replace(PolicyInput.of(60, 6.0), families=families)
visits = run_policy(history, make_policy("adaptive", start), 6.0, batch=3)
assert (families >= 0).any(axis=0).all()
print(blake2b(families.tobytes() + visits.item.tobytes()).hexdigest())
"""


def test_a_run_is_the_same_in_every_process() -> None:
    """Python's own hash of a text differs between processes, unless its seed is given."""
    printed = {
        subprocess.run(
            [sys.executable, "-c", NAMED_RUN],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
