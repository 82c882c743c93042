"""How a policy is run: batches, spread polls."""

from __future__ import annotations

import numpy as np

from afresh.policy.policy import PolicyInput
from afresh.policy.rivals.ranking_policy import UniformPolicy
from afresh.replay.change_history import ChangeHistory
from afresh.replay.run import ORACLE_BATCHES, batch_for, run_policy


def test_few_items_are_decided_on_one_by_one_and_many_in_small_parts() -> None:
    assert [batch_for(items, ORACLE_BATCHES) for items in (1, 1999, 4087, 10**6)] == [1, 1, 4, 333]
    assert [batch_for(items) for items in (1, 599, 4087, 10**6)] == [1, 1, 13, 333]


def test_a_batch_is_spread_over_its_time() -> None:
    history = ChangeHistory.of(10, [0], [1.0], 0.0, 10.0)
    visits = run_policy(history, UniformPolicy(PolicyInput.of(10, 2.0)), 2.0, batch=5)
    np.testing.assert_allclose(visits.time, np.arange(1, 21) / 2.0)
