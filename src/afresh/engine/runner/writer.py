"""Commits the outcomes of polls in batches, in the thread that calls the store.

A poll waits at most ``GATHER_S`` seconds for others before its commit begins. While the store is locked, full
or read-only, the polls wait in memory; if too many wait (``is_full``), the dispatcher starts no more polls.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping

from afresh.engine.change_sizes import measure_changes, needs_size
from afresh.engine.logs import log_event
from afresh.engine.runner.followed.found_pages import add_found_pages
from afresh.engine.runner.run_context import RunContext
from afresh.engine.runner.staleness_task import StalenessTask
from afresh.engine.scheduler.store_room import StoreRoom, copied_bytes
from afresh.engine.state_names import POLL_COSTS, SHADOW_PRICE
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.values.outcome import Outcome

GATHER_S = 0.03
_MOST = 2000
_MOST_BYTES = 64_000_000


class Writer:
    """Collects decided polls in batches, lets the scheduler learn from each batch, and commits it."""

    def __init__(
        self, context: RunContext, staleness_task: StalenessTask, parsers: ParserPool | None = None
    ) -> None:
        self._context, self._scheduler, self._recorder = context, context.scheduler, context.recorder
        self._staleness_task, self._room = staleness_task, StoreRoom(context.store.sync)
        self._parsers = parsers or ParserPool()
        self._waiting: list[Outcome] = []
        self._bytes, self.added_s = 0, -math.inf  # elapsed seconds when links may have added items
        self._has_polls, self._is_idle = asyncio.Event(), asyncio.Event()
        self._is_idle.set()

    def put(self, poll: Outcome) -> None:
        self._waiting.append(poll)
        self._bytes += copied_bytes([poll])
        self._is_idle.clear()
        self._has_polls.set()

    @property
    def is_full(self) -> bool:
        """Whether too many polls wait, because the store is slow or cannot be written."""
        return len(self._waiting) >= _MOST or self._bytes >= _MOST_BYTES

    async def run(self) -> None:
        while True:
            await self._has_polls.wait()
            await asyncio.sleep(GATHER_S)
            self._has_polls.clear()  # before the commit, so that a poll that is put during it sets it again
            group, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            if self._waiting:
                self._has_polls.set()
            self._bytes = copied_bytes(self._waiting)
            if group:
                await self._commit(group)
            if not self._waiting:
                self._is_idle.set()

    async def _commit(self, group: list[Outcome]) -> None:
        store, max_bytes = self._context.store, self._context.settings.now.store.max_size
        now_s = self._context.clock.now_s()
        if self._room.must_measure(group):
            await store.run(self._room.measure, copied_bytes(group), max_bytes, now_s)
        group = self._room.admit(group, max_bytes, self._recorder)
        outcomes = await self._measure_changes(self._recorder.complete(group, now_s))
        if any(outcome.links is not None for outcome in outcomes):
            settings = self._context.settings.now
            outcomes = await store.run(add_found_pages, store.sync, settings, outcomes, now_s)
            self.added_s = self._context.clock.elapsed_s()
        for refusal in await store.run(store.sync.commit, outcomes, self._shared_state()):
            log_event(logging.WARNING, "an outcome was not committed", problem=str(refusal))
        self._staleness_task.after_commit()
        # The rows stay busy until the commit is over, so that no item is polled twice at once.
        rows = self._scheduler.item_rows.rows([poll.lease.item_id for poll in group])
        self._scheduler.item_rows.is_busy[rows] = False
        self._scheduler.picker.record_polled(rows, self._context.clock.now_s())
        self._context.wakeup.set()

    async def _measure_changes(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Return the outcomes with the sizes of their changes, for which the old copies must be read."""
        if not any(map(needs_size, outcomes)):
            return outcomes
        store, settings = self._context.store, self._context.settings.now
        return await store.run_beside(measure_changes, store.sync, self._parsers, settings, outcomes)

    def _shared_state(self) -> Mapping[str, bytes | None]:
        """Return the shadow price and the costs of polls to be saved, if this worker is the planner."""
        if not self._context.member.is_planner:
            return {}
        price = repr(self._scheduler.policy.shadow_price).encode()
        return {SHADOW_PRICE: price, POLL_COSTS: self._recorder.poll_costs.pack()}

    async def wait_until_committed(self) -> None:
        """Wait until all polls that were put are committed."""
        await self._is_idle.wait()


_OBJECTS_EVERY_S = 3600.0


async def delete_unnamed_copies(context: RunContext) -> None:
    """Delete copies from the object store that no version uses any more, once an hour until cancelled.
    Only the planner does it, if copies are objects."""
    while True:
        if context.settings.now.store.copies and context.member.is_planner:
            store = context.store
            work = store.sync.upkeep.delete_unnamed_copies
            deleted = await store.run_beside(work, context.member.time.now_s())
            if deleted:
                log_event(logging.INFO, "old copies were deleted from the object store", copies=deleted)
        await asyncio.sleep(_OBJECTS_EVERY_S)
