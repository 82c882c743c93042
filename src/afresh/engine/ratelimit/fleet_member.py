"""This process as one of the workers on a store: it sends heartbeats, holds claims, and may be the planner.

The planner is the worker that holds the claim ``PLANNER``. It does what only one worker may do: save what was
learned of all items together, read listings, call hooks, write the pulse. Others take the claims of a dead
worker when these expire or, if its process ran on this machine and no longer exists, at the next heartbeat.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from afresh.engine.logs import log_event
from afresh.engine.ratelimit.claims import Claims, TakenClaims
from afresh.engine.ratelimit.worker_name import is_dead, this_worker
from afresh.engine.state_names import LAST_LEFT
from afresh.engine.threaded_store import ThreadedStore
from afresh.stores.shared_time import SharedClock
from afresh.stores.store import PLANNER, Store, group_claim
from afresh.values.clock import Clock
from afresh.values.errors import StoreError
from afresh.values.stored import Worker

BEATS, LONGEST_BEAT_S = 4.0, 2.0
"""The least number of heartbeats during a claim, and the longest time between two of them in seconds."""

FORGOTTEN = 100.0  # a worker that did not leave is removed after 100 times the length of a claim
_MEASURE_S = 60.0
_CLOCK_STEP_S = 1.0  # smaller steps back of the clock are corrections, which ``SteadyClock`` follows


class SteadyClock:
    """A clock in Unix seconds for the times that workers share. It follows ``clock``. If ``clock`` is set
    back by a second or more, it continues at the old time: windows and claims in the store would otherwise be
    far in the future."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_s = clock.now_s() - clock.elapsed_s()

    def now_s(self) -> float:
        return self.pair()[0]

    def pair(self) -> tuple[float, float]:
        """Return a tuple (now, elapsed): the time in Unix seconds, and by a clock that is never set."""
        elapsed_s = self._clock.elapsed_s()
        offset_s = self._clock.now_s() - elapsed_s
        if offset_s > self._offset_s - _CLOCK_STEP_S:
            self._offset_s = offset_s
        return elapsed_s + self._offset_s, elapsed_s


