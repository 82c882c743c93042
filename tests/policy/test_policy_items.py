"""Sums over items follow other costs and other weights."""

from __future__ import annotations

from afresh.policy.policy import PolicyInput
from afresh.policy.policy_items import PolicyItems


def test_other_costs_are_counted_and_other_weights_need_not_be() -> None:
    items = PolicyItems(PolicyInput.of(4, 2.0))
    items.remove([3])
    items.reweigh([0, 1], [5.0, 0.0], [1.0, 1.0])
    assert items.weight.tolist() == [5.0, 0.0, 1.0, 1.0]
    assert (items.alive_count, items.total_cost) == (3, 3.0)
    items.reweigh([1, 3], 1.0, [4.0, 9.0])
    assert (items.alive_count, items.total_cost, items.mean_frequency) == (3, 6.0, 2.0 / 6.0)
