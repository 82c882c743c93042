"""The budget: at most rate·T + 1 requests start in any period of T seconds; rate is in requests per second.

A period with n requests is at least as long as the time from its first request to its last, so it suffices
that requests start at least 1/rate seconds apart. Unused time is not saved for later.

All workers on a store keep the budget together: the store assigns request windows that never overlap
(``Fleet.reserve``), and a worker starts requests only in its own windows. Two windows of one worker that
follow each other directly are joined to one.

The bytes, seconds and money of a request are known only afterwards. Each is a debt that is paid off at its
limit per second, and no request starts before all debts are paid off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from afresh.engine.settings.tables import BudgetTable
from afresh.values.outcome import Spent
from afresh.values.stored import RequestWindow

WINDOW_S, SHORTEST_WINDOW_S = 0.5, 0.1
"""The length of a reserved request window in seconds (this means two small writes per second), and its length
if there are other workers or few requests: reserved time that is not used is lost for the other workers."""

UNCOUNTED_PER_S = 1e5
"""More requests per second than all workers can send. With such a budget, a worker ignores windows."""

_SLACK_S, _SLACK, _MOST_SLACK_S = 0.02, 0.02, 1.0  # a fixed part, a part of the spacing, and the most


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be spent per second, by kind of cost; infinite if it is not limited."""

    requests: float = math.inf
    bytes: float = math.inf
    seconds: float = math.inf
    money: float = math.inf

    @property
    def spacing_s(self) -> float:
        """The least number of seconds between the starts of two requests."""
        return 1.0 / self.requests

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
    return Limits(
        budget.requests,
        *(math.inf if limit is None else limit for limit in (budget.bytes, budget.seconds, budget.money)),
    )


def window_size(limits: Limits, length_s: float) -> tuple[int, float]:
    """Return a tuple (count, slack) for a window of ``length_s`` seconds: how many requests to reserve, and
    how many seconds late they may start.

    >>> window_size(Limits(requests=50.0), 1.0), window_size(Limits(requests=0.01), 1.0)
    ((50, 0.0204), (1, 1.0))
    """
    spacing_s = limits.spacing_s
    return max(1, int(length_s / spacing_s)), min(_SLACK_S + _SLACK * spacing_s, _MOST_SLACK_S)


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
    """

    limits: Limits
    windows: tuple[RequestWindow, ...] = ()
    started_s: float = -math.inf
    debt_s: float = -math.inf

    def earliest_s(self, now_s: float) -> float:
        """Return the earliest start of the next request if windows are ignored; at least ``now_s``."""
        spacing_s = self.limits.spacing_s
        ready_s = max(now_s, self.started_s + spacing_s, self.debt_s)
        # The sum is rounded, but the difference of the two starts must not be less than the spacing.
        return ready_s if ready_s - self.started_s >= spacing_s else math.nextafter(ready_s, math.inf)

    def ready_s(self, now_s: float) -> float:
        """Return the earliest start of the next request in a reserved window; infinite if there is none."""
        earliest_s = self.earliest_s(now_s)
        if self.limits.requests >= UNCOUNTED_PER_S:
            return earliest_s
        for window in self.windows:
            if earliest_s <= window.until_s:
                return max(earliest_s, window.first_s)
        return math.inf

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
        if windows and windows[0].until_s < now_s:
            windows = tuple(window for window in windows if window.until_s >= now_s)
        return Slots(self.limits, windows, max(now_s, self.started_s), self.debt_s)

    def with_debt(self, now_s: float, owed_s: float) -> Slots:
        """Return the slots with a further debt of ``owed_s`` seconds, paid off after the earlier debts."""
        return replace(self, debt_s=max(self.debt_s, now_s) + owed_s) if owed_s > 0 else self
