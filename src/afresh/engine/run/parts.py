"""What a run is made of: wired once by the loop, shared by its stages."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from afresh.engine.mind.accounts import Accounts
from afresh.engine.mind.memory import Memory
from afresh.engine.mind.picker import Picker, Place
from afresh.engine.mind.row_policy import RowPolicy
from afresh.engine.pace.fleet import Member
from afresh.engine.pace.gate import Gate
from afresh.engine.run.listing_task import ListingTask
from afresh.engine.run.sight_task import SightTask
from afresh.engine.run.source_set import SourceSet
from afresh.engine.run.watch import Watch
from afresh.engine.settings.tables import Settings
from afresh.engine.writer import Writer
from afresh.stores.store import Store
from afresh.values.clock import Clock

TICK_S = 0.5  # how often the loop looks again where nothing wakes it


@dataclass(frozen=True, slots=True)
class Parts:
    """``stirred`` is set whenever something ends or changes that the feed may wait for."""

    store: Store
    clock: Clock
    stirred: asyncio.Event
    writer: Writer
    member: Member
    gate: Gate
    picker: Picker
    accounts: Accounts
    sources: SourceSet
    watch: Watch
    listing_task: ListingTask
    sight_task: SightTask

    @property
    def memory(self) -> Memory:
        """All items."""
        return self.picker.memory

    @property
    def policy(self) -> RowPolicy:
        """What they are worth."""
        return self.picker.policy

    @property
    def settings(self) -> Settings:
        """Those of now: they may be reloaded."""
        return self.accounts.settings

    @property
    def lease_s(self) -> float:
        """For how long items are leased: no longer than their groups are surely ours."""
        return min(self.settings.run.lease, self.settings.run.claim)

    def named(self, place: Place) -> tuple[str, str]:
        """The names of a place's source and group."""
        return self.watch.names.get(place[0], ""), self.watch.names.get(place[1], "")
