"""The rules of Nutch, StormCrawler and Sosse, step by step, as their projects state them."""

from __future__ import annotations

import numpy as np

from afresh.policy.policy import PolicyInput
from afresh.policy.rivals.crawler_rules import Nutch, NutchSync, Sosse, StormCrawler


def test_nutch_multiplies_and_sync_looks_back() -> None:
    plain, sync = Nutch(PolicyInput.of(2, 1.0)), NutchSync(PolicyInput.of(2, 1.0))
    for policy in (plain, sync):
        policy.observe([0], 10.0, [True])
        policy.observe([1], 10.0, [False])
    np.testing.assert_allclose(plain.interval, [1.6, 2.8])
    np.testing.assert_allclose(plain.due, [11.6, 12.8])
    # δ = 10 > 2.8, so I = 10 and the next poll is at 10 − 3 + 10.
    np.testing.assert_allclose(sync.interval, [1.6, 10.0])
    np.testing.assert_allclose(sync.due, [11.6, 17.0])


def test_stormcrawler_halves_towards_the_least() -> None:
    policy = StormCrawler(PolicyInput.of(2, 1.0))
    for _ in range(30):
        policy.observe([0, 1], 1.0, [True, False])
    np.testing.assert_allclose(policy.interval, [2 / 24, 28.0])


def test_sync_never_sets_a_poll_into_the_past() -> None:
    policy = NutchSync(PolicyInput.of(1, 1.0))
    policy.observe([0], 1000.0, [False])  # quiet for a thousand rounds: I = δ, without a limit
    np.testing.assert_allclose(policy.due, [1700.0])


def test_sosse_doubles_and_halves_within_its_limits() -> None:
    policy = Sosse(PolicyInput.of(2, 1.0))
    policy.observe([0, 1], 2.0, [True, False])
    np.testing.assert_allclose(policy.due, [3.0, 6.0])
    for _ in range(30):
        policy.observe([0, 1], 1.0, [True, False])
    np.testing.assert_allclose(policy.interval, [2 / 365**0.5, 2 * 365**0.5])
