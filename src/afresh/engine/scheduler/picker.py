"""Which item next: the one worth most among the groups that may be asked now.

The rows worth most are taken into a pool, some N/300 at a time (which loses 0.02 % against ranking anew for
each poll), and lie there in a line per group. A group that rests, or is asked as often at once as it allows,
leaves the race until it is ready, so one host that is full never starves the others.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.values.arrays import Float64s, Ints

GroupKey: TypeAlias = tuple[int, int]
"""The codes of a source and a group."""

Ready: TypeAlias = Callable[[GroupKey, float], float]
"""When the next poll of a place may start, given the time; infinite while it is asked as often as allowed."""

POOL_SHARE = 300
_FEWEST = 512  # rows of a pool
_PER_GROUP = 64  # rows of a pool that holds some of every group
_OLD_S, _OLD = 0.5, 30.0  # a pool of millions ages slowly, as their worth does
_YOUNG_S, _PER_MANY_S = 0.01, 1e-6
# Ranking may take a twentieth of the time until a sixteenth of the items was polled, and a fifth after that,
# unless it takes long.
_FEW_SHARE, _RARELY, _RARELY_S = 16, 20.0, 1.0
_SELDOM, _LONGEST_S = 5.0, 0.25


class Picker:
    """Takes rows one by one, each marked busy until the poll is over."""

    def __init__(
        self, item_rows: ItemRows, policy: RowPolicy, elapsed_s: Callable[[], float] = lambda: 0.0
    ) -> None:
        """``elapsed_s`` tells how long ranking takes, and so how seldom it should be done."""
        self.item_rows, self.policy, self._elapsed_s = item_rows, policy, elapsed_s
        self._lines: dict[GroupKey, list[tuple[float, int]]] = {}
        self._heads: list[tuple[float, int, GroupKey]] = []
        self._turns: dict[GroupKey, int] = {}  # the last of each; of equals, whose is longest ago goes first
        self._turn = 0
        self._resting: list[tuple[float, GroupKey]] = []
        self._full: set[GroupKey] = set()
        self._built_s = -math.inf
        self._taken, self._took_s, self._lasts, self._largest = 0, 0.0, 0, 0
        self._blocked = False
        self._group_count = self._counted_size = 0

    def invalidate(self) -> None:
        """Items, budget or beliefs are others: rank anew at the next pick."""
        self._built_s = -math.inf

    def next(self, now_s: float, ready: Ready) -> int | None:
        """The row to poll now, marked busy; None if there is none that may be polled now."""
        if self._is_old(now_s):
            self._build(now_s)
        self._wake(now_s)
        while self._heads:
            group_key = self._heads[0][2]
            line = self._lines[group_key]
            while line and self._is_unavailable(line[-1][1]):
                line.pop()
            if not line:
                heapq.heappop(self._heads)
                continue
            ready_s = ready(group_key, now_s)
            if ready_s > now_s:
                heapq.heappop(self._heads)
                self._rest(group_key, ready_s)
                continue
            poll_value, row = line.pop()
            self._requeue(group_key)
            return self.take(row, poll_value)
        # Perhaps others are ready, whose items are worth less than all in this pool.
        self._blocked = len(self._resting) + len(self._full) > 0 and len(self._lines) < self._group_count
        return None

    def take_more(self, group_key: GroupKey, most: int) -> list[int]:
        """Up to so many more rows of a place, the best of them first, marked busy."""
        self._largest = max(self._largest, most)
        line = self._lines.get(group_key, [])
        rows: list[int] = []
        while line and len(rows) < most:
            poll_value, row = line.pop()
            if not self._is_unavailable(row):
                rows.append(self.take(row, poll_value))
        return rows

    def take(self, row: int, poll_value: float) -> int:
        """This row is polled now, whoever chose it."""
        self.item_rows.is_busy[row] = True
        self.policy.record_pick(poll_value)
        self._taken += 1
        return row

    def group_key(self, row: int) -> GroupKey:
        """The source and group of a row."""
        return int(self.item_rows.source[row]), int(self.item_rows.group[row])

    def release_group(self, group_key: GroupKey) -> None:
        """A poll there is over: if it was full it is no longer."""
        if group_key in self._full:
            self._full.discard(group_key)
            self._race(group_key)

    def next_ready_s(self) -> float:
        """When a resting group may be asked again; infinite if none rests."""
        return self._resting[0][0] if self._resting else math.inf

    def _is_old(self, now_s: float) -> bool:
        age_s, young_s = now_s - self._built_s, self._young_s
        if age_s < 0:
            return True  # the clock was set back
        if age_s >= max(_OLD_S, _OLD * young_s):
            return True
        enough = self._taken >= max(1, self.item_rows.size // POOL_SHARE)
        return age_s >= young_s and (enough or self._is_exhausted())

    def _is_exhausted(self) -> bool:
        """Whether another pool may have more to offer now: not if all groups have rows here, and are busy."""
        return not self._heads and (self._blocked or not all(self._lines.values()))

    @property
    def _young_s(self) -> float:
        few = self._taken < self.item_rows.size // _FEW_SHARE
        rest_s = min(_RARELY * self._took_s, _RARELY_S) if few else min(_SELDOM * self._took_s, _LONGEST_S)
        return max(_YOUNG_S, rest_s, _PER_MANY_S * self.item_rows.size)

    def _build(self, now_s: float) -> None:
        begun_s, age_s = self._elapsed_s(), now_s - self._built_s
        poll_value = self.policy.poll_values(now_s)
        # Enough for as long as the pool is young, at the pace of the last one.
        self._lasts = int(2 * self._taken * self._young_s / age_s) if 0 < age_s < math.inf else 0
        if self._counted_size != self.item_rows.size:
            self._group_count, self._counted_size = np.unique(self._codes()).size, self.item_rows.size
        rows = self._best(poll_value)
        self._lines = {}
        for row in rows[::-1].tolist():
            self._lines.setdefault(self.group_key(row), []).append((float(poll_value[row]), row))
        self._resting, self._full = [], set()
        self._heads = [self._head(group_key) for group_key in self._lines]
        heapq.heapify(self._heads)
        self._built_s, self._taken = now_s, 0
        self._took_s = self._elapsed_s() - begun_s

    def _best(self, poll_value: Float64s) -> Ints:
        """The rows for the pool, best first."""
        rows = np.flatnonzero(poll_value > -np.inf)
        few = max(_FEWEST, 2 * rows.size // POOL_SHARE, self._lasts, 2 * self._largest)
        if self._blocked and rows.size > few:
            rows = self._best_of_each(rows, poll_value)
        elif rows.size > few:
            new = rows[poll_value[rows] == np.inf]
            # Of items all alike evenly from all, or a source would wait for those registered before it.
            even = new[:: max(new.size // few, 1)]
            rows = even if even.size >= few else rows[np.argpartition(-poll_value[rows], few)[:few]]
        return rows[np.argsort(-poll_value[rows], kind="stable")]

    def _best_of_each(self, rows: Ints, poll_value: Float64s) -> Ints:
        """The best few of every group: what is needed when the best of all are in groups that rest."""
        group_key = self._codes()[rows]
        order = np.lexsort((-poll_value[rows], group_key))
        group_key = group_key[order]
        first = np.flatnonzero(np.r_[True, group_key[1:] != group_key[:-1]])
        rank = np.arange(group_key.size) - np.repeat(first, np.diff(np.r_[first, group_key.size]))
        return rows[order[rank < _PER_GROUP]]

    def _codes(self) -> Ints:
        """One number for the place of every row."""
        groups = int(self.item_rows.group.max(initial=0)) + 1
        return np.asarray(self.item_rows.source * groups + self.item_rows.group)

    def _is_unavailable(self, row: int) -> bool:
        return bool(self.item_rows.is_busy[row]) or not self.item_rows.is_active[row]

    def _wake(self, now_s: float) -> None:
        while self._resting and self._resting[0][0] <= now_s:
            _, group_key = heapq.heappop(self._resting)
            self._race(group_key)

    def _rest(self, group_key: GroupKey, ready_s: float) -> None:
        if math.isinf(ready_s):
            self._full.add(group_key)
        else:
            heapq.heappush(self._resting, (ready_s, group_key))

    def _requeue(self, group_key: GroupKey) -> None:
        """The head of a line was taken: its place in the race is that of the next."""
        heapq.heappop(self._heads)
        self._turn += 1
        self._turns[group_key] = self._turn
        self._race(group_key)

    def _race(self, group_key: GroupKey) -> None:
        if self._lines.get(group_key):
            heapq.heappush(self._heads, self._head(group_key))

    def _head(self, group_key: GroupKey) -> tuple[float, int, GroupKey]:
        return -self._lines[group_key][-1][0], self._turns.get(group_key, 0), group_key
