"""A history: every true change of every item between a start and an end. Every copy is fresh at the start."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from afresh.values.arrays import ArrayLike, Bools, Float64s, Ints, nonnegative
from afresh.values.errors import InputError

UNSEEN_CHANGES = 0.2
"""Changes that are assumed of an item without any change in the history: its true rate may be above 0."""


@dataclass(frozen=True, slots=True)
class ChangeHistory:
    """All changes of all items in the period after ``start`` up to and including ``end``.
    Item i changes at the sorted times ``time[first[i]:first[i + 1]]``. ``value`` is the item's content (a
    number) after each change, ``initial`` that at the start; None if not known."""

    first: Ints
    time: Float64s
    start: float
    end: float
    weight: Float64s
    cost: Float64s
    value: Float64s | None = None
    initial: Float64s | None = None

    @classmethod
    def of(
        cls,
        items: int,
        item: ArrayLike,
        time: ArrayLike,
        start: float,
        end: float,
        *,
        weights: ArrayLike | None = None,
        costs: ArrayLike | None = None,
        values: ArrayLike | None = None,
        initial: ArrayLike | None = None,
    ) -> ChangeHistory:
        """Build from ``item`` (numbered from 0) and ``time`` of each change, in any order of the changes.
        ``values`` holds the content after each change; ``weights``, ``costs`` and ``initial`` are per item.

        >>> history = ChangeHistory.of(2, [1, 0, 1], [5.0, 3.0, 2.0], 0.0, 10.0)
        >>> history.time.tolist(), history.rates().tolist()
        ([3.0, 2.0, 5.0], [0.1, 0.2])
        >>> ChangeHistory.of(2, [2], [5.0], 0.0, 10.0)
        Traceback (most recent call last):
        afresh.values.errors.InputError: change 0 is of item 2: items are numbered from 0 to 1
        """
        which, when = np.asarray(item, dtype=np.int64), np.asarray(time, dtype=np.float64)
        _check(items, which, when, start, end)
        order = np.lexsort((when, which))
        first = np.searchsorted(which[order], np.arange(items + 1))
        weight = _per_item("weight", weights, items)
        cost = _per_item("cost", costs, items)
        if cost.min() <= 0:
            raise InputError("a cost is 0: a poll must cost something")
        value = None if values is None else np.asarray(values, dtype=np.float64)[order]
        start_value = None if initial is None else np.asarray(initial, dtype=np.float64)
        return cls(first, when[order], float(start), float(end), weight, cost, value, start_value)

    @property
    def items(self) -> int:
        """The number of items, including those that never change."""
        return self.first.size - 1

    @property
    def length(self) -> float:
        return self.end - self.start

    @property
    def change_item(self) -> Ints:
        """The item of each entry of ``time``."""
        return np.repeat(np.arange(self.items), np.diff(self.first))

    @property
    def item_weight(self) -> Float64s:
        """The weight of each item in means over the items: ones if all weights are 0."""
        return self.weight if self.weight.sum() > 0 else np.ones(self.items)

    def rates(self, if_none: float = 0.0) -> Float64s:
        """Return each item's mean rate over the history; items without a change get ``if_none`` changes."""
        changes = np.diff(self.first).astype(np.float64)
        return np.asarray(np.where(changes > 0, changes, if_none) / self.length)


def until(history: ChangeHistory, end: float) -> ChangeHistory:
    """Return the part of a history up to ``end``.

    >>> until(ChangeHistory.of(2, [0, 0, 1], [2.0, 5.0, 4.0], 0.0, 10.0), 4.5).time.tolist()
    [2.0, 4.0]
    """
    kept = history.time <= end
    value = None if history.value is None else history.value[kept]
    first = np.append(0, np.cumsum(kept))[history.first]
    return replace(history, first=first, time=history.time[kept], end=end, value=value)


class HistoryPoller:
    """Answers polls of a history: has an item changed since its previous poll?
    Every change has a rank: its position among the changes of all items by time. The number
    item · (number of ranks) + rank is sorted by item and time. So two binary searches answer a poll exactly:
    one for the rank of the poll's time, one for the place among the changes of its item.

    >>> watch = HistoryPoller(ChangeHistory.of(2, [0, 0, 1], [2.0, 5.0, 4.0], 0.0, 10.0))
    >>> [watch.poll(np.array([0, 1]), np.array([now, now])).tolist() for now in (2.0, 4.5, 9.0)]
    [[True, False], [False, True], [True, False]]
    """

    def __init__(self, history: ChangeHistory) -> None:
        order = np.argsort(history.time, kind="stable")
        rank = np.empty(order.size, dtype=np.int64)
        rank[order] = np.arange(order.size)
        self.times: Float64s = history.time[order]
        self.ranks = order.size + 1
        self.keys: Ints = history.change_item * self.ranks + rank
        self.first: Ints = history.first[:-1]
        self.changes: Float64s = np.append(history.time, np.nan)
        self.place: Ints = self.first.copy()

    def poll(self, items: Ints, now: Float64s) -> Bools:
        """Return whether each of these distinct items has changed since its previous poll.
        A change at exactly the time of the poll, ``now``, is found."""
        return self.count_changes(items, now) > 0

    def count_changes(self, items: Ints, now: Float64s) -> Ints:
        """Poll these items as ``poll`` does, and return how often each has changed since its previous
        poll."""
        passed = np.searchsorted(self.times, now, side="right")
        place = np.searchsorted(self.keys, items * self.ranks + passed)
        count = place - self.place[items]
        self.place[items] = place
        return np.asarray(count)

    def last_changes(self, items: Ints) -> Float64s:
        """Return the time of the last change of each item up to its last poll; NaN if it has not changed.

        >>> watch = HistoryPoller(ChangeHistory.of(2, [0, 0], [2.0, 5.0], 0.0, 10.0))
        >>> _ = watch.poll(np.array([0, 1]), np.array([6.0, 6.0])); watch.last_changes(np.array([0, 1]))
        array([ 5., nan])
        """
        place = self.place[items]
        changed = place > self.first[items]
        return np.where(changed, self.changes[np.where(changed, place - 1, 0)], np.nan)


def _per_item(name: str, given: ArrayLike | None, items: int) -> Float64s:
    """Return ``given`` as an array with one entry per item, or ones if it is None."""
    found = nonnegative(name, np.ones(items) if given is None else given).astype(np.float64)
    if found.shape != (items,):
        raise InputError(f"there are {found.size} {name}s: one is needed for each of the {items} items")
    return found


def _check(items: int, item: Ints, time: Float64s, start: float, end: float) -> None:
    if items < 1:
        raise InputError("a history needs items")
    if not start < end:
        raise InputError(f"the window is empty: it starts at {start:g} and ends at {end:g}")
    if item.shape != time.shape or item.ndim != 1:
        raise InputError(f"a history has as many items as times, not {item.size} and {time.size}")
    wrong = (item < 0) | (item >= items)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"change {at} is of item {item[at]}: items are numbered from 0 to {items - 1}")
    outside = ~((time >= start) & (time <= end))
    if outside.any():
        at = int(np.argmax(outside))
        raise InputError(f"change {at} is at {time[at]:.10g}: outside the window {start:.10g} to {end:.10g}")
