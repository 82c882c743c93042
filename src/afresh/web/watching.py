"""How the mirror does, looked at seldom enough: however many look, looking takes a twentieth of the time.

A look at a million items takes a good part of a second. So one look serves everybody until it is older than
twenty times what it took (and at least a second); whoever comes after that gets the old one at once while a
new look is taken behind, unless looking is quick. One that nobody asked for in a long while is too old for
that: a page may still show it, since live updates follow; a program that asks waits for the new one.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace

from afresh.engine.engine import Engine
from afresh.engine.ratelimit.backoffs import unpack_backoffs
from afresh.engine.reporting.pulse import Course, Pulse, as_running, read_course, read_pulse
from afresh.engine.reporting.status import Status, read_status
from afresh.engine.state_names import BACKOFFS
from afresh.sources.capabilities import GroupBackoff
from afresh.values.errors import StoreError
from afresh.values.items import Item, ItemQuery
from afresh.values.stored import LedgerRow, ObservationColumns

LEAST_S, SHARE, QUICK_S = 1.0, 20.0, 0.05
_OVERDUE_S, _SOON_S, _BEARABLE_S = 10.0, 1.0, 0.5
_DAY_S, _HOUR_S = 86400.0, 3600.0
_TROUBLED = 8


@dataclass(frozen=True, slots=True)
class Look:
    """One look: ``problem`` says why the store could not be read; the rest is then of the last that could.

    ``took_s`` is what it cost, ``number`` grows with every look. ``rests`` are hosts that are left alone for
    now, each with its source, the longest first.
    """

    number: int
    time_s: float
    took_s: float
    status: Status
    pulse: Pulse | None
    course: Course
    audits: ObservationColumns
    ledger: tuple[LedgerRow, ...]
    failing: tuple[Item, ...]
    rests: tuple[tuple[str, GroupBackoff], ...]
    longest_due_s: float
    problem: str = ""

    @property
    def state(self) -> str:
        """Of the engine: running, stopped, lost, none (never seen), or ``no store``."""
        if self.problem:
            return "no store"
        return "none" if self.pulse is None else self.pulse.state(self.time_s)


class Watcher:
    """Looks on behalf of everybody. Any thread may ask."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._clock = engine, engine.clock
        self._lock = threading.Lock()
        self._last: Look | None = None
        self._again_s = -math.inf

    def look(self, *, patient: bool = False) -> Look:
        """The last look, or a new one if it is too old; raises ``StoreError`` while none ever succeeded.

        ``patient``: rather wait than be told what was long ago.
        """
        last = self._last
        if last is None:
            with self._lock:
                return self._last or self._anew()
        overdue_s = self._clock.elapsed_s() - self._again_s
        if overdue_s < 0:
            return last
        bearable, late = last.took_s <= _BEARABLE_S, overdue_s > _OVERDUE_S
        if (late and (patient or bearable)) or (patient and bearable and overdue_s > _SOON_S):
            with self._lock:
                return self._anew() if self._last is last else self._last or last
        if last.took_s <= QUICK_S:
            if self._lock.acquire(blocking=False):
                return self._released()
        elif self._lock.acquire(blocking=False):
            threading.Thread(target=self._released, daemon=True).start()
        return last

    def forget(self) -> None:
        """Something was changed from here: the next look is a new one."""
        self._again_s = -math.inf

    def _released(self) -> Look:
        try:
            return self._anew()
        finally:
            self._lock.release()

    def _anew(self) -> Look:
        begun_s, last = self._clock.elapsed_s(), self._last
        try:
            look = self._taken(begun_s, 0 if last is None else last.number + 1)
        except StoreError as error:
            if last is None:
                raise
            look = replace(last, number=last.number + 1, time_s=self._clock.now_s(), problem=str(error))
        self._again_s = self._clock.elapsed_s() + max(LEAST_S, SHARE * look.took_s)
        self._last = look
        return look

    def _taken(self, begun_s: float, number: int) -> Look:
        store, now_s = self._engine.store, self._clock.now_s()
        failing = store.items.page(
            ItemQuery(status="active", sort="failures", descending=True), _TROUBLED
        ).items
        due = store.items.by_id(store.items.due(now_s, 1))
        found = Look(
            number=number,
            time_s=now_s,
            took_s=0.0,
            status=read_status(store, as_running(store, self._engine.current(), now_s), now_s),
            pulse=read_pulse(store),
            course=read_course(store),
            audits=store.observations.audits(now_s - _DAY_S),
            ledger=tuple(store.ledger.rows(now_s - _HOUR_S, now_s)),
            failing=tuple(item for item in failing if item.failures),
            rests=_rests(self._engine, now_s),
            longest_due_s=due[0].due_s if due else now_s,
        )
        return replace(found, took_s=self._clock.elapsed_s() - begun_s)


def _rests(engine: Engine, now_s: float) -> tuple[tuple[str, GroupBackoff], ...]:
    """The hosts that rest, as the engine last kept them."""
    names = [table.settings.name for table in engine.settings.sources]
    found = [
        (name, rest) for name in names for rest in unpack_backoffs(engine.store.state.get(BACKOFFS + name))
    ]
    return tuple(sorted((one for one in found if one[1].until_s > now_s), key=lambda one: -one[1].until_s))
