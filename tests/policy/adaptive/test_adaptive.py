"""The adaptive policy over very many items."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.slow_cases import with_slow_cases

from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.policy import PolicyInput


def test_what_is_due_is_valued_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    whole, parts = Adaptive(PolicyInput.of(500, 5.0)), Adaptive(PolicyInput.of(500, 5.0))
    monkeypatch.setattr("afresh.policy.adaptive.review_schedule.BLOCK", 64)
    for turn in range(1, 4):
        changed = rng.random(500) < 0.3
        for policy in (whole, parts):
            policy.observe(np.arange(500), 100.0 * turn, changed)
    chosen = parts.next(1e4, 40)  # after a long time, when all are due
    monkeypatch.setattr("afresh.policy.adaptive.review_schedule.BLOCK", 10_000)
    np.testing.assert_array_equal(chosen, whole.next(1e4, 40))


@pytest.mark.parametrize("items", with_slow_cases([15_000, 60_000], kept=1))
def test_what_is_polled_after_a_refit_is_worth_most_of_what_there_is(items: int) -> None:
    """A level that nothing reaches once had just polled items polled again, and then all items looked at."""
    k = items // 1000
    every, rng = np.arange(items), np.random.default_rng(2)
    policy = Adaptive(replace(PolicyInput.of(items, 0.1 * items), families=every[:, None] // 10, hour=None))
    gained = possible = 0.0
    for batch in range(1, 1201):
        now = batch * k / (0.1 * items)
        telling = batch > 1010 and batch % 40 == 0
        worth = policy.poll_values(every, now) if telling else np.zeros(items)
        chosen = policy.next(now, k)
        gained += worth[chosen].sum()
        possible += np.partition(worth, items - k)[items - k :].sum() if telling else 0.0
        policy.observe(chosen, now, rng.random(k) < 0.1)
    assert gained > 0.6 * possible


def test_a_rekeying_does_not_forget_what_waits_since_a_mass_edit() -> None:
    """At a high price, all items that an edit may have changed once waited for months after a re-keying."""
    items, found = np.arange(60), np.ones(30, dtype=bool)
    policy = Adaptive(replace(PolicyInput.of(60, 6.0), families=items[:, None] // 60, hour=None))
    for day in range(10, 200, 10):  # every tenth day all are polled, and now and then all have changed
        policy.next(float(day), 60)
        policy.observe(items, float(day), np.full(60, day % 50 == 0))
    policy.observe(items[:30], 196.0, found)
    policy.review_value *= 1e3
    policy.rekey(196.0)
    is_reviewed = policy.next_review <= 196.0
    assert is_reviewed[30:].all()
    assert not is_reviewed[:30].any()


def test_a_rekeying_does_not_forget_notices() -> None:
    policy = Adaptive(replace(PolicyInput.of(50, 5.0), hour=None))
    policy.observe(np.arange(50), 10.0, np.zeros(50, dtype=bool))
    policy.notice([7], 11.0)
    policy.review_value *= 1e3
    policy.rekey(11.0)
    assert np.flatnonzero(policy.next_review <= 11.0).tolist() == [7]
