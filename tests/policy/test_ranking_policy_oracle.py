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
