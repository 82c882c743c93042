"""A true history: every change of every item between a start and an end. Every copy is fresh at the start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.rates.observations import Bools, Float64s, Ints
from afresh.values.arrays import ArrayLike, nonnegative
from afresh.values.errors import InputError

NEVER = 0.2
"""Changes per window ascribed to an item that has none: what is not seen to change may still do so."""


@dataclass(frozen=True, slots=True)
class History:
    """Item i changes at ``time[first[i]:first[i + 1]]``, sorted; the window is (``start``, ``end``]."""

    first: Ints
    time: Float64s
    start: float
    end: float
    weight: Float64s
    cost: Float64s

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
    ) -> History:
        """From pairs of item (numbered from 0) and time, in any order.

        >>> history = History.of(2, [1, 0, 1], [5.0, 3.0, 2.0], 0.0, 10.0)
        >>> history.changes_of(1).tolist(), history.rates().tolist()
        ([2.0, 5.0], [0.1, 0.2])
        >>> History.of(2, [2], [5.0], 0.0, 10.0)
        Traceback (most recent call last):
        afresh.values.errors.InputError: change 0 is of item 2: items are numbered from 0 to 1
        """
        which, when = np.asarray(item, dtype=np.int64), np.asarray(time, dtype=np.float64)
        _check(items, which, when, start, end)
        order = np.lexsort((when, which))
        first = np.searchsorted(which[order], np.arange(items + 1))
        weight = nonnegative("weight", np.ones(items) if weights is None else weights)
        cost = nonnegative("cost", np.ones(items) if costs is None else costs)
        if weight.shape != (items,) or cost.shape != (items,):
            raise InputError(f"weights and costs must have one entry for each of the {items} items")
        if cost.size and cost.min() <= 0:
            raise InputError("a cost is 0: a poll must cost something")
        return cls(
            first, when[order], float(start), float(end), weight.astype(np.float64), cost.astype(np.float64)
        )

    @property
    def items(self) -> int:
        """How many items there are, those that never change too."""
        return self.first.size - 1

    @property
    def length(self) -> float:
        """Of the window."""
        return self.end - self.start

    @property
    def change_item(self) -> Ints:
        """The item of each entry of ``time``."""
        return np.repeat(np.arange(self.items), np.diff(self.first))

    def changes_of(self, item: int) -> Float64s:
        """When this item changes."""
        return self.time[self.first[item] : self.first[item + 1]]

    def rates(self, never: float = 0.0) -> Float64s:
        """Mean rate of each item over the window; ``never`` changes stand for none."""
        changes = np.diff(self.first).astype(np.float64)
        return np.asarray(np.where(changes > 0, changes, never) / self.length)


def advance(history: History, items: Ints, place: Ints, now: Float64s) -> tuple[Ints, Bools]:
    """For items whose next unseen change is ``place``: that after ``now``, and whether one was passed.

    >>> history = History.of(1, [0, 0], [2.0, 5.0], 0.0, 10.0)
    >>> place, changed = advance(history, np.array([0]), np.array([0]), np.array([4.0]))
    >>> place.tolist(), changed.tolist()
    ([1], [True])
    """
    low, high = place.copy(), history.first[items + 1]
    last = max(history.time.size - 1, 0)
    while True:  # binary search in each item's own stretch
        open_ = low < high
        if not open_.any():
            break
        middle = (low + high) // 2
        passed = open_ & (history.time[np.minimum(middle, last)] <= now)
        low = np.where(passed, middle + 1, low)
        high = np.where(open_ & ~passed, middle, high)
    return low, low > place


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
