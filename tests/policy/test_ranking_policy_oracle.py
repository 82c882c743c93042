"""The oracle ranks by the poll value at the true rates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from afresh.policy.policy import PolicyInput
from afresh.policy.ranking_policy import Oracle


def test_the_oracle_ranks_by_the_index() -> None:
    policy = Oracle(replace(PolicyInput.of(4, 1.0), rates=np.array([0.0, 0.1, 1.8, 40.0])))
    assert policy.next(1.0, 4).tolist() == [2, 1, 3, 0]
    policy.observe([2], 1.0, [True])
    assert policy.next(1.2, 1).tolist() == [1]


def test_valuing_only_candidates_chooses_what_valuing_all_items_would() -> None:
    rng = np.random.default_rng(4)
    items, budget, now, valued_all = 400, 100.0, 0.0, 0
    changing = rng.random(items) < 0.8
    policy = Oracle(replace(PolicyInput.of(items, budget), rates=changing * rng.gamma(0.5, 0.5, items)))
    for turn in range(800):
        now += 1.0 / budget
        best = int(np.argmax(policy.urgency(now)))
        bound_until = policy.bound_until
        assert policy.next(now, 1).tolist() == [best]
        valued_all += turn >= items and policy.bound_until != bound_until  # not in the first round
        policy.observe([best], now, [True])
    assert valued_all < 20
