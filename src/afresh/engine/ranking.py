"""The adaptive policy over the rows of a memory: what it values, and what it has learned.

``policy.adaptive`` learns more than a belief per item: what changes together, seasons, where its model errs.
It lives in memory. What the store keeps of an item is the Gamma summary of ``beliefs``, and a new process
starts from those. Its values and the summaries' own index are in one unit, and stand in for each other.

Polls are learned in batches, when values are next asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from afresh.engine.beliefs import Floats
from afresh.engine.memory import Memory
from afresh.policy.adaptive import Adaptive
from afresh.policy.families import families_of
from afresh.policy.policy import Start
from afresh.values.stored import Ids

ALL_ROWS = 5_000
"""Up to so many items all are valued; of more those that the policy itself finds the most urgent."""

POOL_SHARE, FEWEST = 150, 1024


class Ranking:
    """Values rows by ``Adaptive``; rows of the memory are the policy's items."""

    def __init__(
        self,
        memory: Memory,
        budget_per_s: float,
        objective: str,
        now_s: float,
        names: Sequence[str] | None = None,
    ) -> None:
        """``names`` of all items tell who may change together; None where they are too many to look at."""
        families = families_of(names) if names is not None and len(names) == memory.size else None
        start = Start(budget_per_s, memory.weight, memory.cost, now_s, objective, families)
        self._memory, self._now_s, self._shift_s = memory, now_s, 0.0
        self._policy = Adaptive(start)
        self._polls: dict[int, tuple[float, bool]] = {}

    def recall(self, shape: Floats, rate: Floats) -> None:
        """Start from the Gamma summaries of items that have been polled before."""
        known = np.flatnonzero(~np.isnan(self._memory.polled_s))
        if known.size == 0:
            return
        policy = self._policy
        a, b = shape[known, None], rate[known, None]
        # The Gamma's density per step of the ladder, which is even in ln λ: λ^a·e^{−bλ}.
        log = a * np.log(policy.belief.rates) - b * policy.belief.rates
        rows = np.exp(log - log.max(axis=1, keepdims=True))
        policy.belief.rows[known] = rows / rows.sum(axis=1, keepdims=True)
        policy.belief.polled[known] = True
        policy.items.last[known] = np.minimum(self._memory.polled_s[known], self._now_s)
        policy.rekey(self._now_s)

    def polled(self, row: int, now_s: float, elapsed_s: float, changed: bool) -> None:
        """A poll told something; the first look at an item only starts its clock."""
        self._grow()
        if elapsed_s <= 0:
            self._policy.items.last[row] = now_s + self._shift_s
            return
        if row in self._polls:
            self._learn()
        self._polls[row] = (self._time(now_s), changed)

    def values(self, now_s: float, floor: Floats) -> Floats:
        """What polling each row now gives per cost; ``floor`` for rows that are not looked at closely."""
        self._time(now_s)
        self._grow()
        self._learn()
        size = self._memory.size
        urgent = self._policy.next(self._now_s, min(size, max(FEWEST, size // POOL_SHARE)))
        rows = np.arange(size) if size <= ALL_ROWS else urgent
        value = floor.copy()
        value[rows] = self._policy.values(rows, self._now_s)
        return value

    def reweighed(self, rows: Ids) -> None:
        """Another weight or cost of these rows."""
        rows = rows[rows < self._policy.items.size]
        self._policy.reweigh(rows, self._memory.weight[rows], self._memory.cost[rows])

    def set_budget(self, budget_per_s: float) -> None:
        """Another budget from now on."""
        self._policy.set_budget(budget_per_s, self._now_s)

    def _time(self, now_s: float) -> float:
        """The policy's own time, which stands still where the clock is set back, and then goes on."""
        self._shift_s = max(self._shift_s, self._now_s - now_s)
        self._now_s = now_s + self._shift_s
        return self._now_s

    def _grow(self) -> None:
        known = self._policy.items.size
        if known < self._memory.size:
            self._policy.add(self._memory.weight[known:], self._memory.cost[known:], self._now_s)

    def _learn(self) -> None:
        if not self._polls:
            return
        rows = np.fromiter(self._polls, dtype=np.int64)
        times = np.array([time_s for time_s, _ in self._polls.values()])
        found = np.array([changed for _, changed in self._polls.values()])
        self._policy.observe(rows, times, found)
        self._polls.clear()
