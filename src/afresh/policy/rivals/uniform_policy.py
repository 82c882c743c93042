"""Uniform: one interval for all, round robin (Cho & Garcia-Molina 2000, §4.3). The baseline to beat."""

from __future__ import annotations

from afresh.policy.rivals.ranking_policy import IntervalPolicy
from afresh.values.arrays import ArrayLike, Bools, Float64s, Ints


class UniformPolicy(IntervalPolicy):
    """Polls every item in turn.

    >>> from afresh.policy.policy import PolicyInput
    >>> policy = UniformPolicy(PolicyInput.of(3, 1.0))
    >>> policy.next(1.0, 2).tolist()
    [0, 1]
    >>> policy.observe([0, 1], 1.0, [True, False]); policy.next(2.0, 2).tolist()
    [2, 0]
    """

    def next_due(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        """One round later, whatever the poll found; in the order in which they were due."""
        del now, changed
        return self.due[items] + self.round

    def notice(self, items: ArrayLike, now: ArrayLike, source: str = "") -> None:
        """Ignore notices."""
