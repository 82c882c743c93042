"""The change model as a whole: silence, and how the chance that a copy is right falls with time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.adaptive.change_model import ChangeModel
from afresh.policy.adaptive.rate_belief import SILENT
from afresh.policy.policy import PolicyInput

ITEMS = 12


def test_one_silence_does_not_make_a_busy_item_slow() -> None:
    """However long: found changed thirty times running, then once not, it is not starved."""
    known = ChangeModel(PolicyInput.of(1, 1.0))
    one = np.zeros(1, dtype=np.int64)
    for day in range(3, 93, 3):
        known.learn(one, np.array([float(day)]), np.array([True]))
    before = known.rates()[0]
    known.learn(one, np.array([400.0]), np.array([False]))
    assert known.rates()[0] > 0.2 * before
    telling = known.belief.finding(np.array([1e-9, 1.0, 1e9]))
    assert np.all(telling <= (1.0 - SILENT) * (1 + 1e-12))
    np.testing.assert_allclose(telling[0], (1.0 - SILENT) * 1e-9 * known.belief.rates, rtol=1e-6)


@pytest.mark.parametrize("is_announced", [False, True])
def test_the_chance_of_a_change_is_that_of_the_expected_changes(is_announced: bool) -> None:
    rng, every = np.random.default_rng(3), np.arange(ITEMS)
    families = (every % 3)[:, None]
    policy = Adaptive(PolicyInput(float(ITEMS), np.ones(ITEMS), np.ones(ITEMS), families=families))
    for day in range(1, 30):
        if is_announced:
            policy.notice(every[::2], day - 0.5, "feed")
        policy.observe(every, np.full(ITEMS, float(day)), (every % 3 == 0) & (rng.random() < 0.5))
    forecast = policy.forecast(every, 31.0)
    np.testing.assert_allclose(forecast.change_chance, -np.expm1(-forecast.expected), rtol=1e-12)


@given(seed=st.integers(0, 1000), frequency=st.sampled_from([1e-6, 0.01, 1.0, 100.0]), related=st.booleans())
def test_a_copy_does_not_become_right_again(seed: int, frequency: float, related: bool) -> None:
    rng = np.random.default_rng(seed)
    families = (np.arange(ITEMS) % 3)[:, None] if related else None
    start = PolicyInput(ITEMS * frequency, np.ones(ITEMS), np.ones(ITEMS), 0.0, "freshness", families)
    policy, every, now = Adaptive(start), np.arange(ITEMS), 0.0
    busy = rng.random(ITEMS) ** 3
    for _ in range(rng.integers(1, 60)):
        now += rng.exponential(1.0 / frequency)
        policy.observe(every, np.full(ITEMS, now), rng.random(ITEMS) < busy)
    times = now + np.concatenate([[0.0], np.geomspace(1e-3, 1e4, 60)]) / frequency
    fresh = np.array([policy.fresh(every, time) for time in times])
    ages = np.array([policy.ages(every, time) for time in times])
    assert np.all(np.diff(fresh, axis=0) <= 1e-7)
    assert np.all(np.diff(ages, axis=0) >= -1e-9 * ages[1:])
    assert np.allclose(fresh[0], 1.0, atol=1e-5)
