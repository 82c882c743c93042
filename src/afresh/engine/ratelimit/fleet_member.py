"""This process as one of the workers on its store: it beats, holds claims, and perhaps plans for all.

What only one of them may do (save what was learned of all items together, read listings, call hooks, write
the course) is done by the holder of the claim ``PLANNER``. A worker that died is replaced when its claims run
out or, where its process on this machine is known to be gone, at the next beat.
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
from afresh.stores.store import PLANNER, Store
from afresh.values.clock import Clock
from afresh.values.errors import StoreError
from afresh.values.stored import Worker

BEATS, LONGEST_BEAT_S = 4.0, 2.0
"""The least number of beats during a claim, and the longest time between two."""

FORGOTTEN = 100.0  # lengths of a claim after which a worker that never left is forgotten
_MEASURE_S = 60.0
_CLOCK_STEP_S = 1.0  # smaller steps back of a clock are corrections, and followed


class SteadyClock:
    """The time of day of all workers. It follows a clock forward, and back only by small steps: no window or
    claim lies far ahead of it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_s = clock.now_s() - clock.elapsed_s()

    def now_s(self) -> float:
        return self.pair()[0]

    def pair(self) -> tuple[float, float]:
        """Return the Unix seconds and the elapsed seconds of this moment."""
        elapsed_s = self._clock.elapsed_s()
        offset_s = self._clock.now_s() - elapsed_s
        if offset_s > self._offset_s - _CLOCK_STEP_S:
            self._offset_s = offset_s
        return elapsed_s + self._offset_s, elapsed_s


class FleetMember:
    """One worker, from ``join`` to ``leave``."""

    def __init__(
        self, store: ThreadedStore, clock: Clock, wakeup: asyncio.Event, *, claim_s: float, delay_s: float
    ) -> None:
        """``delay_s`` is the time between two requests to one group; ``wakeup`` is set by new claims."""
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
    def is_planner(self) -> bool:
        return self._clock.elapsed_s() < self._planner_until_s

    async def join(self) -> None:
        """Become a worker; those that died on this machine are removed first."""
        await self.beat()
        self._removed_s = -math.inf  # what they knew is read at the start

    def _remove_dead(self) -> None:
        fleet, now_s = self._store.sync.fleet, self.time.now_s()
        for worker in fleet.workers(-math.inf):
            if is_dead(worker.name) or worker.seen_s < now_s - FORGOTTEN * self._claim_s:
                fleet.leave(worker.name)
                # Its last request may have been a moment ago, if its claims had not run out.
                left_s = max(self._left_s(), min(worker.seen_s + self._claim_s, now_s))
                self._store.sync.state.set({LAST_LEFT: repr(left_s).encode()})
                self._removed_s = now_s

    async def run(self, is_quiet: Callable[[str], bool]) -> None:
        """Beat until cancelled; ``is_quiet`` tells whether a group can be released at this moment."""
        while True:
            await asyncio.sleep(min(self._claim_s / BEATS, LONGEST_BEAT_S))
            await self.beat()
            self.report_idleness()
            names = self.claims.release_idle(await self._share(), is_quiet)
            if names:
                await self._store.fleet.release(names, self.name)

    def report_idleness(self) -> None:
        """Log once that this worker has nothing to do, because others hold every host."""
        idle = not self.is_alone and self.claims.waits_for_others
        if idle and not self._is_idle:
            words = "another engine on this store asks every host: this one waits until it gives one up"
            log_event(logging.INFO, words, engines=self._others_count)
        self._is_idle = idle

    async def _share(self) -> float:
        """Return how many groups are a fair share for one worker; infinite for one that is alone."""
        if self.is_alone:
            return math.inf
        claims = await self._store.fleet.claims(self.time.now_s())
        groups = sum(claim.name != PLANNER for claim in claims)
        return math.ceil(groups / (1 + self._others_count))

    async def beat(self) -> None:
        """Give a sign of life, remove the dead, renew the claims, and take the planner's if it is free."""
        before = self.is_planner
        await self._store.call_with_retry(self._remove_dead)
        held, others, begun_s = await self._store.call_with_retry(self._beat)
        self.claims.record_renewal(held, begun_s)
        self._others_count = len(others)
        self._planner_until_s = begun_s + self._claim_s if PLANNER in held else -math.inf
        if self.is_planner != before:
            log_event(
                logging.DEBUG, "plans for all" if self.is_planner else "another plans", worker=self.name
            )

    def _beat(self) -> tuple[tuple[str, ...], list[Worker], float]:
        """Return the claims held, the other workers, and when that was, in elapsed seconds."""
        fleet = self._store.sync.fleet
        if isinstance(self._clock, SharedClock) and self._clock.elapsed_s() > self._measured_s + _MEASURE_S:
            self._clock.measure()
            self._measured_s = self._clock.elapsed_s()
        (now_s, begun_s), mine = self.time.pair(), self._worker
        fleet.beat(Worker(mine.name, mine.host, mine.started_s, now_s))
        held = fleet.renew(self.name, now_s, self._claim_s)
        if PLANNER not in held:
            held = (*held, *fleet.take([PLANNER], self.name, now_s, self._claim_s))
        return held, self._others(now_s - self._claim_s), begun_s

    def _others(self, since_s: float) -> list[Worker]:
        return [worker for worker in self._store.sync.fleet.workers(since_s) if worker.name != self.name]

    async def take_claims(self, names: Sequence[str]) -> TakenClaims:
        return await self._store.call_with_retry(lambda: self._take_claims(names))

    def _take_claims(self, names: Sequence[str]) -> TakenClaims:
        """Take these claims. Their last holder may have sent a request just before, unless there was none."""
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
        """Release all claims, so that others continue at once; in a store in trouble they run out."""
        try:
            await self._store.call(self._leave)
        except StoreError as error:
            log_event(logging.DEBUG, "could not leave in order", problem=str(error))

    def _leave(self) -> None:
        self._store.sync.state.set({LAST_LEFT: repr(self.time.now_s()).encode()})
        self._store.sync.fleet.leave(self.name)


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """One engine that polls: when it was last seen, the groups it holds, whether it plans for all."""

    name: str
    host: str
    started_s: float
    seen_s: float
    groups: int
    plans: bool


def list_workers(store: Store, now_s: float, claim_s: float) -> tuple[WorkerStatus, ...]:
    """Return the workers that were seen within the length of a claim, and what each holds."""
    held: dict[str, list[str]] = {}
    for claim in store.fleet.claims(now_s):
        held.setdefault(claim.worker, []).append(claim.name)
    return tuple(
        WorkerStatus(
            worker.name,
            worker.host,
            worker.started_s,
            worker.seen_s,
            groups=sum(name != PLANNER for name in held.get(worker.name, [])),
            plans=PLANNER in held.get(worker.name, []),
        )
        for worker in store.fleet.workers(now_s - claim_s)
    )
