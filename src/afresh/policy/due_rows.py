"""Rows whose polls ended a moment ago, by the times at which they may be polled again.

A pool of the picker contains the rows that are best when it is built. A row that is under way then, or that
is not due yet, is not in it, and would wait until the next pool is built, however short its interval is.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

_LOOKED_AT = 16  # rows of groups that must wait are passed over, up to this number


class DueRows:
    """A heap of rows. ``time_s`` returns when a row is due, as it is now: if a row is polled or edited
    meanwhile, its older times count no more.

    >>> times_s = [5.0, 7.0, 6.0]
    >>> due = DueRows(lambda row: times_s[row])
    >>> for row in range(3):
    ...     due.add(row)
    >>> times_s[0] = 90.0
    >>> due.pop(8.0, lambda row: True), due.pop(6.5, lambda row: True), due.pop(8.0, lambda row: False)
    (2, None, None)
    """

    def __init__(self, time_s: Callable[[int], float]) -> None:
        self._time_s = time_s
        self._heap: list[tuple[float, int]] = []

    def add(self, row: int) -> None:
        heapq.heappush(self._heap, (self._time_s(row), row))

    def clear(self) -> None:
        self._heap.clear()

    def pop(self, now_s: float, can_poll: Callable[[int], bool]) -> int | None:
        """Remove and return the row that is due for longest and can be polled; None if there is none."""
        found, waiting = None, list[tuple[float, int]]()
        while found is None and self._heap and self._heap[0][0] <= now_s and len(waiting) < _LOOKED_AT:
            time_s, row = heapq.heappop(self._heap)
            if self._time_s(row) != time_s:
                continue
            if can_poll(row):
                found = row
            else:
                waiting.append((time_s, row))
        for entry in waiting:
            heapq.heappush(self._heap, entry)
        return found
