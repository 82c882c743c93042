"""LambdaCrawl is maximum likelihood and the memoryless optimum."""

from __future__ import annotations

import numpy as np

from afresh.policy.policy import PolicyInput
from afresh.policy.rivals.estimated_rates import LambdaCrawl


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
