"""The engine's pulse: what it tells others through the store, so that any process can watch it run.

Every two seconds a small value says that it lives and how far it got; every ten, a point is added to the
course of the last day: freshness with its interval, age, counts. Whoever reads them needs no engine at hand.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
import numpy.typing as npt

from afresh.engine.asked import Asked, asked
from afresh.engine.logs import say
from afresh.engine.loop import Loop
from afresh.engine.settings import Settings
from afresh.engine.state_names import COURSE, PULSE
from afresh.engine.status import mean_age_s, modelled
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.errors import StoreError

BEAT_S, POINT_S = 2.0, 10.0
_FINE_S, _COARSE_S, _KEPT_S = 900.0, 60.0, 86400.0
_COSTLY = 100.0  # a point may take a hundredth of the time at most
FIELDS = ("time_s", "freshness", "low", "high", "age_s", "polls", "changes", "failures", "requests")
Course = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pulse:
    """The last sign of life. ``stopped``: it ended in order; ``trouble``: what holds it up, in words."""

    time_s: float
    started_s: float
    polls: int = 0
    changes: int = 0
    failures: int = 0
    requests: int = 0
    audits: int = 0
    in_flight: int = 0
    trouble: str = ""
    stopped: bool = False

    def pack(self) -> bytes:
        """As the store keeps it."""
        return json.dumps(asdict(self)).encode()

    def state(self, now_s: float) -> str:
        """``running``, ``stopped``, or ``lost`` when it has been silent for too long.

        >>> Pulse(100.0, 0.0).state(103.0), Pulse(100.0, 0.0).state(200.0)
        ('running', 'lost')
        """
        if self.stopped:
            return "stopped"
        return "running" if abs(now_s - self.time_s) < 5 * BEAT_S else "lost"


def read_pulse(store: Store) -> Pulse | None:
    """The last sign of life, None if there never was one."""
    packed = store.state.get(PULSE)
    return Pulse(**json.loads(packed)) if packed else None


def read_course(store: Store) -> Course:
    """The course of the last day, a row per point, columns as in ``FIELDS``."""
    packed = store.state.get(COURSE)
    flat = np.frombuffer(packed, dtype=np.float64) if packed else np.empty(0)
    return flat.reshape(-1, len(FIELDS))


def thinned(course: Course, now_s: float) -> Course:
    """All points of the last quarter of an hour, one a minute before, none older than a day.

    >>> course = np.zeros((3, len(FIELDS)))
    >>> course[:, 0] = [0.0, 10.0, 4000.0]
    >>> thinned(course, 4000.0)[:, 0]
    array([   0., 4000.])
    """
    age_s = now_s - course[:, 0]
    minute = np.floor(course[:, 0] / _COARSE_S)
    first = np.r_[True, minute[1:] != minute[:-1]][: minute.size]
    return np.asarray(course[(age_s <= _KEPT_S) & (first | (age_s <= _FINE_S))], dtype=np.float64)


class Beat:
    """Tells of one loop until cancelled, and lets it follow the budget that is asked for; ``current`` says
    the settings that count."""

    def __init__(self, loop: Loop, store: Store, clock: Clock, current: Callable[[], Settings]) -> None:
        self._loop, self._store, self._clock, self._current = loop, store, clock, current
        self._beats = 0
        self._started_s = clock.now_s()
        self._point_s, self._every_s = -math.inf, POINT_S
        self._asked: Asked | None = None

    async def run(self) -> None:
        """Until cancelled; then a last beat says that it ended in order."""
        try:
            while True:
                if self._loop.running:
                    await self._quietly(self._once)
                await asyncio.sleep(BEAT_S)
        finally:
            if self._loop.running and self._loop.member.plans:
                last = self._pulse(stopped=True).pack()
                await self._quietly(lambda: self._keep({PULSE: last}))

    async def _once(self) -> None:
        await self._follow()
        if not self._loop.member.plans:
            return  # one speaks for all
        values = {PULSE: self._pulse().pack()}
        if self._clock.elapsed_s() >= self._point_s + self._every_s:
            self._point_s = self._clock.elapsed_s()
            point = self._point()
            self._every_s = max(POINT_S, _COSTLY * (self._clock.elapsed_s() - self._point_s))
            before = await asyncio.to_thread(read_course, self._store)
            values[COURSE] = thinned(np.concatenate((before, point)), float(point[0, 0])).tobytes()
        await self._keep(values)

    async def _follow(self) -> None:
        """Another budget was asked for since, or none any more."""
        before, self._asked = self._asked, await asyncio.to_thread(asked, self._store)
        if self._beats and self._asked != before:
            budget = (await asyncio.to_thread(self._current)).budget
            self._loop.reload(replace(self._loop.settings, budget=budget))
            say(logging.INFO, "budget asked for", requests_per_s=budget.requests)
        self._beats += 1

    async def _keep(self, values: Mapping[str, bytes]) -> None:
        await asyncio.to_thread(self._store.state.set, values)

    async def _quietly(self, work: Callable[[], Awaitable[None]]) -> None:
        """A store in trouble is the writer's business; a beat that was not kept shows as silence."""
        try:
            await work()
        except StoreError as error:
            say(logging.DEBUG, "pulse not kept", problem=str(error))

    def _pulse(self, *, stopped: bool = False) -> Pulse:
        progress = asdict(self._loop.progress())
        del progress["freshness"]
        return Pulse(self._clock.now_s(), self._started_s, **progress, stopped=stopped)

    def _point(self) -> Course:
        now_s, policy = self._clock.now_s(), self._loop.policy
        share, progress = modelled(policy, now_s), self._loop.progress()
        counts = (progress.polls, progress.changes, progress.failures, progress.requests)
        age_s = mean_age_s(policy, now_s)
        return np.array([[now_s, share.value, share.low, share.high, age_s, *counts]])
