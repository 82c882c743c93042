"""Sums over items follow other costs and weights, and allowances under caps are never saved up."""

from __future__ import annotations

import numpy as np

from afresh.policy.policy import CapAllowances, PolicyInput, PolicyItems


def test_other_costs_are_counted_and_other_weights_need_not_be() -> None:
    items = PolicyItems(PolicyInput.of(4, 2.0))
    items.remove([3])
    items.reweigh([0, 1], [5.0, 0.0], [1.0, 1.0])
    assert items.weight.tolist() == [5.0, 0.0, 1.0, 1.0]
    assert (items.alive_count, items.total_cost) == (3, 3.0)
    items.reweigh([1, 3], 1.0, [4.0, 9.0])
    assert (items.alive_count, items.total_cost, items.mean_frequency) == (3, 6.0, 2.0 / 6.0)


def test_allowances_never_hoard() -> None:
    caps = CapAllowances.of(np.zeros(5, dtype=np.int64), np.array([1.0]), np.ones(5), 0.0)
    five = np.arange(5)
    assert caps.allowed(five, 0.0).tolist() == [True, False, False, False, False]
    caps.spend(five[:1])
    assert caps.allowed(five, 100.0).sum() == 5  # a batch for a long time
    assert caps.allowed(five, 100.0).sum() == 5  # asked again at once, it is still there
    assert caps.allowed(five, 100.5).sum() == 1  # unspent, it is gone
