"""The objects that all tasks of a run share, and the signal that stops a run."""

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

TICK_S = 0.5  # how often the tasks of a run check for work if no event wakes them


class StopSignal:
    """Requests that a run stops; this may happen before the run is built. ``wakeup`` wakes the dispatcher.
    ``abandoned`` is set if the run must end without waiting for its polls."""

    def __init__(self) -> None:
        self.wakeup, self.is_requested, self.abandoned = asyncio.Event(), False, asyncio.Event()

    def request(self) -> None:
        """Request that no more polls start, and that the run ends when the polls under way are committed. A
        second request ends the run at once."""
        if self.is_requested:
            self.abandoned.set()
        self.is_requested = True
        self.wakeup.set()


@dataclass(frozen=True, slots=True)
class RunContext:
    """The objects that all tasks of a run share, built by ``build_run``. ``wakeup`` wakes the dispatcher."""

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
        """The seconds for which items are leased, at most the length of a claim on their group."""
        return min(self.settings.now.run.lease, self.settings.now.run.claim)
