"""Picks the row that is polled next: the best row of all groups to which requests may start now.

Of N rows, about the best N/150 are put into a pool, with one queue per group. Rows are picked from it, and
after N/300 picks it is built again. This loses 0.02 % of the gain of ranking all rows for each poll. A group
that must wait, or that has as many polls under way as it allows, is set aside until it is ready, so that a
busy host never delays others.

Rows that were never polled go before all others that are not urgent. Lest a listing with a hundred thousand
new items stops all refreshing, every fourth pick then comes from a second pool, of rows that were polled
before: requested and overdue ones, and those whose poll value reaches the shadow price. Rows that become due
again while these pools last are picked beside it (``due_rows``): with a hundred thousand rows, a pool lasts
for up to a second.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from afresh.engine.scheduler.row_policy import Priorities, RowPolicy, Tier
from afresh.policy.due_rows import DueRows
from afresh.rates.segments import rank_within, run_starts
from afresh.values.arrays import Ints

GroupKey: TypeAlias = tuple[int, int]
"""A tuple of two numbers that stand for a source and for one of its groups."""

ReadyTime: TypeAlias = Callable[[GroupKey, float], float]
"""Returns when the next poll of a group may start, given the current time; infinite while the group has as
many polls under way as it allows."""

POOL_SHARE = 300
_FEWEST = 512  # the least number of rows of a pool
_PER_GROUP = 64  # rows of each group in a pool that contains rows of every group
_OLD_S, _OLD = 0.5, 30.0  # a pool is built again after 0.5 s, or 30 times its least age if that is longer
_YOUNG_S, _PER_ROW_S = 0.01, 1e-6  # its least age: 10 ms, or 1 µs per row, as many values change slowly
# Ranking may use 1/20 of the time until 1/16 of the items were polled, and 1/5 afterwards. The waits that
# follow from this are limited to 1 s and 0.25 s.
_FEW_SHARE, _RARELY, _RARELY_S = 16, 20.0, 1.0
_SELDOM, _LONGEST_S = 5.0, 0.25
_NEW_IN_A_ROW = 3  # new rows that are picked before a row that was polled before has its turn


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of a pool with its tier and the value that orders rows within their tier. ``poll_value`` is 0 for
    a row that is not picked for its value."""

    tier: int
    value: float
    row: int
    poll_value: float


class Turns:
    """Remembers in which order groups were picked, longer than a pool lasts: of groups whose best rows have
    equal values, the one that was picked earliest goes first."""

    def __init__(self) -> None:
        self._turn_of: dict[GroupKey, int] = {}
        self._last = 0

    def record(self, group_key: GroupKey) -> None:
        """Record that the group was picked now."""
        self._last += 1
        self._turn_of[group_key] = self._last

    def last_turn(self, group_key: GroupKey) -> int:
        """Return the number of the group's last turn; 0 if it was never picked."""
        return self._turn_of.get(group_key, 0)


