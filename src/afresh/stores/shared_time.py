"""What the workers of a fleet share about time: one clock, and the reservations of request windows.

Request windows never overlap, and a new window begins only after all debts are paid (see ``Fleet.owe``).

A window is for one worker. In its window a worker starts requests at least ``spacing_s`` seconds apart, and
the next window begins ``spacing_s`` after the end of this window. So the requests of all workers start at
least ``spacing_s`` apart: at most T/spacing_s + 1 requests start in any T seconds, even if a worker is late.
If the budget has a burst, a window may begin ``late_s`` seconds ago: its slots, which are ``spacing_s``
apart, may be used up to ``late_s`` seconds late. The requests of T seconds then use slots of T + late_s
seconds, so that they are at most T/spacing_s + late_s/spacing_s + 1.
If the clock is set back, windows and debts are moved back by the same number of seconds.

>>> first, pace = ReservationState().reserve(3, 1.0, 0.25, now_s=100.0)
>>> first, pace.reserve(1, 1.0, 0.0, now_s=100.1)[0]
(RequestWindow(first_s=100.0, until_s=102.25), RequestWindow(first_s=103.25, until_s=103.25))
>>> pace.reserve(2, 1.0, 0.0, now_s=200.0, late_s=4.0)[0]
RequestWindow(first_s=196.0, until_s=197.0)
"""

from __future__ import annotations

import math
import threading
from contextlib import suppress
from dataclasses import dataclass, replace

from afresh.stores.store import Fleet
from afresh.values.clock import Clock
from afresh.values.errors import InputError, StoreError
from afresh.values.stored import RequestWindow

_SET_S, _ASK_AGAIN_S = 1.0, 1.0  # smaller steps of the machine's clock are corrections
_TRIES = 3  # of a measurement, while the machine's clock is being set
_STEP_S = 600.0  # a time that is this much before the last reservation means that the clock was set back


@dataclass(frozen=True, slots=True)
class ReservationState:
    """What all workers together have reserved of the budget, as three Unix times.

    ``last_s`` is the end of the last request window that was given out. ``debt_s`` is the time until which
    nothing is given out, because a request took more of the budget than was reserved for it. ``asked_s`` is
    the latest call of ``reserve`` or ``owe``.
    """

    last_s: float = -math.inf
    debt_s: float = -math.inf
    asked_s: float = -math.inf

    def reserve(
        self, count: int, spacing_s: float, slack_s: float, now_s: float, late_s: float = 0.0
    ) -> tuple[RequestWindow, ReservationState]:
        """Return a tuple (next window, state after this reservation). See ``Fleet.reserve``."""
        if count < 1:
            raise InputError(f"a window for {count} requests: must be 1 or more")
        for name, value in (("spacing_s", spacing_s), ("slack_s", slack_s), ("late_s", late_s)):
            if not 0 <= value < math.inf:
                raise InputError(f"{name} is {value}: must be 0 or more, and finite")
        before = self._at(now_s)
        first_s = before.next_slot_s(spacing_s, now_s, late_s)
        window = RequestWindow(first_s, first_s + (count - 1) * spacing_s + slack_s)
        return window, replace(before, last_s=window.until_s)

    def next_slot_s(self, spacing_s: float, now_s: float, late_s: float = 0.0) -> float:
        """Return the beginning of the window that ``reserve`` would return. See ``Fleet.next_slot_s``."""
        before = self._at(now_s)
        first_s = max(now_s - late_s, before.last_s + spacing_s, before.debt_s)
        # The sum of two floats is rounded, but the rounded times must not be closer than ``spacing_s``.
        return first_s if first_s - before.last_s >= spacing_s else math.nextafter(first_s, math.inf)

    def give_back(self, until_s: float, last_s: float) -> ReservationState:
        """Return the state after unused slots were given back. See ``Fleet.give_back``."""
        return replace(self, last_s=last_s) if last_s < until_s == self.last_s else self

    def owe(self, owed_s: float, now_s: float) -> ReservationState:
        """Return the state with one more debt. It is paid ``owed_s`` seconds after all earlier debts."""
        if not 0 <= owed_s < math.inf:
            raise InputError(f"a debt of {owed_s} s: must be 0 or more, and finite")
        before = self._at(now_s)
        return replace(before, debt_s=max(before.debt_s, now_s) + owed_s) if owed_s else before

    def _at(self, now_s: float) -> ReservationState:
        """Return the state at ``now_s``. If the clock was set back, all times are moved back as far."""
        back_s = self.asked_s - now_s
        if back_s < _STEP_S:
            return replace(self, asked_s=max(self.asked_s, now_s))
        return ReservationState(self.last_s - back_s, self.debt_s - back_s, now_s)


class SharedClock:
    """A clock that shows the store's time: the machine's ``clock`` plus ``ahead_s`` seconds.

    Call ``measure`` from time to time to update ``ahead_s``, because clocks drift. If the machine's clock is
    set, by a second or more, a store with a clock of its own is asked at once, in another thread. Until it
    has answered, the time goes on as if the clock had not been set: leases and deferred events that one
    worker wrote hours ahead of the others would stop them for hours.

    >>> from afresh.stores.sqlite.memory_store import MemoryStore
    >>> from afresh.values.clock import SystemClock
    >>> shared = SharedClock(SystemClock(), MemoryStore().fleet)
    >>> shared.ahead_s
    0.0
    """

    def __init__(self, clock: Clock, fleet: Fleet) -> None:
        self._clock, self._fleet = clock, fleet
        self._asking, self._asked_s = threading.Lock(), -math.inf
        self._measured = 0.0, self._offset_s()
        self.measure()

    @property
    def ahead_s(self) -> float:
        return self._measured[0]

    def measure(self) -> None:
        """Ask the store for its time; raise ``StoreError`` if it does not answer."""
        for _ in range(_TRIES):
            offset_s = self._offset_s()
            ahead_s = self._fleet.ahead_s(self._clock)
            # If the clock was set meanwhile, ``ahead_s`` may be that of the old or of the new time.
            if abs(self._offset_s() - offset_s) < _SET_S:
                # Both numbers change at once, because other threads read them meanwhile.
                self._measured = ahead_s, offset_s
                return

    def now_s(self) -> float:
        now_s, (ahead_s, offset_s) = self._clock.now_s(), self._measured
        set_by_s = now_s - self._clock.elapsed_s() - offset_s
        if abs(set_by_s) < _SET_S or not self._fleet.has_own_clock:
            return now_s + ahead_s
        self._measure_soon()
        return now_s - set_by_s + ahead_s

    def elapsed_s(self) -> float:
        return self._clock.elapsed_s()

    def _offset_s(self) -> float:
        """Return the machine's time minus the time that has elapsed; it changes when the clock is set."""
        return self._clock.now_s() - self._clock.elapsed_s()

    def _measure_soon(self) -> None:
        elapsed_s = self._clock.elapsed_s()
        if elapsed_s < self._asked_s + _ASK_AGAIN_S or not self._asking.acquire(blocking=False):
            return
        self._asked_s = elapsed_s

        def work() -> None:
            try:
                with suppress(StoreError):  # asked again, while the time goes on as before
                    self.measure()
            finally:
                self._asking.release()

        threading.Thread(target=work, daemon=True, name="afresh-clock").start()
