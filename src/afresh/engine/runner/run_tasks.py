"""The tasks of a run, made once by ``build_run``."""

from __future__ import annotations

from dataclasses import dataclass

from afresh.engine.runner.hooks import Hooks
from afresh.engine.runner.listing_task import ListingTask
from afresh.engine.runner.staleness_task import StalenessTask
from afresh.engine.runner.store_watcher import StoreWatcher
from afresh.engine.runner.writer import Writer


@dataclass(frozen=True, slots=True)
class RunTasks:
    """The tasks beside the polls, and the writer that commits the polls."""

    watcher: StoreWatcher
    listing: ListingTask
    staleness: StalenessTask
    hooks: Hooks
    writer: Writer
