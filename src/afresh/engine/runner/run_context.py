"""What all tasks of a run work with, and how a run is asked to stop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from afresh.engine.ratelimit.fleet_member import FleetMember
from afresh.engine.ratelimit.gate import Gate
from afresh.engine.runner.source_set import SourceSet
from afresh.engine.scheduler.poll_recorder import PollRecorder
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.tables import LiveSettings
from afresh.engine.threaded_store import ThreadedStore
from afresh.values.clock import Clock

TICK_S = 0.5  # how often the parts of a run look again where nothing wakes them


class StopSignal:
    """Asks a run to stop; it may be asked before the run is built. ``wakeup`` is set whenever something ends
    or changes that the dispatcher may wait for."""

    def __init__(self) -> None:
        self.wakeup, self.is_requested, self.abandoned = asyncio.Event(), False, asyncio.Event()

    def request(self) -> None:
        """Start no more polls; end when those under way are committed. When asked again, end at once."""
        if self.is_requested:
            self.abandoned.set()
        self.is_requested = True
        self.wakeup.set()


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all tasks of a run work with, made once by ``build_run``; ``wakeup`` wakes the dispatcher."""

    store: ThreadedStore
    clock: Clock
    settings: LiveSettings
    wakeup: asyncio.Event
    member: FleetMember
    gate: Gate
    scheduler: Scheduler
    recorder: PollRecorder
    sources: SourceSet

    @property
    def lease_s(self) -> float:
        """For how long items are leased: not longer than their groups are surely claimed."""
        return min(self.settings.now.run.lease, self.settings.now.run.claim)
