"""Every item as one row of arrays: what the engine decides from. The store remembers, memory decides.

Rows are in order of id, and ids only grow, so an item's row is found by bisection; a removed item keeps
its row, inactive, until the next start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from afresh.engine.mind import beliefs
from afresh.engine.mind.beliefs import Kept
from afresh.values.arrays import Float64s, Ints
from afresh.values.items import STATUSES
from afresh.values.stored import PolicyColumns

_ROUNDED_S = 1e-3  # a time that comes back from the store may be rounded
_ACTIVE = STATUSES.index("active")
_FLOATS = ("weight", "cost", "min_interval_s", "max_interval_s", "prior_rate_per_s", "polled_s", "due_s")


class Memory:
    """Columns over all items. ``hold_s`` is when to try again at the earliest, ``busy`` marks polls under
    way, ``asked`` items to be polled before others. Beliefs lie in ``kept``, with the row of their first item
    each, until whoever ranks the items takes them.

    ``stake`` and ``outlay`` multiply weight and cost where a poll is ranked: what a right copy is worth, and
    what a poll was measured to take; 1 where neither is known."""

    def __init__(self) -> None:
        self.size = 0
        self.ids = np.empty(0, dtype=np.int64)
        self.source = np.empty(0, dtype=np.int64)
        self.group = np.empty(0, dtype=np.int64)
        self.active = np.empty(0, dtype=np.bool_)
        self.busy = np.empty(0, dtype=np.bool_)
        self.asked = np.empty(0, dtype=np.bool_)
        self.weight = np.empty(0)
        self.cost = np.empty(0)
        self.min_interval_s = np.empty(0)
        self.max_interval_s = np.empty(0)
        self.prior_rate_per_s = np.empty(0)
        self.polled_s = np.empty(0)
        self.due_s = np.empty(0)
        self.hold_s = np.empty(0)
        self.stake = np.empty(0)
        self.outlay = np.empty(0)
        self.kept: list[tuple[int, Kept]] = []

    def load(self, batches: Iterable[PolicyColumns]) -> int:
        """Take in items with ids above all known; how many."""
        parts = [part for part in batches if part.id.size]
        if not parts:
            return 0
        self._extend("ids", [part.id for part in parts])
        for name in ("source", "group", *_FLOATS):
            self._extend(name, [getattr(part, name) for part in parts])
        self._extend("active", [part.status == _ACTIVE for part in parts])
        first, holds = self.size, []
        for part in parts:
            found = beliefs.unpack(part.beliefs, part.belief_size)
            self.kept.append((first, found))
            holds.append(np.minimum(found.hold_s, part.due_s))
            first += part.id.size
        self._extend("hold_s", holds)
        added = self.ids.size - self.size
        for name in ("busy", "asked"):
            self._extend(name, [np.zeros(added, dtype=np.bool_)])
        for name in ("stake", "outlay"):
            self._extend(name, [np.ones(added)])
        self.size = int(self.ids.size)
        return added

    def _extend(self, name: str, parts: Sequence[npt.NDArray[np.generic]]) -> None:
        setattr(self, name, np.concatenate((getattr(self, name), *parts)))

    def ranked_weight(self, rows: Ints | slice) -> Float64s:
        """What these rows count for, 0 where they are not polled."""
        return np.where(self.active[rows], self.weight[rows] * self.stake[rows], 0.0)

    def ranked_cost(self, rows: Ints | slice) -> Float64s:
        """What a poll of these rows costs."""
        return np.asarray(self.cost[rows] * self.outlay[rows])

    def row(self, item_id: int) -> int | None:
        """The row of an item, None if it is not known."""
        row = int(np.searchsorted(self.ids, item_id))
        return row if row < self.size and self.ids[row] == item_id else None

    def rows(self, item_ids: Sequence[int]) -> Ints:
        """The rows of the known among these items."""
        wanted = np.asarray(item_ids, dtype=np.int64)
        rows = np.searchsorted(self.ids, wanted)
        rows = np.minimum(rows, max(self.size - 1, 0))
        return rows[self.ids[rows] == wanted] if self.size else rows[:0]

    def edit(self, item_ids: Sequence[int], now: PolicyColumns, now_s: float) -> None:
        """These items were changed or removed by someone: ``now`` has those that are still there."""
        rows = self.rows(item_ids)
        self.active[rows] = False
        rows = self.rows(now.id.tolist())
        part = np.isin(now.id, self.ids[rows])
        # Due now, and not as it was: a person wants it polled, be it overdue already; it waits no longer.
        due_s = now.due_s[part]
        asked = (due_s <= now_s) & (due_s != self.due_s[rows])
        self.asked[rows[asked]] = True
        self.hold_s[rows[asked]] = -np.inf
        for name in _FLOATS:
            if name != "polled_s":
                getattr(self, name)[rows] = getattr(now, name)[part]
        self.active[rows] = now.status[part] == _ACTIVE

    def catch_up(self, row: int, polled_s: float) -> bool:
        """Whether another engine has polled an item since; then its clock counts."""
        if polled_s <= self.polled_s[row] + _ROUNDED_S:
            return False
        self.polled_s[row] = polled_s
        return True