class Pool:
    """One queue of rows for each group, and a heap with the best row of each group that is ready."""

    def __init__(
        self,
        is_unavailable: Callable[[int], bool],
        turns: Turns,
        entries: Iterable[tuple[GroupKey, Entry]] = (),
    ) -> None:
        """``entries`` are in the order of priorities, the best first."""
        self._is_unavailable, self._turns = is_unavailable, turns
        self._queues: dict[GroupKey, list[Entry]] = {}  # the best last
        for group_key, entry in entries:
            self._queues.setdefault(group_key, []).append(entry)
        for queue in self._queues.values():
            queue.reverse()
        self._heads = [self._head(group_key) for group_key in self._queues]
        heapq.heapify(self._heads)
        self._waiting: list[tuple[float, GroupKey]] = []
        self._full: set[GroupKey] = set()

    @property
    def group_count(self) -> int:
        """The number of groups that have, or had, rows in this pool."""
        return len(self._queues)

    @property
    def is_blocked(self) -> bool:
        """Whether some group must wait."""
        return len(self._waiting) + len(self._full) > 0

    @property
    def has_no_head(self) -> bool:
        """Whether no group with rows is ready."""
        return not self._heads

    @property
    def has_empty_queue(self) -> bool:
        """Whether all rows of some group were taken."""
        return not all(self._queues.values())

    def pop(self, now_s: float, ready: ReadyTime) -> Entry | None:
        """Remove and return the best entry of the groups that are ready; None if there is none."""
        while self._waiting and self._waiting[0][0] <= now_s:
            self._add_head(heapq.heappop(self._waiting)[1])
        while self._heads:
            group_key = self._heads[0][3]
            queue = self._queues[group_key]
            while queue and self._is_unavailable(queue[-1].row):
                queue.pop()
            heapq.heappop(self._heads)
            if not queue:
                continue
            ready_s = ready(group_key, now_s)
            if math.isinf(ready_s):
                self._full.add(group_key)
            elif ready_s > now_s:
                heapq.heappush(self._waiting, (ready_s, group_key))
            else:
                entry = queue.pop()
                self._turns.record(group_key)
                self._add_head(group_key)
                return entry
        return None

    def pop_of_group(self, group_key: GroupKey, most: int) -> list[Entry]:
        """Remove and return up to ``most`` entries of one group, the best first."""
        queue, found = self._queues.get(group_key, []), list[Entry]()
        while queue and len(found) < most:
            entry = queue.pop()
            if not self._is_unavailable(entry.row):
                found.append(entry)
        return found

    def release_group(self, group_key: GroupKey) -> None:
        """Make a group available again, if it was set aside as full."""
        if group_key in self._full:
            self._full.discard(group_key)
            self._add_head(group_key)

    def waiting_sources(self) -> set[int]:
        """Return the numbers of the sources that have rows in groups to which no request may start now."""
        return {group_key[0] for group_key in (*self._full, *(key for _, key in self._waiting))}

    def next_ready_s(self) -> float:
        """Return the earliest time at which a group that must wait is ready; infinite if no group waits."""
        return self._waiting[0][0] if self._waiting else math.inf

    def _add_head(self, group_key: GroupKey) -> None:
        if self._queues.get(group_key):
            heapq.heappush(self._heads, self._head(group_key))

    def _head(self, group_key: GroupKey) -> tuple[int, float, int, GroupKey]:
        best = self._queues[group_key][-1]
        return -best.tier, -best.value, self._turns.last_turn(group_key), group_key


