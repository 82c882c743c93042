"""The gate that every request of every source passes: it lets a request start when the budget allows it.

Before that, the request waits until this worker has claimed the group, so that no other worker sends requests
to it, and until the group's cap allows the request, if the settings have a cap for it.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from afresh.engine.ratelimit.budget_waits import BudgetWaits
from afresh.engine.ratelimit.fleet_member import FleetMember
from afresh.engine.ratelimit.outside_limit import OutsideLimit, Unlimited
from afresh.engine.ratelimit.request_slots import SHORTEST_WINDOW_S, WINDOW_S, Limits, Slots, window_size
from afresh.engine.state_names import CAPPED_STARTS
from afresh.engine.threaded_store import ThreadedStore
from afresh.sources.http.requests_under_way import RequestsUnderWay
from afresh.values.clock import Clock
from afresh.values.outcome import NOTHING_SPENT, Spent
from afresh.values.stored import RequestWindow

_COARSE_S = 0.002  # an event loop wakes up about this much too late
_MORE, _LESS, _LEAST_SLACK = 1.5, 0.7, 0.1  # see ``_window``
_LATEST = 0.2  # the weight of the last poll in the moving average of debts
_AHEAD_S = 0.1  # the next window is reserved this long before the current one ends
_ROUNDING_S = 1e-9  # a smaller debt is a rounding error
_LONGEST_SLEEP_S = 0.5  # not longer, because the budget may be raised during the sleep


class RequestReservations(Protocol):
    """The request windows of all workers, which the store assigns; see ``SharedReservations``."""

    @property
    def is_alone(self) -> bool: ...
    async def reserve(
        self, count: int, spacing_s: float, slack_s: float, late_s: float
    ) -> tuple[RequestWindow, float]: ...
    async def give_back(self, window: RequestWindow, last_s: float) -> None: ...
    async def owe(self, owed_s: float) -> None: ...
    async def last_start_s(self, group: str) -> float: ...
    async def save_start(self, group: str, began_s: float) -> None: ...


class SharedReservations:
    """The request windows of all workers on a store. While the store cannot be written, calls wait.
    ``is_alone`` is True if there is no other worker."""

    def __init__(self, store: ThreadedStore, member: FleetMember) -> None:
        self._store, self._member, self._time = store, member, member.time

    @property
    def is_alone(self) -> bool:
        return self._member.is_alone

    async def reserve(
        self, count: int, spacing_s: float, slack_s: float, late_s: float
    ) -> tuple[RequestWindow, float]:
        """Reserve the next window for ``count`` requests, ``spacing_s`` seconds apart, as ``Fleet.reserve``
        does. Return a tuple (window, offset): the offset is added to the window's Unix times to get elapsed
        seconds of this process."""

        def work() -> tuple[RequestWindow, float]:
            now_s, elapsed_s = self._time.pair()
            fleet = self._store.sync.fleet
            return fleet.reserve(count, spacing_s, slack_s, now_s, late_s), elapsed_s - now_s

        return await self._store.run(work)

    async def give_back(self, window: RequestWindow, last_s: float) -> None:
        """Give back the slots of ``window`` after ``last_s``, both in Unix seconds."""
        await self._store.run(self._store.sync.fleet.give_back, window.until_s, last_s)

    async def owe(self, owed_s: float) -> None:
        """Record a debt of ``owed_s`` seconds: no window of any worker begins before it is paid off."""
        await self._store.run(lambda: self._store.sync.fleet.owe(owed_s, self._time.now_s()))

    async def last_start_s(self, group: str) -> float:
        """Return when a request to a capped group last started, in Unix seconds; −∞ if never."""
        kept = await self._store.run(self._store.sync.state.get, CAPPED_STARTS + group)
        return float(kept) if kept else -math.inf

    async def save_start(self, group: str, began_s: float) -> None:
        await self._store.run(self._store.sync.state.set, {CAPPED_STARTS + group: repr(began_s).encode()})


class GroupClaims(Protocol):
    """The groups to which only this worker may send requests; see ``Claims``."""

    def is_open(self, group: str) -> bool: ...
    async def wait_until_open(self, group: str) -> None: ...


class Gate:
    """Admits the requests of all sources of this process, one after another."""

    def __init__(
        self,
        clock: Clock,
        limits: Limits,
        reservations: RequestReservations,
        claims: GroupClaims,
        caps: Mapping[str, float] | None = None,
    ) -> None:
        """``caps`` maps groups to the highest number of requests per second that each allows."""
        self._clock, self._reservations, self._claims = clock, reservations, claims
        self._caps = dict(caps or {})
        self._began_s: dict[str, float] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._owed_turns: dict[str, int] = {}  # requests to send before others are lent, by group
        # The last window that was reserved, and what is added to its Unix times to get elapsed seconds.
        self._last, self._offset_s = RequestWindow(-math.inf, -math.inf), 0.0
        self._last_spacing_s = limits.spacing_s  # when the last window was reserved
        self._slots = Slots(limits)
        # Requests reserved and used in the last window; the slack as a share of the usual one.
        self._count, self._used, self._slack = 0, 0, 1.0
        # Debts that are not in the store yet, how long the last reservation took, the mean debt of a poll.
        self._owed_s, self._took_s, self._usual_debt_s = 0.0, 0.0, 0.0
        self._ahead = NOTHING_SPENT  # costs of requests whose polls are not over, which are already owed
        self._reserving: asyncio.Task[None] | None = None
        self._paying: asyncio.Task[None] | None = None
        self._queue = asyncio.Lock()
        self.outside: OutsideLimit = Unlimited()
        self.under_way = RequestsUnderWay(clock)
        self.requests = 0
        self.spent = NOTHING_SPENT
        self.waiting = 0
        self.waits = BudgetWaits()

    async def admit(self, group: str) -> None:
        """Wait until one more request to ``group`` may start; the caller must then start it at once. When the
        run stops, the wait ends with ``CancelledError``; see ``BudgetWaits``."""
        with self.waits.hold():
            if group in self._caps:
                await self._admit_capped(group)
            else:
                await self._admit(group)

    async def _admit_capped(self, group: str) -> None:
        async with self._turns[group]:
            self._began_s[group] = await self._reservations.last_start_s(group)
            while (wait_s := self.ready_s(group) - self._clock.now_s()) > 0:
                await asyncio.sleep(min(wait_s, _LONGEST_SLEEP_S))
            await self._reservations.save_start(group, self._clock.now_s())
            await self._admit(group)
            self._began_s[group] = self._clock.now_s()
            await self._reservations.save_start(group, self._began_s[group])

    async def _admit(self, group: str) -> None:
        while True:
            await self._claims.wait_until_open(group)
            self.waiting += 1
            try:
                async with self._queue:
                    await self._wait()
                    # The claim may have been lost to another worker during the wait for the budget.
                    if self._claims.is_open(group):
                        self._start()
                        self._end_turn(group)
                        return
            finally:
                self.waiting -= 1

    async def admit_reading(self, group: str) -> None:
        """Wait until a reading of change counters may start. Unlike other requests it does not wait while
        bytes, seconds or money are paid off: nobody would know which views to refresh then. It counts as a
        request, and starts at least 1/rate after the last one."""
        with self.waits.hold():
            is_started = await self._start_reading(group)
        if not is_started:
            await self.admit(group)

    async def _start_reading(self, group: str) -> bool:
        """Return False if nothing is paid off any more, so that the reading waits like other requests."""
        while self._slots.debt_s > self._clock.elapsed_s():
            await self._claims.wait_until_open(group)
            now_s = self._clock.elapsed_s()
            wait_s = self._slots.started_s + self._slots.limits.spacing_s - now_s
            wait_s = max(wait_s, self.ready_s(group) - self._clock.now_s())
            wait_s = max(wait_s, self.outside.ready_s(now_s) - now_s)
            if wait_s <= 0:
                self.outside.record_start(now_s)
                self._slots = self._slots.with_start(now_s)
                self._began_s[group] = self._clock.now_s()
                self.requests += 1
                return True
            await asyncio.sleep(min(wait_s, _LONGEST_SLEEP_S))
        return False

    def _start(self) -> None:
        now_s = self._clock.elapsed_s()
        self.outside.record_start(now_s)
        self._slots = self._slots.with_start(now_s)
        self._used += 1
        self.requests += 1
        ahead_s = max(_AHEAD_S, 2 * self._took_s)
        # ``waiting`` still includes this request, so that others wait only if it is more than 1.
        is_wanted = self._reservations.is_alone or self.waiting > 1
        if is_wanted and self._slots.limits.spacing_s < ahead_s and self._slots.until_s() - now_s < ahead_s:
            self._start_reserving()  # early, so that the next window is reserved when this one ends

    def ready_s(self, group: str) -> float:
        """Return when the cap of ``group`` allows its next request, in Unix seconds; −∞ without a cap."""
        cap, began_s = self._caps.get(group), self._began_s.get(group)
        if cap is None or began_s is None:
            return -math.inf
        # If the clock was set back, ``began_s`` is in the future; the wait stays at most 1/cap.
        return min(began_s, self._clock.now_s()) + 1.0 / cap

    def record_lent(self, group: str, start_s: float, requests: int) -> None:
        """Record that another program sends ``requests`` to ``group``, the last one at ``start_s`` (Unix
        seconds), for which slots of the budget were reserved. The cap of the group counts them. Then it is
        the turn of this run, for as many requests."""
        self._owed_turns[group] = requests
        if group in self._caps:
            self._began_s[group] = max(start_s, self._began_s.get(group, -math.inf))

    def has_turn(self, group: str) -> bool:
        """Return whether this run may send the next request to ``group``, because requests were lent last."""
        return group in self._owed_turns

    def _end_turn(self, group: str) -> None:
        if group in self._owed_turns:
            self._owed_turns[group] -= 1
            if self._owed_turns[group] <= 0:
                del self._owed_turns[group]

    async def _wait(self) -> None:
        while True:
            now_s = self._clock.elapsed_s()
            outside_s = self.outside.ready_s(now_s) - now_s
            wait_s = max(self._slots.ready_s(now_s) - now_s, 0.0)
            if outside_s > wait_s:
                await asyncio.sleep(min(outside_s, _LONGEST_SLEEP_S))
            elif wait_s == math.inf:
                await asyncio.shield(self._start_reserving())
            elif wait_s > _COARSE_S:
                self.tell_wait(wait_s)
                await asyncio.sleep(min(wait_s - _COARSE_S / 2, _LONGEST_SLEEP_S))
            elif wait_s > 0:
                await asyncio.sleep(0)  # a timer would wake up too late, so the last 2 ms are waited busily
            else:
                return

    def tell_wait(self, wait_s: float, level: int = logging.WARNING) -> None:
        """Log a line if the next request may be sent only in ``wait_s`` seconds, and that is long."""
        self.waits.tell(wait_s, self._slots.limits.requests, is_paying=self.is_paying, level=level)

    def _window(self) -> tuple[int, float]:
        """Return a tuple (count, slack): how many requests to reserve, and how many seconds late they may
        start. Without other workers, a long window is reserved, or a short one if the last window was not
        used. With other workers, as many requests as are waiting are reserved, or 1.5 times as many as last
        if these were all used. The slack then shrinks, but is doubled after a window that was missed."""
        limits, used = self._slots.limits, self._used
        few, slack_s = window_size(limits, SHORTEST_WINDOW_S)
        many, _ = window_size(limits, WINDOW_S)
        if self._reservations.is_alone:
            return many if used else few, slack_s
        missed = self._count > 0 and used == 0
        self._slack = min(2.0 * self._slack, 1.0) if missed else max(_LESS * self._slack, _LEAST_SLACK)
        more = min(int(_MORE * self._count), few) if used >= self._count else 1
        return min(max(self.waiting, more, 1), few), self._slack * slack_s

    def _start_reserving(self) -> asyncio.Task[None]:
        if self._reserving is None or self._reserving.done():
            self._reserving = asyncio.create_task(self._reserve())
        return self._reserving

    async def _reserve(self) -> None:
        limits = self._slots.limits
        self._count, slack_s = self._window()
        self._used, begun_s = 0, self._clock.elapsed_s()
        # If the store is slow, the window must not end before this process receives it.
        if limits.late_s:
            self._count += int(self._took_s / limits.spacing_s)
        else:
            slack_s = max(slack_s, 2 * self._took_s)
        window, offset_s = await self._reservations.reserve(
            self._count, limits.spacing_s, slack_s, limits.late_s
        )
        self._took_s = min(self._clock.elapsed_s() - begun_s, WINDOW_S)
        follows = window.first_s <= math.nextafter(self._last.until_s + limits.spacing_s, math.inf)
        joined = follows and not limits.late_s
        self._last, self._offset_s, self._last_spacing_s = window, offset_s, limits.spacing_s
        here = RequestWindow(window.first_s + offset_s, window.until_s + offset_s)
        self._slots = self._slots.with_window(here, joined=joined)

    @property
    def counts_only(self) -> bool:
        """Whether only the number of requests is limited."""
        return self._slots.limits.counts_only

    @property
    def spacing_s(self) -> float:
        """The seconds between two requests at the rate of the budget."""
        return self._slots.limits.spacing_s

    @property
    def is_paying(self) -> bool:
        """Whether bytes, seconds or money that were spent are being paid off."""
        return self._slots.debt_s > self._clock.elapsed_s()

    def wait_s(self) -> float:
        """Return in how many seconds the next request may start, as far as this process knows."""
        now_s = self._clock.elapsed_s()
        ready_s = self._slots.ready_s(now_s)
        own_s = self._slots.earliest_s(now_s) if math.isinf(ready_s) else ready_s
        # When the limit from outside is raised is not known, so it is looked at again soon.
        outside_s = min(self.outside.ready_s(now_s), now_s + _LONGEST_SLEEP_S)
        return max(own_s, outside_s) - now_s

    def starts_within(self, seconds: float) -> float:
        """Return how many requests may start within ``seconds``, given the budget and their recent cost."""
        usual, now_s = (
            seconds / max(self._slots.limits.spacing_s, self._usual_debt_s),
            self._clock.elapsed_s(),
        )
        # More may start at once if slots were missed.
        return max(usual, self._slots.count_slots(now_s, now_s + seconds) if self._slots.limits.late_s else 0)

    def record_cost(self, spent: Spent) -> None:
        """Record the cost of a poll with all its requests as a debt, minus what ``owe_ahead`` recorded."""
        self.spent += spent
        if self._slots.limits.counts_only:
            self._usual_debt_s, self._ahead = 0.0, NOTHING_SPENT
            return
        self._usual_debt_s += _LATEST * (self._slots.limits.owed_s(spent) - self._usual_debt_s)
        ahead = self._ahead
        self._ahead = ahead.less(spent)
        self._owe(spent.less(ahead))

    def owe_ahead(self, spent: Spent) -> None:
        """Record the cost of one request before its poll is over, so that its next request waits too."""
        if not self._slots.limits.counts_only:
            self._ahead += spent
            self._owe(spent)

    def _owe(self, spent: Spent) -> None:
        owed_s, now_s = self._slots.limits.owed_s(spent), self._clock.elapsed_s()
        if owed_s > _ROUNDING_S:
            # The seconds were spent until now, so that a part of them is paid off already.
            before_s = max(self._slots.debt_s, now_s)
            self._slots = self._slots.with_debt(now_s - min(spent.seconds, owed_s), owed_s)
            self._owed_s += max(self._slots.debt_s - before_s, 0.0)
            if self._paying is None or self._paying.done():
                self._paying = asyncio.create_task(self._pay())

    async def _pay(self) -> None:
        while self._owed_s > 0:
            owed_s, self._owed_s = self._owed_s, 0.0
            await self._reservations.owe(owed_s)

    def set_limits(self, limits: Limits, caps: Mapping[str, float] | None = None) -> None:
        self._slots, self._caps = replace(self._slots, limits=limits), dict(caps or {})

    async def close(self) -> None:
        """Save the debts in the store, and give unused slots back; no request may be under way."""
        if self._reserving is not None:
            self._reserving.cancel()
            await asyncio.gather(self._reserving, return_exceptions=True)
        unused_s = self._slots.first_unused_s(self._clock.elapsed_s())
        if unused_s is not None:
            last_s = unused_s - self._slots.limits.spacing_s - self._offset_s
            await self._reservations.give_back(self._last, last_s)
        elif self._slots.started_s - self._offset_s < self._last.first_s:
            # No request started in the last window: it begins this long after what was reserved before it.
            await self._reservations.give_back(self._last, self._last.first_s - self._last_spacing_s)
        if self._paying is not None:
            await self._paying
