"""What a run is made of: wired once by the loop, shared by its stages."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from afresh.engine.ratelimit.fleet_member import FleetMember
from afresh.engine.ratelimit.gate import Gate
from afresh.engine.runner.listing_task import ListingTask
from afresh.engine.runner.source_set import SourceSet
from afresh.engine.runner.staleness_task import StalenessTask
from afresh.engine.runner.store_watcher import StoreWatcher
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.picker import GroupKey, Picker
from afresh.engine.scheduler.poll_recorder import PollRecorder
from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.engine.settings.tables import Settings
from afresh.engine.writer import Writer
from afresh.stores.store import Store
from afresh.values.clock import Clock

TICK_S = 0.5  # how often the loop looks again where nothing wakes it


@dataclass(frozen=True, slots=True)
class RunParts:
    """``wakeup`` is set whenever something ends or changes that the feed may wait for."""

    store: Store
    clock: Clock
    wakeup: asyncio.Event
    writer: Writer
    member: FleetMember
    gate: Gate
    picker: Picker
    recorder: PollRecorder
    sources: SourceSet
    watch: StoreWatcher
    listing_task: ListingTask
    staleness_task: StalenessTask

    @property
    def item_rows(self) -> ItemRows:
        """All items."""
        return self.picker.item_rows

    @property
    def policy(self) -> RowPolicy:
        """What they are worth."""
        return self.picker.policy

    @property
    def settings(self) -> Settings:
        """Those of now: they may be reloaded."""
        return self.recorder.settings

    @property
    def lease_s(self) -> float:
        """For how long items are leased: no longer than their groups are surely ours."""
        return min(self.settings.run.lease, self.settings.run.claim)

    def named(self, group_key: GroupKey) -> tuple[str, str]:
        """The names of a place's source and group."""
        return self.watch.names.get(group_key[0], ""), self.watch.names.get(group_key[1], "")
