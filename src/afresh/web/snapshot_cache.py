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
from dataclasses import dataclass, fields, replace

from afresh.engine.project_interface import WatchedProject
from afresh.engine.reporting.overview import Overview
from afresh.values.errors import StoreError

_LEAST_S, _COST_RATIO, _QUICK_S = 1.0, 20.0, 0.05
_LONG_OVERDUE_S, _OVERDUE_S, _BEARABLE_S = 10.0, 1.0, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSnapshot(Overview):
    """An overview that is kept for a while. ``number`` grows with every snapshot; ``took_s`` is how many
    seconds reading took. ``problem`` is the reason why the store could not be read; then the other fields are
    those of the last snapshot that was read. ``last_change`` is a number that grows with every change of the
    feed."""

    number: int
    took_s: float = 0.0
    problem: str = ""
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
    """Reads and caches snapshots of a project. Any thread may call its methods; ``lock`` is held by the one
    that reads."""

    def __init__(self, project: WatchedProject) -> None:
        self._project, self._clock = project, project.clock
        self.lock = threading.Lock()
        self._last: StatusSnapshot | None = None
        self._expires_s = -math.inf

    def get(self, *, wait: bool = False) -> StatusSnapshot:
        """Return the last snapshot, or a new one as the docstring of this module says. With ``wait`` the
        caller waits for a new snapshot if the last one expired long ago. Raise ``StoreError`` if there is no
        snapshot and the store cannot be read."""
        last = self._last
        if last is None:
            with self.lock:
                return self._last or self._read()
        overdue_s = self._clock.elapsed_s() - self._expires_s
        if overdue_s < 0:
            return last
        bearable, late = last.took_s <= _BEARABLE_S, overdue_s > _LONG_OVERDUE_S
        if (late and (wait or bearable)) or (wait and bearable and overdue_s > _OVERDUE_S):
            with self.lock:
                return self._read() if self._last is last else self._last or last
        if self.lock.acquire(blocking=False):  # Otherwise another thread is reading already.
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
            self.lock.release()

    def _read(self) -> StatusSnapshot:
        started_s, last = self._clock.elapsed_s(), self._last
        number = 0 if last is None else last.number + 1
        try:
            snapshot = read_snapshot(self._project, number)
            snapshot = replace(snapshot, took_s=self._clock.elapsed_s() - started_s)
        except StoreError as error:
            if last is None:
                raise
            snapshot = replace(last, number=number, time_s=self._clock.now_s(), problem=str(error))
        self._expires_s = self._clock.elapsed_s() + max(_LEAST_S, _COST_RATIO * snapshot.took_s)
        self._last = snapshot
        return snapshot


def read_snapshot(project: WatchedProject, number: int = 0) -> StatusSnapshot:
    last_change = project.feed.last()  # before the rest: a change meanwhile is announced by the next one
    overview = project.overview()
    read = {field.name: getattr(overview, field.name) for field in fields(overview)}
    return StatusSnapshot(number=number, last_change=last_change, **read)
