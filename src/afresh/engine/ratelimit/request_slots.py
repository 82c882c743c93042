"""The budget: at most rate·T + burst requests start in any period of T seconds, at ``rate`` per second.

The budget gives one slot every 1/rate seconds, and a request uses one slot. It never starts before its slot,
and at most (burst − 1)/rate seconds after it (``Limits.late_s``). So the requests of T seconds use the slots
of T + (burst − 1)/rate seconds, which are at most rate·T + burst. A slot that was missed because the machine
was busy is made up for, and idle time is not saved beyond the burst.

If slots may hardly be late, or if bytes, seconds or money are limited, requests start at least 1/rate seconds
apart instead, anywhere in their window: then at most rate·T + 1 requests start in T seconds.

All workers on a store keep the budget together: the store assigns request windows that never overlap
(``Fleet.reserve``), and a worker uses only the slots of its own windows. Two windows of one worker that
follow each other directly are joined to one, if requests start 1/rate apart.

The bytes, seconds and money of a request are known only afterwards. Each is a debt that is paid off at its
limit per second, and no request starts before all debts are paid off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from afresh.engine.settings.tables import BudgetTable
from afresh.stores.store import Store
from afresh.values.outcome import Spent
from afresh.values.stored import RequestWindow

WINDOW_S, SHORTEST_WINDOW_S = 0.5, 0.1
"""The length of a reserved request window in seconds (this means two small writes per second), and its length
if there are other workers or few requests: reserved time that is not used is lost for the other workers."""

UNCOUNTED_PER_S = 1e5
"""More requests per second than all workers can send. With such a budget, a worker ignores windows."""

_SLACK_S, _SLACK, _MOST_SLACK_S = 0.02, 0.02, 1.0  # a fixed part, a part of the spacing, and the most
_LEAST_LATE_S = 0.1  # if slots may be less late than this, a busy machine would miss many of them
_ROUNDING = 1e-6  # a difference of this share of the spacing is a rounding error


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be spent per second, by kind of cost; infinite if it is not limited. ``burst`` is the
    number of requests that may start at once after idle time."""

    requests: float = math.inf
    bytes: float = math.inf
    seconds: float = math.inf
    money: float = math.inf
    burst: float = 1.0

    @property
    def spacing_s(self) -> float:
        """The least number of seconds between the starts of two requests."""
        return 1.0 / self.requests

    @property
    def covered_s(self) -> float:
        """For how many seconds the burst keeps slots: a slot can be used at most so many seconds late.

        >>> Limits(requests=10.0, burst=20.0).covered_s
        1.9
        """
        return max(self.burst - 1.0, 0.0) / self.requests

    @property
    def late_s(self) -> float:
        """How many seconds after its slot a request may start; 0 if requests start 1/rate apart instead."""
        return self.covered_s if self.counts_only and self.covered_s >= _LEAST_LATE_S else 0.0

    @property
    def counts_only(self) -> bool:
        """Whether only the number of requests is limited, so that there are no debts."""
        return self.bytes == self.seconds == self.money == math.inf

    def owed_s(self, spent: Spent) -> float:
        """Return in how many seconds the cost ``spent`` is paid off. Bytes, seconds and money are paid off at
        the same time, so that the longest of these times counts.

        >>> Limits(bytes=1000.0, money=1.0).owed_s(Spent(bytes=5000, money=2.0))
        5.0
        """
        return max(spent.bytes / self.bytes, spent.seconds / self.seconds, spent.money / self.money)


def budget_limits(budget: BudgetTable) -> Limits:
    received, seconds, money = (
        math.inf if limit is None else limit for limit in (budget.bytes, budget.seconds, budget.money)
    )
    return Limits(budget.requests, received, seconds, money, budget.burst_requests)


def window_size(limits: Limits, length_s: float) -> tuple[int, float]:
    """Return a tuple (count, slack) for a window of ``length_s`` seconds: how many requests to reserve, and
    how many seconds the window is longer than they need. A window of slots that may be used late needs none.

    >>> window_size(Limits(requests=50.0), 1.0), window_size(Limits(requests=0.01), 1.0)
    ((50, 0.0204), (1, 1.0))
    >>> window_size(Limits(requests=50.0, burst=50.0), 1.0)
    (50, 0.0)
    """
    spacing_s = limits.spacing_s
    slack_s = 0.0 if limits.late_s else min(_SLACK_S + _SLACK * spacing_s, _MOST_SLACK_S)
    return max(1, int(length_s / spacing_s)), slack_s


def count_allowed(store: Store, limits: Limits, now_s: float) -> float:
    """Return how many requests may start now: the slots since the last request, at most the burst."""
    if limits.requests >= UNCOUNTED_PER_S:
        return math.inf
    first_s = store.fleet.next_slot_s(limits.spacing_s, now_s, limits.covered_s)
    return slots_until(first_s, now_s, limits.spacing_s)


def slots_until(first_s: float, until_s: float, spacing_s: float) -> int:
    """Return the number of slots from ``first_s`` to ``until_s``, which are ``spacing_s`` apart.

    >>> slots_until(10.0, 10.3, 0.1), slots_until(10.0, 9.0, 0.1)
    (4, 0)
    """
    return max(math.floor((until_s - first_s) / spacing_s + _ROUNDING) + 1, 0)


