"""MirrorSync: its estimate of the derivative has no bias, and its rates approach the optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from afresh.policy.policy import PolicyInput
from afresh.policy.rivals.mirror_sync import MirrorSync, mirror_step
from afresh.replay.change_history import ChangeHistory
from afresh.replay.policy_run import run_policy


def test_the_estimate_of_the_derivative_has_no_bias() -> None:
    """Items that change at rate 1.5, synchronised exactly when they are due, for three cycles each."""
    items, change_rate = 10_000, 1.5
    policy = MirrorSync(replace(PolicyInput.of(items, 1.1 * items), hour=None))
    policy.round = np.inf  # no step: the rates stay 1
    rng = np.random.default_rng(1)
    last = np.zeros(items)
    policy.due[:] = 1.0
    while (waiting := np.flatnonzero(policy.cycles_ended < 3)).size:
        now = policy.due[waiting]
        changed = rng.random(waiting.size) < -np.expm1(-change_rate * (now - last[waiting]))
        policy.observe(waiting, now, changed)
        last[waiting] = now
    # C(r) = 1 − (r/λ)(1 − e^{−λ/r}) at r = 1.
    expected = -(1 - np.exp(-change_rate)) / change_rate + np.exp(-change_rate)
    found = policy.gradient / policy.cycles_ended
    assert found.mean() == pytest.approx(expected, abs=4 * found.std() / np.sqrt(items))


def test_a_tenth_of_the_cycles_is_probed_at_moments_spread_evenly() -> None:
    policy = MirrorSync(PolicyInput.of(1000, 1000.0))
    drawn = []
    for cycle in range(30):
        policy.cycle[:] = cycle
        drawn.append(policy.draws(np.arange(1000)))
    coin, moment = np.concatenate(drawn).T
    assert np.mean(coin < 0.1) == pytest.approx(0.1, abs=0.005)
    probed = moment[coin < 0.1]
    np.testing.assert_allclose(np.quantile(probed, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.02)


def test_a_step_keeps_the_total_cost_and_the_limits() -> None:
    rng = np.random.default_rng(2)
    rates, cost = rng.uniform(0.2, 2.0, 50), rng.uniform(0.5, 3.0, 50)
    slope = -rng.exponential(30.0, 50)
    after = mirror_step(rates, slope, cost, (0.1, 2.5))
    assert cost @ after == pytest.approx(cost @ rates)
    assert after.min() >= 0.1
    assert after.max() <= 2.5
    free = (after > 0.1) & (after < 2.5)
    price = (1 / after - 1 / rates - 0.05 * slope)[free] / cost[free]
    np.testing.assert_allclose(price, price[0], atol=1e-9)


def test_what_changes_too_fast_gets_fewer_polls_in_the_end() -> None:
    """A third changes twenty times between two polls: the others make more of the budget."""
    rng = np.random.default_rng(4)
    rates = np.tile([20.0, 1.0, 1.0], 20)
    count = rng.poisson(rates * 200.0)
    time = rng.uniform(0.0, 200.0, count.sum())
    history = ChangeHistory.of(60, np.repeat(np.arange(60), count), time, 0.0, 200.0)
    visits = run_policy(history, MirrorSync(PolicyInput.of(60, 60.0)), 60.0, batch=4)
    late = visits.time > 100.0
    fast, *slow = np.bincount(visits.item[late] % 3)
    assert fast < 0.6 * np.mean(slow)
