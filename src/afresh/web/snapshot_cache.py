"""Caches snapshots of the status for all readers, so that reading takes at most a twentieth of the time.

Reading the status of a million items takes a large part of a second. So all readers get the same snapshot
until it expires: after a second, or after twenty times the duration of reading it if that is longer. Then a
reader gets the old snapshot at once while another thread reads a new one; if reading is quick, it gets the
new one. If the snapshot expired long ago, a program (``wait=True``) waits for the new one. A page may still
show the old one, because live updates follow.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field, replace

from afresh.engine.engine import Engine
from afresh.engine.reporting.group_status import read_backoffs
from afresh.engine.reporting.pulse import Course, Pulse, read_course, read_pulse, read_tallies
from afresh.engine.reporting.status import Status, read_status
from afresh.engine.scheduler.poll_costs import PollTallies
from afresh.sources.capabilities import GroupBackoff
from afresh.values.errors import StoreError
from afresh.values.items import Item, ItemQuery
from afresh.values.stored import LedgerRow, ObservationColumns

_LEAST_S, _COST_RATIO, _QUICK_S = 1.0, 20.0, 0.05
_LONG_OVERDUE_S, _OVERDUE_S, _BEARABLE_S = 10.0, 1.0, 0.5
_DAY_S, _HOUR_S = 86400.0, 3600.0
_FAILING_SHOWN = 8


@dataclass(frozen=True, slots=True)
class StatusSnapshot:
    """The status at one moment, and further data of the pages. ``number`` grows with every snapshot;
    ``took_s`` is how many seconds reading took. ``backoffs`` are tuples (source, host in back-off), the
    longest back-off first. ``longest_due_s`` is the earliest due time of an item. ``problem`` is the reason
    why the store could not be read; then the other fields are those of the last snapshot that was read.
    ``last_change`` is a number that grows with every change of the feed."""

    number: int
    time_s: float
    took_s: float
    status: Status
    pulse: Pulse | None
    course: Course
    audits: ObservationColumns
    ledger: tuple[LedgerRow, ...]
    failing: tuple[Item, ...]
    backoffs: tuple[tuple[str, GroupBackoff], ...]
    longest_due_s: float
    problem: str = ""
    tallies: PollTallies = field(default_factory=PollTallies)
    last_change: int = 0

    @property
    def state(self) -> str:
        """The engine's state: running, stopped, lost, none (no engine has run yet), or no store."""
        if self.problem:
            return "no store"
        return "none" if self.pulse is None else self.pulse.state(self.time_s)

    @property
    def lag_s(self) -> float:
        """For how many seconds the item with the earliest due time has been due."""
        return max(0.0, self.time_s - self.longest_due_s)


class SnapshotCache:
    """Reads and caches snapshots of an engine's store. Any thread may call its methods."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._clock = engine, engine.clock
        self._lock = threading.Lock()
        self._last: StatusSnapshot | None = None
        self._expires_s = -math.inf

    def get(self, *, wait: bool = False) -> StatusSnapshot:
        """Return the last snapshot, or a new one as the docstring of this module says. With ``wait`` the
        caller waits for a new snapshot if the last one expired long ago. Raise ``StoreError`` if there is no
        snapshot and the store cannot be read."""
        last = self._last
        if last is None:
            with self._lock:
                return self._last or self._read()
        overdue_s = self._clock.elapsed_s() - self._expires_s
        if overdue_s < 0:
            return last
        bearable, late = last.took_s <= _BEARABLE_S, overdue_s > _LONG_OVERDUE_S
        if (late and (wait or bearable)) or (wait and bearable and overdue_s > _OVERDUE_S):
            with self._lock:
                return self._read() if self._last is last else self._last or last
        if self._lock.acquire(blocking=False):  # Otherwise another thread is reading already.
            if last.took_s <= _QUICK_S:
                return self._read_and_release()
            threading.Thread(target=self._read_and_release, daemon=True).start()
        return last

    def expire(self) -> None:
        self._expires_s = -math.inf

    def _read_and_release(self) -> StatusSnapshot:
        try:
            return self._read()
        finally:
            self._lock.release()

    def _read(self) -> StatusSnapshot:
        started_s, last = self._clock.elapsed_s(), self._last
        number = 0 if last is None else last.number + 1
        try:
            snapshot = read_snapshot(self._engine, number)
            snapshot = replace(snapshot, took_s=self._clock.elapsed_s() - started_s)
        except StoreError as error:
            if last is None:
                raise
            snapshot = replace(last, number=number, time_s=self._clock.now_s(), problem=str(error))
        self._expires_s = self._clock.elapsed_s() + max(_LEAST_S, _COST_RATIO * snapshot.took_s)
        self._last = snapshot
        return snapshot


def read_snapshot(engine: Engine, number: int = 0) -> StatusSnapshot:
    store, now_s = engine.store, engine.clock.now_s()
    most_failing = ItemQuery(status="active", sort="failures", descending=True)
    due = store.items.by_id(store.items.due(now_s, 1))
    return StatusSnapshot(
        number=number,
        time_s=now_s,
        took_s=0.0,
        status=read_status(store, engine.running_settings(), now_s),
        pulse=read_pulse(store),
        course=read_course(store),
        audits=store.observations.audits(now_s - _DAY_S),
        ledger=tuple(store.ledger.rows(now_s - _HOUR_S, now_s)),
        failing=tuple(item for item in store.items.page(most_failing, _FAILING_SHOWN).items if item.failures),
        backoffs=read_backoffs(store, engine.settings, now_s),
        longest_due_s=due[0].due_s if due else now_s,
        tallies=read_tallies(store),
        last_change=store.feed.last(),
    )