@dataclass(frozen=True, slots=True)
class Slots:
    """The request windows of this worker, from which it computes when the next request may start.
    ``started_s`` is the last start of a request, ``debt_s`` the time at which all debts are paid off. All
    times are seconds of a clock that never goes back.

    >>> slots = Slots(Limits(requests=2.0)).with_window(RequestWindow(100.0, 101.0))
    >>> slots = slots.with_start(100.0)
    >>> slots.ready_s(100.1), slots.ready_s(100.9)
    (100.5, 100.9)
    >>> slots.ready_s(102.0)                      # nothing is reserved
    inf
    >>> slots.with_window(RequestWindow(101.5, 102.0), joined=True).with_start(100.9).ready_s(101.0)
    101.4
    >>> slots.with_debt(100.2, 5.0).with_window(RequestWindow(100.0, 110.0)).ready_s(100.3)
    105.2
    >>> slots = Slots(Limits(requests=2.0, burst=2.0)).with_window(RequestWindow(100.0, 101.0))
    >>> slots.ready_s(100.4), slots.with_start(100.4).ready_s(100.4), slots.ready_s(101.7)
    (100.4, 100.5, inf)
    """

    limits: Limits
    windows: tuple[RequestWindow, ...] = ()
    started_s: float = -math.inf
    debt_s: float = -math.inf

    def earliest_s(self, now_s: float) -> float:
        """Return the earliest start of the next request if windows are ignored; at least ``now_s``."""
        if self.limits.late_s:
            return max(now_s, self.debt_s)
        spacing_s = self.limits.spacing_s
        ready_s = max(now_s, self.started_s + spacing_s, self.debt_s)
        # The sum is rounded, but the difference of the two starts must not be less than the spacing.
        return ready_s if ready_s - self.started_s >= spacing_s else math.nextafter(ready_s, math.inf)

    def ready_s(self, now_s: float) -> float:
        """Return the earliest start of the next request in a reserved window; infinite if there is none."""
        if self.limits.late_s and self.limits.requests < UNCOUNTED_PER_S:
            slot = self._next_slot(now_s)
            return math.inf if slot is None else max(now_s, slot[1], self.debt_s)
        earliest_s = self.earliest_s(now_s)
        if self.limits.requests >= UNCOUNTED_PER_S:
            return earliest_s
        for window in self.windows:
            if earliest_s <= window.until_s:
                return max(earliest_s, window.first_s)
        return math.inf

    def _next_slot(self, now_s: float) -> tuple[int, float] | None:
        """Return a tuple (place of the window, time of the slot): the first slot that is not too old."""
        oldest_s, spacing_s = now_s - self.limits.late_s, self.limits.spacing_s
        for place, window in enumerate(self.windows):
            skipped = max(math.ceil((oldest_s - window.first_s) / spacing_s - _ROUNDING), 0)
            slot_s = window.first_s + skipped * spacing_s
            if slot_s <= window.until_s + _ROUNDING * spacing_s:
                return place, slot_s
        return None

    def count_slots(self, now_s: float, until_s: float) -> int:
        """Return the number of reserved slots that can be used from ``now_s`` to ``until_s``."""
        slot = self._next_slot(now_s)
        if slot is None:
            return 0
        place, first_s = slot
        windows = (RequestWindow(first_s, self.windows[place].until_s), *self.windows[place + 1 :])
        ends = [(window.first_s, min(window.until_s, until_s)) for window in windows]
        return sum(slots_until(*each, self.limits.spacing_s) for each in ends)

    def first_unused_s(self, now_s: float) -> float | None:
        """Return the first slot of the last window that can still be used; None if there is none."""
        slot = self._next_slot(now_s) if self.limits.late_s else None
        if slot is None:
            return None
        return slot[1] if slot[0] == len(self.windows) - 1 else self.windows[-1].first_s

    def until_s(self) -> float:
        """Return the end of the last window; −∞ without one."""
        return self.windows[-1].until_s if self.windows else -math.inf

    def with_window(self, window: RequestWindow, *, joined: bool = False) -> Slots:
        """Return the slots with one more window; ``joined`` if it follows the last one directly."""
        if joined and self.windows:
            *before, last = self.windows
            return replace(self, windows=(*before, RequestWindow(last.first_s, window.until_s)))
        return replace(self, windows=(*self.windows, window))

    def with_start(self, now_s: float) -> Slots:
        windows = self.windows
        if self.limits.late_s:
            if (slot := self._next_slot(now_s)) is not None:
                place, slot_s = slot
                left = RequestWindow(slot_s + self.limits.spacing_s, windows[place].until_s)
                windows = (left, *windows[place + 1 :])
        elif windows and windows[0].until_s < now_s:
            windows = tuple(window for window in windows if window.until_s >= now_s)
        return Slots(self.limits, windows, max(now_s, self.started_s), self.debt_s)

    def with_debt(self, now_s: float, owed_s: float) -> Slots:
        """Return the slots with a further debt of ``owed_s`` seconds, paid off after the earlier debts."""
        return replace(self, debt_s=max(self.debt_s, now_s) + owed_s) if owed_s > 0 else self
