"""Shares the slots of a run (``[run] concurrency``) between groups, so that slow hosts cannot hold them all.

A group is quick if its recent polls last less than two seconds on average. A quarter of the slots is
reserved for quick groups: groups that are slow, or not known yet, use at most the other three quarters. One
long poll makes a group slow for about the next ten polls.

A group that was quick may begin to stall while it holds reserved slots. If all slots are taken, its request
is ended when it lasts four times as long as those of its group usually do (at least 0.75 s, at most 2 s)."""

from __future__ import annotations

import math
from collections import Counter

from afresh.engine.scheduler.picker import GroupKey

_QUICK_S = 2.0
_WEIGHT = 1 / 8  # of the newest poll in the average
_SHARE_OF_OTHERS = 3 / 4
_PATIENCE, _LEAST_PATIENCE_S = 4.0, 0.75


class SlotShares:
    """Counts the polls under way in each group (``in_group``), and decides which groups may start one more.

    >>> shares = SlotShares()
    >>> for group in range(3):
    ...     shares.begin((1, group))
    >>> shares.may_start((1, 7), 4), shares.may_start((1, 7), 8)
    (False, True)
    >>> shares.record((1, 7), 0.1)
    >>> shares.may_start((1, 7), 4)
    True
    """

    def __init__(self) -> None:
        self.in_group: Counter[GroupKey] = Counter()
        self._mean_s: dict[GroupKey, float] = {}
        self._others = 0  # polls under way of groups that are not quick

    def may_start(self, group_key: GroupKey, concurrency: int) -> bool:
        """Return whether a group may use one of ``concurrency`` slots that is free."""
        return self._is_quick(group_key) or self._others < max(1, int(concurrency * _SHARE_OF_OTHERS))

    def begin(self, group_key: GroupKey) -> None:
        self.in_group[group_key] += 1
        self._others += not self._is_quick(group_key)

    def end(self, group_key: GroupKey) -> None:
        self.in_group[group_key] -= 1
        self._others -= not self._is_quick(group_key)
        if self.in_group[group_key] <= 0:
            del self.in_group[group_key]

    def record(self, group_key: GroupKey, seconds: float) -> None:
        """Record that the requests of one poll took ``seconds``."""
        before, mean_s = self._is_quick(group_key), self._mean_s.get(group_key, seconds)
        self._mean_s[group_key] = mean_s + _WEIGHT * (seconds - mean_s)
        self._others += (before - self._is_quick(group_key)) * self.in_group[group_key]

    def patience_s(self, group_key: GroupKey) -> float:
        """Return how long a request of this group may hold a slot while all slots are taken; infinite for
        groups that are not quick, because they hold no reserved slot.

        >>> shares = SlotShares()
        >>> shares.record((1, 7), 0.3)
        >>> shares.patience_s((1, 7)), shares.patience_s((1, 8))
        (1.2, inf)
        """
        if not self._is_quick(group_key):
            return math.inf
        return min(max(_PATIENCE * self._mean_s[group_key], _LEAST_PATIENCE_S), _QUICK_S)

    def _is_quick(self, group_key: GroupKey) -> bool:
        return self._mean_s.get(group_key, _QUICK_S) < _QUICK_S
