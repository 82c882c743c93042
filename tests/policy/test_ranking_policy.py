"""Uniform is round robin."""

from __future__ import annotations

from afresh.policy.policy import PolicyInput
from afresh.policy.ranking_policy import UniformPolicy


def test_uniform_is_round_robin() -> None:
    policy = UniformPolicy(PolicyInput.of(4, 1.0))
    order = []
    for now in range(12):
        items = policy.next(float(now), 1)
        order += items.tolist()
        policy.observe(items, float(now), [now % 2 == 0])
    assert order == [0, 1, 2, 3] * 3
