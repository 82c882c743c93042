"""Every item as one row of arrays: what the engine decides from, while the store remembers.

Rows are in order of id, and ids only grow, so an item's row is found by bisection; a removed item keeps
its row, inactive, until the next start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from afresh.engine.scheduler import stored_beliefs
from afresh.engine.scheduler.stored_beliefs import StoredBeliefs
from afresh.values.arrays import Float64s, Ints
from afresh.values.items import STATUSES
from afresh.values.stored import PolicyColumns

_ROUNDED_S = 1e-3  # a time that comes back from the store may be rounded
_ACTIVE = STATUSES.index("active")
_FLOATS = ("weight", "cost", "min_interval_s", "max_interval_s", "prior_rate_per_s", "polled_s", "due_s")


class ItemRows:
    """Columns over all items, one row for each item. ``not_before_s`` is the earliest time of the next poll,
    ``is_busy`` marks items whose poll is under way, ``is_requested`` items that are polled before others.
    ``pending_beliefs`` holds the beliefs of loaded items, each with the row of its first item, until the
    ranking takes them. ``value_factor`` and ``cost_factor`` multiply weight and cost where a poll is ranked:
    what a right copy is worth, and what a poll was measured to cost. Both are 1 where nothing is known."""

    def __init__(self) -> None:
        self.size = 0
        self.ids, self.source, self.group = (np.empty(0, dtype=np.int64) for _ in range(3))
        self.is_active, self.is_busy, self.is_requested = (np.empty(0, dtype=np.bool_) for _ in range(3))
        self.weight, self.cost, self.prior_rate_per_s = (np.empty(0) for _ in range(3))
        self.min_interval_s, self.max_interval_s = np.empty(0), np.empty(0)
        self.polled_s, self.due_s, self.not_before_s = (np.empty(0) for _ in range(3))
        self.value_factor, self.cost_factor = np.empty(0), np.empty(0)
        self.pending_beliefs: list[tuple[int, StoredBeliefs]] = []

    def load(self, batches: Iterable[PolicyColumns]) -> int:
        """Take in items with ids above all known ones; return how many."""
        parts = [part for part in batches if part.id.size]
        if not parts:
            return 0
        self._extend("ids", [part.id for part in parts])
        for name in ("source", "group", *_FLOATS):
            self._extend(name, [getattr(part, name) for part in parts])
        self._extend("is_active", [part.status == _ACTIVE for part in parts])
        first, holds = self.size, []
        for part in parts:
            found = stored_beliefs.unpack(part.beliefs, part.belief_size)
            self.pending_beliefs.append((first, found))
            holds.append(np.minimum(found.not_before_s, part.due_s))
            first += part.id.size
        self._extend("not_before_s", holds)
        added = self.ids.size - self.size
        for name in ("is_busy", "is_requested"):
            self._extend(name, [np.zeros(added, dtype=np.bool_)])
        for name in ("value_factor", "cost_factor"):
            self._extend(name, [np.ones(added)])
        self.size = int(self.ids.size)
        return added

    def _extend(self, name: str, parts: Sequence[npt.NDArray[np.generic]]) -> None:
        setattr(self, name, np.concatenate((getattr(self, name), *parts)))

    def ranked_weight(self, rows: Ints | slice) -> Float64s:
        """Return the weight by which these rows are ranked, 0 where they are not polled."""
        return np.where(self.is_active[rows], self.weight[rows] * self.value_factor[rows], 0.0)

    def ranked_cost(self, rows: Ints | slice) -> Float64s:
        return np.asarray(self.cost[rows] * self.cost_factor[rows])

    def group_key(self, row: int) -> tuple[int, int]:
        return int(self.source[row]), int(self.group[row])

    def row(self, item_id: int) -> int | None:
        row = int(np.searchsorted(self.ids, item_id))
        return row if row < self.size and self.ids[row] == item_id else None

    def rows(self, item_ids: Sequence[int]) -> Ints:
        """Return the rows of those of these items that are known."""
        wanted = np.asarray(item_ids, dtype=np.int64)
        rows = np.searchsorted(self.ids, wanted)
        rows = np.minimum(rows, max(self.size - 1, 0))
        return rows[self.ids[rows] == wanted] if self.size else rows[:0]

    def edit(self, item_ids: Sequence[int], now: PolicyColumns, now_s: float) -> None:
        """Follow changed and removed items; ``now`` has those that are still there."""
        rows = self.rows(item_ids)
        self.is_active[rows] = False
        rows = self.rows(now.id.tolist())
        part = np.isin(now.id, self.ids[rows])
        # A new due time that has come means that a person wants the item polled now.
        due_s = now.due_s[part]
        is_requested = (due_s <= now_s) & (due_s != self.due_s[rows])
        self.is_requested[rows[is_requested]] = True
        self.not_before_s[rows[is_requested]] = -np.inf
        for name in _FLOATS:
            if name != "polled_s":
                getattr(self, name)[rows] = getattr(now, name)[part]
        self.is_active[rows] = now.status[part] == _ACTIVE

    def catch_up(self, row: int, polled_s: float) -> bool:
        """Take the time of a poll by another engine; return whether it is later than ours."""
        if polled_s <= self.polled_s[row] + _ROUNDED_S:
            return False
        self.polled_s[row] = polled_s
        return True