class FleetMember:
    """This process as a worker. It is registered by ``join`` and removed by ``leave``."""

    def __init__(
        self, store: ThreadedStore, clock: Clock, wakeup: asyncio.Event, *, claim_s: float, delay_s: float
    ) -> None:
        """``claim_s`` is the length of a claim, ``delay_s`` the time between two requests to a group."""
        self._store, self._clock, self._claim_s = store, clock, claim_s
        self._delay_s, self.time = delay_s, SteadyClock(clock)
        self._worker = this_worker(clock, self.time.now_s())
        self.name = self._worker.name
        self.claims = Claims(clock, claim_s, self.take_claims, wakeup)
        self._others_count, self._planner_until_s = 0, -math.inf
        self._removed_s = -math.inf
        self._measured_s, self._is_idle = clock.elapsed_s(), False

    @property
    def is_alone(self) -> bool:
        return self._others_count == 0

    @property
    def workers_count(self) -> int:
        return 1 + self._others_count

    @property
    def is_planner(self) -> bool:
        return self._clock.elapsed_s() < self._planner_until_s

    async def join(self) -> None:
        """Register as a worker. Dead workers are removed first."""
        await self.beat()
        self._removed_s = -math.inf  # what the dead workers saved is read at the start anyway

    def _remove_dead(self) -> None:
        fleet, now_s = self._store.sync.fleet, self.time.now_s()
        for worker in fleet.workers(-math.inf):
            if is_dead(worker.name) or worker.seen_s < now_s - FORGOTTEN * self._claim_s:
                fleet.leave(worker.name)
                # The dead worker may have sent requests until its claims expired.
                left_s = max(self._left_s(), min(worker.seen_s + self._claim_s, now_s))
                self._store.sync.state.set({LAST_LEFT: repr(left_s).encode()})
                self._removed_s = now_s

    async def run(self, is_quiet: Callable[[str], bool]) -> None:
        """Send heartbeats until cancelled; ``is_quiet`` returns whether a group can be released now."""
        while True:
            await asyncio.sleep(min(self._claim_s / BEATS, LONGEST_BEAT_S))
            await self.beat()
            self.report_idleness()
            names = self.claims.release_idle(await self._share(), is_quiet)
            if names:
                await self._store.run(self._store.sync.fleet.release, names, self.name)

    def report_idleness(self) -> None:
        """Log once that this worker has nothing to do because other workers hold every group."""
        idle = not self.is_alone and self.claims.waits_for_others
        if idle and not self._is_idle:
            words = "other engines on this store hold every host: this one waits until a host is released"
            log_event(logging.INFO, words, engines=self._others_count)
        self._is_idle = idle

    async def _share(self) -> float:
        """Return the fair share of one worker, as a number of groups; infinite without other workers."""
        if self.is_alone:
            return math.inf
        claims = await self._store.run(self._store.sync.fleet.claims, self.time.now_s())
        groups = sum(claim.name.startswith(group_claim("")) for claim in claims)
        return math.ceil(groups / (1 + self._others_count))

    async def beat(self) -> None:
        """Send a heartbeat, remove dead workers, renew the claims, and become planner if there is none."""
        before = self.is_planner
        await self._store.run(self._remove_dead)
        held, others, begun_s = await self._store.run(self._beat)
        self.claims.record_renewal(held, begun_s)
        self._others_count = len(others)
        self._planner_until_s = begun_s + self._claim_s if PLANNER in held else -math.inf
        if self.is_planner != before:
            log_event(
                logging.DEBUG, "plans for all" if self.is_planner else "another plans", worker=self.name
            )

    def _beat(self) -> tuple[tuple[str, ...], list[Worker], float]:
        """Send a heartbeat. Return a tuple: the names of the claims held, the other workers, and the time of
        the renewal in elapsed seconds."""
        fleet = self._store.sync.fleet
        if isinstance(self._clock, SharedClock) and self._clock.elapsed_s() > self._measured_s + _MEASURE_S:
            self._clock.measure()
            self._measured_s = self._clock.elapsed_s()
        # Both clocks are read at the same moment, so that claims end here when they end in the store.
        (now_s, begun_s), mine = self.time.pair(), self._worker
        fleet.beat(Worker(mine.name, mine.host, mine.started_s, now_s))
        held = fleet.renew(self.name, now_s, self._claim_s)
        if PLANNER not in held:
            held = (*held, *fleet.take([PLANNER], self.name, now_s, self._claim_s))
        return held, self._others(now_s - self._claim_s), begun_s

    def _others(self, since_s: float) -> list[Worker]:
        return [worker for worker in self._store.sync.fleet.workers(since_s) if worker.name != self.name]

    async def take_claims(self, names: Sequence[str]) -> TakenClaims:
        return await self._store.run(self._take_claims, names)

    def _take_claims(self, names: Sequence[str]) -> TakenClaims:
        """Take those of the claims that are free. If other workers were seen recently, the last holder of a
        group may have sent a request just now: then requests start only after the delay of the group."""
        now_s, begun_s = self.time.pair()
        held = self._store.sync.fleet.take(names, self.name, now_s, self._claim_s)
        recently_s = now_s - 2 * self._claim_s - self._delay_s
        others = self._removed_s > recently_s or bool(self._others(recently_s))
        asked_s = now_s if others else self._left_s()
        grace_s = min(max(asked_s + self._delay_s - now_s, 0.0), self._delay_s)
        return TakenClaims(held, begun_s + self._claim_s, begun_s + grace_s, others)

    def _left_s(self) -> float:
        kept = self._store.sync.state.get(LAST_LEFT)
        return float(kept) if kept else -math.inf

    async def leave(self) -> None:
        """Leave the fleet and release all claims; if the store cannot be written, they expire."""
        try:
            await self._store.run_once(self._leave)
        except StoreError as error:
            words = "could not release the hosts: other engines on this store ask them when the claims expire"
            log_event(logging.WARNING, words, problem=str(error))

    def _leave(self) -> None:
        self._store.sync.state.set({LAST_LEFT: repr(self.time.now_s()).encode()})
        self._store.sync.fleet.leave(self.name)


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """One running engine: when it was last seen, how many groups it holds, and whether it is the planner."""

    name: str
    host: str
    started_s: float
    seen_s: float
    groups: int
    plans: bool


def list_workers(store: Store, now_s: float, claim_s: float) -> tuple[WorkerStatus, ...]:
    """Return the workers that were seen within the last ``claim_s`` seconds, with the claims they hold."""
    held: dict[str, list[str]] = {}
    for claim in store.fleet.claims(now_s):
        held.setdefault(claim.worker, []).append(claim.name)
    found = []
    for worker in store.fleet.workers(now_s - claim_s):
        names = held.get(worker.name, [])
        groups, plans = sum(name != PLANNER for name in names), PLANNER in names
        found.append(WorkerStatus(worker.name, worker.host, worker.started_s, worker.seen_s, groups, plans))
    return tuple(found)
