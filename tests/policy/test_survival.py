"""The chance that a copy is still right never grows while nobody looks, and its age never falls."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.policy import PolicyInput

ITEMS = 12


@settings(max_examples=25, deadline=None)
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
