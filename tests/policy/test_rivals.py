"""The rivals' rules, step by step, as their projects state them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from afresh.policy.policy import PolicyInput
from afresh.policy.rivals.lambdacrawl import LambdaCrawl
from afresh.policy.rivals.nutch import Nutch, NutchSync
from afresh.policy.rivals.oracle import Oracle
from afresh.policy.rivals.proportional import Proportional
from afresh.policy.rivals.stormcrawler import StormCrawler
from afresh.policy.rivals.uniform_policy import UniformPolicy


def test_uniform_is_round_robin() -> None:
    policy = UniformPolicy(PolicyInput.of(4, 1.0))
    order = []
    for now in range(12):
        items = policy.next(float(now), 1)
        order += items.tolist()
        policy.observe(items, float(now), [now % 2 == 0])
    assert order == [0, 1, 2, 3] * 3


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


def test_proportional_polls_as_often_as_it_thinks_things_change() -> None:
    policy = Proportional(PolicyInput.of(2, 1.0))
    for now in range(1, 41):
        policy.observe([0, 1], float(now), [now % 2 == 0, now % 10 == 0])
    policy.refit(40.0)
    rate = policy.rates()
    np.testing.assert_allclose(rate, [-np.log(20.5 / 40.5), -np.log(36.5 / 40.5)])
    np.testing.assert_allclose(policy.interval[1] / policy.interval[0], rate[0] / rate[1])
    np.testing.assert_allclose((1 / policy.interval).sum(), 1.0)


def test_lambdacrawl_is_maximum_likelihood_and_the_memoryless_optimum() -> None:
    policy = LambdaCrawl(PolicyInput.of(2, 1.0))
    rng = np.random.default_rng(1)
    intervals, bits, now = [2.0, 2.0], [True, False], 0.0
    for _ in range(60):
        step = float(rng.uniform(0.5, 4.0))
        now += step
        bit = bool(rng.random() < 1 - np.exp(-0.3 * step))
        policy.observe([0], now, [bit])
        intervals.append(step)
        bits.append(bit)
    # The score of the likelihood vanishes at the estimate (rates/mle.py).
    rate = policy.rates()[0]
    t, found = np.array(intervals), np.array(bits)
    left, right = (t[found] / np.expm1(rate * t[found])).sum(), t[~found].sum()
    assert abs(left / right - 1) < 0.05
    policy.refit(now)
    np.testing.assert_allclose((1 / policy.interval).sum(), 1.0, rtol=1e-6)


def test_the_oracle_ranks_by_the_index() -> None:
    policy = Oracle(replace(PolicyInput.of(4, 1.0), rates=np.array([0.0, 0.1, 1.8, 40.0])))
    assert policy.next(1.0, 4).tolist() == [2, 1, 3, 0]
    policy.observe([2], 1.0, [True])
    assert policy.next(1.2, 1).tolist() == [1]


def test_sync_never_sets_a_poll_into_the_past() -> None:
    policy = NutchSync(PolicyInput.of(1, 1.0))
    policy.observe([0], 1000.0, [False])  # quiet for a thousand rounds: I = δ, without a limit
    np.testing.assert_allclose(policy.due, [1700.0])