class Picker:
    """Picks rows one by one, and marks each as busy until its poll is over."""

    def __init__(self, policy: RowPolicy, elapsed_s: Callable[[], float] = lambda: 0.0) -> None:
        """``elapsed_s`` reads a stopwatch in seconds: if ranking takes long, it is done more rarely."""
        self._policy, self._item_rows, self._elapsed_s = policy, policy.item_rows, elapsed_s
        self._turns = Turns()
        self._pool = self._polled_before = Pool(self._is_unavailable, self._turns)
        self._new_in_a_row, self._has_new = 0, False
        self._due, self._overdue = DueRows(self._due_s), DueRows(self._overdue_s)
        self._built_s = -math.inf
        # Picks from this pool, seconds that building it took, expected picks, largest bulk until now.
        self._taken, self._took_s, self._expected, self._largest = 0, 0.0, 0, 0
        self._is_blocked = False
        self._group_count = self._counted_size = self._busy_count = 0

    def invalidate(self) -> None:
        """Rank again at the next pick, because items, budget or beliefs changed."""
        self._built_s = -math.inf

    def next(self, now_s: float, ready: ReadyTime) -> int | None:
        """Pick the row to poll now, mark it as busy and return it; None if no row may be polled now."""
        if self._is_old(now_s):
            self._build(now_s)
        entry = self._polled_before_entry(now_s, ready) if self._new_in_a_row >= _NEW_IN_A_ROW else None
        if entry is None:
            entry = self._pool.pop(now_s, ready)
        if entry is None:
            # Groups without rows in this pool may be ready; the next pool then has rows of every group.
            self._is_blocked = self._pool.is_blocked and self._pool.group_count < self._group_count
            return None
        self._new_in_a_row = self._new_in_a_row + 1 if entry.tier == Tier.NEW else 0
        return self.take(entry.row, entry.poll_value)

    def _polled_before_entry(self, now_s: float, ready: ReadyTime) -> Entry | None:
        """Return an entry of a row that was polled before: an overdue one, one that was best when the pools
        were built, or one that has become due since. Where a source observes the staleness of its items, or
        has a cursor that proved right, the time alone does not make a row due."""

        def can_poll(row: int) -> bool:
            may_poll = not self._is_unavailable(row) and self._item_rows.not_before_s[row] <= now_s
            return may_poll and ready(self._item_rows.group_key(row), now_s) <= now_s

        tier, row = Tier.OVERDUE, self._overdue.pop(now_s, can_poll)
        if row is None:
            entry = self._polled_before.pop(now_s, ready)
            policy = self._policy
            if entry is not None or policy.shadow_price <= 0 or policy.staleness or policy.settled_sources:
                return entry
            tier, row = Tier.RANKED, self._due.pop(now_s, can_poll)
        if row is None:
            return None
        self._turns.record(self._item_rows.group_key(row))
        return Entry(tier, 0.0, row, 0.0)

    def record_polled(self, rows: Ints, now_s: float) -> None:
        """Record that polls of ``rows`` ended and are committed, so that the rows can be picked again as soon
        as they are due. Rows that are due later than a pool lasts will be in the next one."""
        if not self._has_new:
            return
        until_s = now_s + max(_OLD_S, _OLD * self._young_s)
        for row in rows.tolist():
            for due, time_s in ((self._due, self._due_s), (self._overdue, self._overdue_s)):
                if time_s(row) < until_s:
                    due.add(row)

    def _due_s(self, row: int) -> float:
        return float(self._item_rows.due_s[row])

    def _overdue_s(self, row: int) -> float:
        return float(self._item_rows.polled_s[row] + self._item_rows.max_interval_s[row])

    def take_more(self, group_key: GroupKey, most: int) -> list[int]:
        """Pick up to ``most`` further rows of a group, mark them as busy and return them, the best first."""
        self._largest = max(self._largest, most)
        return [self.take(entry.row, entry.poll_value) for entry in self._pool.pop_of_group(group_key, most)]

    def take(self, row: int, poll_value: float = 0.0) -> int:
        """Mark a row as busy and return it; ``poll_value`` is 0 if the row was not picked for its value."""
        self._item_rows.is_busy[row] = True
        self._policy.record_pick(poll_value)
        self._taken += 1
        return row

    def release_group(self, group_key: GroupKey) -> None:
        """Make a group available again when one of its polls ended, if it was set aside as full."""
        self._pool.release_group(group_key)
        self._polled_before.release_group(group_key)

    def waiting_sources(self) -> set[int]:
        """Return the numbers of the sources that have rows in groups to which no request may start now."""
        return self._pool.waiting_sources()

    def next_ready_s(self) -> float:
        """Return the earliest time at which a group that must wait is ready; infinite if no group waits."""
        return self._pool.next_ready_s()

    def _is_old(self, now_s: float) -> bool:
        age_s, young_s = now_s - self._built_s, self._young_s
        if age_s < 0 or age_s >= max(_OLD_S, _OLD * young_s):  # below 0 the clock was set back
            return True
        if age_s < young_s:
            return False
        if self._taken >= max(1, self._item_rows.size // POOL_SHARE):
            return True
        before = self._polled_before
        if before.group_count and before.has_no_head and not before.is_blocked:
            return True  # its rows are polled again as soon as they are due, however long the pool lasts
        if self._pool.group_count == 0:  # a new pool would be empty too, unless polls have ended since
            return int(np.count_nonzero(self._item_rows.is_busy)) < self._busy_count
        # If every group has rows in this pool and is busy, a new pool would offer no further row.
        return self._pool.has_no_head and (self._is_blocked or self._pool.has_empty_queue)

    @property
    def _young_s(self) -> float:
        few = self._taken < self._item_rows.size // _FEW_SHARE
        rest_s = min(_RARELY * self._took_s, _RARELY_S) if few else min(_SELDOM * self._took_s, _LONGEST_S)
        return max(_YOUNG_S, rest_s, _PER_ROW_S * self._item_rows.size)

    def _build(self, now_s: float) -> None:
        began_s, age_s = self._elapsed_s(), now_s - self._built_s
        found, item_rows = self._policy.priorities(now_s), self._item_rows
        # Twice the picks until this pool may be built again, if they go on at the pace of the last pool.
        self._expected = int(2 * self._taken * self._young_s / age_s) if 0 < age_s < math.inf else 0
        if self._counted_size != item_rows.size:
            self._group_count, self._counted_size = np.unique(self._group_codes()).size, item_rows.size
        self._has_new = bool(np.any(found.tier == Tier.NEW))
        if not self._has_new:
            self._due.clear()
            self._overdue.clear()
        self._pool = self._filled_pool(self._best_rows(found), found)
        self._polled_before = self._filled_pool(self._best_polled_before(found), found)
        self._built_s, self._taken, self._busy_count = now_s, 0, int(np.count_nonzero(item_rows.is_busy))
        self._took_s = self._elapsed_s() - began_s

    def _filled_pool(self, rows: Ints, found: Priorities) -> Pool:
        """Return a pool of ``rows``, which are in the order of their priorities, the best first."""
        entries = []
        for row in rows.tolist():
            tier, value = int(found.tier[row]), float(found.value[row])
            poll_value = value if tier == Tier.RANKED else 0.0
            entries.append((self._item_rows.group_key(row), Entry(tier, value, row, poll_value)))
        return Pool(self._is_unavailable, self._turns, entries)

    def _best_polled_before(self, found: Priorities) -> Ints:
        """Return the best rows that were polled before and would be polled now if no row were new."""
        price, is_ranked = self._policy.shadow_price, found.tier == Tier.RANKED
        if not self._has_new:
            return np.empty(0, dtype=np.int64)
        is_worth = is_ranked & (found.value >= price) if price > 0 else np.zeros(found.tier.size, dtype=bool)
        rows = np.flatnonzero(is_worth | (found.tier == Tier.OVERDUE) | (found.tier == Tier.REQUESTED))
        rows = first_rows(rows, found, _FEWEST) if rows.size > _FEWEST else rows
        return rows[np.lexsort((-found.value[rows], -found.tier[rows]))]

    def _best_rows(self, found: Priorities) -> Ints:
        tier, value = found.tier, found.value
        rows = np.flatnonzero(tier > Tier.BARRED)
        few = max(_FEWEST, 2 * rows.size // POOL_SHARE, self._expected, 2 * self._largest)
        if self._is_blocked and rows.size > few:
            rows = self._best_rows_of_each_group(rows, found)
        elif rows.size > few:
            new = rows[tier[rows] == Tier.NEW]
            # New rows all have the same value. They are picked evenly from all, because in order of rows a
            # source would wait for every source that was registered before it.
            spread = new[:: max(new.size // few, 1)]
            rows = spread if spread.size >= few else first_rows(rows, found, few)
        return rows[np.lexsort((-value[rows], -tier[rows]))]

    def _best_rows_of_each_group(self, rows: Ints, found: Priorities) -> Ints:
        """Return the best rows of each group; needed if the best rows of all are in groups that must wait."""
        group = self._group_codes()[rows]
        order = np.lexsort((-found.value[rows], -found.tier[rows], group))
        return rows[order[rank_within(run_starts(group[order])) < _PER_GROUP]]

    def _group_codes(self) -> Ints:
        groups = int(self._item_rows.group.max(initial=0)) + 1
        return np.asarray(self._item_rows.source * groups + self._item_rows.group)

    def _is_unavailable(self, row: int) -> bool:
        return bool(self._item_rows.is_busy[row]) or not self._item_rows.is_active[row]


def first_rows(rows: Ints, found: Priorities, few: int) -> Ints:
    """Return the ``few`` best of ``rows``: those of higher tiers, then those with the highest values."""
    higher, ranked = rows[found.tier[rows] > Tier.RANKED], rows[found.tier[rows] == Tier.RANKED]
    if higher.size >= few:
        order = np.lexsort((-found.value[higher], -found.tier[higher]))
        return higher[order[:few]]
    left = few - higher.size
    if ranked.size > left:
        ranked = ranked[np.argpartition(-found.value[ranked], left)[:left]]
    return np.concatenate((higher, ranked))
