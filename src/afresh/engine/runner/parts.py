"""The parts of a run, built once by ``build_run`` and used by its stages."""

from __future__ import annotations

from dataclasses import dataclass

from afresh.engine.ratelimit.fleet_member import FleetMember
from afresh.engine.ratelimit.gate import Gate
from afresh.engine.runner.hooks import Hooks
from afresh.engine.runner.listing_task import ListingTask
from afresh.engine.runner.run_context import RunContext
from afresh.engine.runner.source_set import SourceSet
from afresh.engine.runner.staleness_task import StalenessTask
from afresh.engine.runner.store_watcher import StoreWatcher
from afresh.engine.runner.writer import Writer
from afresh.engine.scheduler.poll_recorder import PollRecorder
from afresh.engine.scheduler.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class RunParts:
    """Everything that the stages of a run work with."""

    context: RunContext
    member: FleetMember
    gate: Gate
    scheduler: Scheduler
    recorder: PollRecorder
    sources: SourceSet
    watcher: StoreWatcher
    listing_task: ListingTask
    staleness_task: StalenessTask
    hooks: Hooks
    writer: Writer
