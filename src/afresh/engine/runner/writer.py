"""Commits the outcomes of polls in batches, in the thread that calls the store.

A poll waits at most ``GATHER_S`` seconds for others before its commit begins. While the store is locked, full
or read-only, the polls wait in memory; if too many wait (``is_full``), the dispatcher starts no more polls.

Work before a commit may take long: the pages behind thousands of links are added, a large copy is compared
with the one before. Such polls form batches of their own, so that the others do not wait for them.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence

from afresh.engine.change_sizes import measure_changes, needs_size
from afresh.engine.logs import log_event
from afresh.engine.runner.followed.found_pages import LINKS_AT_ONCE, add_found_pages
from afresh.engine.runner.run_context import RunContext
from afresh.engine.runner.staleness_task import StalenessTask
from afresh.engine.scheduler.store_room import StoreRoom, copied_bytes
from afresh.engine.state_names import POLL_COSTS, SHADOW_PRICE
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.values.outcome import Outcome

GATHER_S = 0.03
_MOST = 2000
_MOST_BYTES = 64_000_000
_LARGE_BYTES, _MANY_LINKS = 262_144, 500  # to compare such copies, or to add such links, takes about 0.1 s


class _Batch:
    """Polls that wait for the same commit."""

    def __init__(self) -> None:
        self._waiting: list[Outcome] = []
        self._bytes = 0
        self._has_polls, self.is_idle = asyncio.Event(), asyncio.Event()
        self.is_idle.set()

    def put(self, poll: Outcome) -> None:
        self._waiting.append(poll)
        self._bytes += _held_bytes([poll])
        self.is_idle.clear()
        self._has_polls.set()

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= _MOST or self._bytes >= _MOST_BYTES

    async def commit_with(self, commit: Callable[[list[Outcome]], Awaitable[None]]) -> None:
        """Call ``commit`` with the polls that wait, again and again, until cancelled."""
        while True:
            await self._has_polls.wait()
            await asyncio.sleep(GATHER_S)
            self._has_polls.clear()  # before the commit, so that a poll that is put during it sets it again
            group, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
            if self._waiting:
                self._has_polls.set()
            self._bytes = _held_bytes(self._waiting)
            if group:
                await commit(group)
            if not self._waiting:
                self.is_idle.set()


class Writer:
    """Collects decided polls in batches, lets the scheduler learn from each batch, and commits it."""

    def __init__(
        self, context: RunContext, staleness_task: StalenessTask, parsers: ParserPool | None = None
    ) -> None:
        self._context, self._scheduler, self._recorder = context, context.scheduler, context.recorder
        self._staleness_task, self._room = staleness_task, StoreRoom(context.store.sync)
        self._parsers = parsers or ParserPool()
        self._quick, self._slow = _Batch(), _Batch()
        self.added_s = -math.inf  # elapsed seconds when links may have added items

    def put(self, poll: Outcome) -> None:
        (self._slow if _is_slow(poll) else self._quick).put(poll)

    @property
    def is_full(self) -> bool:
        """Whether too many polls wait, because the store is slow or cannot be written."""
        return self._quick.is_full or self._slow.is_full

    async def run(self) -> None:
        tasks = [asyncio.create_task(each.commit_with(self._commit)) for each in (self._quick, self._slow)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _commit(self, group: list[Outcome]) -> None:
        store, max_bytes = self._context.store, self._context.settings.now.store.max_size
        now_s = self._context.clock.now_s()
        if self._room.must_measure(group):
            await store.run(self._room.measure, copied_bytes(group), max_bytes, now_s)
        group = self._room.admit(group, max_bytes, self._recorder)
        outcomes = await self._measure_changes(self._recorder.complete(group, now_s))
        outcomes = await self._add_found_pages(outcomes, now_s)
        for refusal in await store.run(store.sync.commit, outcomes, self._shared_state()):
            log_event(logging.WARNING, "an outcome was not committed", problem=str(refusal))
        self._room.record_committed(group)
        self._staleness_task.after_commit()
        # The rows stay busy until the commit is over, so that no item is polled twice at once.
        rows = self._scheduler.item_rows.rows([poll.lease.item_id for poll in group])
        self._scheduler.item_rows.is_busy[rows] = False
        self._scheduler.picker.record_polled(rows, self._context.clock.now_s())
        self._context.wakeup.set()

    async def _add_found_pages(self, outcomes: list[Outcome], now_s: float) -> list[Outcome]:
        """Add the pages to which the polled pages link; return the outcomes with how many were new."""
        links = sum(map(_count_links, outcomes))
        if not any(outcome.links is not None for outcome in outcomes):
            return outcomes
        store, settings = self._context.store, self._context.settings.now
        run = store.run if links <= LINKS_AT_ONCE else store.run_beside
        outcomes = await run(add_found_pages, store.sync, settings, outcomes, now_s)
        self.added_s = self._context.clock.elapsed_s()
        return outcomes

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
        for batch in (self._quick, self._slow):
            await batch.is_idle.wait()


def _is_slow(poll: Outcome) -> bool:
    """Return whether a poll needs much work before its commit."""
    return copied_bytes([poll]) > _LARGE_BYTES or _count_links(poll) > _MANY_LINKS


def _count_links(poll: Outcome) -> int:
    return 0 if poll.links is None else len(poll.links.keys) + len(poll.links.traps)


def _held_bytes(polls: Sequence[Outcome]) -> int:
    """Return about how much memory the contents and the links of these polls take."""
    texts = [poll.links.keys + poll.links.traps for poll in polls if poll.links is not None]
    return copied_bytes(polls) + sum(len(key) for keys in texts for key in keys)


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
