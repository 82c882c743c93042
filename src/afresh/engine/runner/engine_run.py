"""One run of the engine: it picks and leases rows, polls them, learns from the answers and commits them.

    Scheduler ──picker.next──▶ rows ──Store.leases.take──▶ Lease ──Source.poll──▶ Fetched
         ▲                (groups that are ready)                   (Gate: the budget)     │
         │                                                                                 ▼
         └── PollRecorder.complete ◀── Writer: groups of 30 ms ◀── Outcome ◀── PollRecorder.decide
                    └──▶ Store.commit

Decisions are made on one event loop. It calls the store in one thread (``ThreadedStore``), so that the calls
keep their order. The pulse and the loading of very many items use other threads; every store allows this.
A row is busy from its pick until its outcome is committed, so that this engine never polls it twice at once;
the lease prevents polls by other engines. After a stop no poll starts. Those that wait for the
budget give their leases back; the others end and are committed.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from afresh.engine.logs import log_event
from afresh.engine.ratelimit.request_slots import budget_limits, count_allowed
from afresh.engine.runner import background_load
from afresh.engine.runner.dispatcher import BUSY, REQUESTS, Dispatcher, RunTasks
from afresh.engine.runner.hooks import source_hooks
from afresh.engine.runner.listing_task import ListingResult
from afresh.engine.runner.poll_tasks import Bulk, PollTasks
from afresh.engine.runner.run_context import TICK_S, RunContext, StopSignal
from afresh.engine.runner.writer import delete_unnamed_copies
from afresh.engine.scheduler.content_settings import changed_sources, forget_rows
from afresh.engine.scheduler.run_failures import RunFailures
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import LAST_LEFT, ROUND_BEGAN
from afresh.values.items import ItemChange

_FEW = 1e-3  # a smaller part of the budget needs no reason
_MUCH = 1.1  # single rounds do not start at exactly even times


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The counts of a run since its start, the estimated freshness, why the store cannot be used, and what
    failed."""

    polls: int = 0
    changes: int = 0
    failures: int = 0
    requests: int = 0
    audits: int = 0
    in_flight: int = 0
    freshness: float = math.nan
    trouble: str = ""
    failed: RunFailures = field(default_factory=RunFailures)


class Run:
    """A run, built by ``build_run``. Call exactly one of ``run``, ``refresh`` and ``list_items``, once."""

    def __init__(
        self,
        context: RunContext,
        tasks: RunTasks,
        rng: np.random.Generator,
        stop: StopSignal,
        *,
        once: bool,
        is_complete: bool,
    ) -> None:
        """With ``once``, the run makes a single round. ``is_complete``: all items are loaded already."""
        self.context, self.tasks, self.scheduler = context, tasks, context.scheduler
        self._rng, self._stop = rng, stop
        self._once, self._was_complete, self._is_complete = once, is_complete, asyncio.Event()
        self.polls = PollTasks(context, tasks.writer)
        self.dispatcher = Dispatcher(context, tasks, self.polls, rng, stop)
        self._counted_items = _count_active(self.scheduler)
        self.lent_requests = 0  # requests of the budget that this run lent to other programs
        # The latest calls of ``Hooks.deliver`` and ``Notifier.deliver``.
        self._deliveries: dict[str, asyncio.Task[int]] = {}

    @property
    def settings(self) -> Settings:
        return self.context.settings.now

    def stop(self) -> None:
        self._stop.request()

    def progress(self) -> RunProgress:
        freshness, _ = self.scheduler.forecast.mean_freshness(self.context.clock.now_s())
        return replace(self.count_progress(), freshness=freshness)

    def count_progress(self) -> RunProgress:
        """Return the progress without the freshness, which takes longer to compute than all the rest."""
        counts = self.context.recorder.counts
        return RunProgress(
            **{name: counts[name] for name in ("polls", "changes", "failures", "audits")},
            requests=self.context.gate.requests,
            in_flight=len(self.polls.in_flight),
            trouble=self.context.store.trouble,
            failed=self.context.recorder.failures,
        )

    def count_unspent(self, lasted_s: float) -> dict[str, int]:
        """Return how many requests of the budget this run did not spend in ``lasted_s`` seconds, by reason:
        they were ``lent`` to other programs, ``hosts`` were at their limit, ``windows`` were closed, no item
        could be polled again because of its ``intervals``, rows were ``unchanged`` by a cursor that proved
        right, ``targets`` of views had to be kept, ``nothing`` was worth a poll, other ``limits`` of the
        budget were reached, or else the ``machine`` or the answers were too slow."""
        limits = budget_limits(self.settings.budget)
        unspent = max(limits.requests * lasted_s - self.context.gate.requests, 0.0)
        lent = min(self.lent_requests, unspent)
        lost = unspent - lent
        idle = {reason: limits.requests * seconds for reason, seconds in self.dispatcher.idle_s.items()}
        idle = {reason: each for reason, each in idle.items() if reason not in (BUSY, REQUESTS)}
        scale = min(lost / max(sum(idle.values()), 1e-9), 1.0)
        found = {"lent": round(lent)} | {reason: round(scale * each) for reason, each in idle.items()}
        found["machine" if limits.counts_only else "limits"] = round(unspent) - sum(found.values())
        return {reason: requests for reason, requests in found.items() if requests > 0}

    def count_unspent_seconds(self, lasted_s: float) -> dict[str, float]:
        """Return how many seconds of the budget were not spent in ``lasted_s`` seconds, by the reasons of
        ``count_unspent``, or ``requests`` if these were used up; nothing if seconds are not limited."""
        share = budget_limits(self.settings.budget).seconds
        if math.isinf(share):
            return {}
        lost_s = max(share * lasted_s - self.context.gate.spent.seconds, 0.0)
        idle_s = {name: share * time_s for name, time_s in self.dispatcher.idle_s.items() if name != BUSY}
        scale = min(lost_s / max(sum(idle_s.values()), 1e-9), 1.0)
        found = {reason: scale * seconds for reason, seconds in idle_s.items()}
        found["machine"] = lost_s - sum(found.values())
        return {reason: seconds for reason, seconds in found.items() if seconds > _FEW * share * lasted_s}

    # The three kinds of work.

    async def run(self, *, for_s: float = math.inf) -> RunProgress:
        """Poll items until a stop is requested, for ``for_s`` seconds, or until a single round is over. Raise
        the error of the store if it was given up (``RunInput.give_up_s``)."""
        clock = self.context.clock
        until_s = clock.elapsed_s() + for_s
        if self._once:
            await self._begin_single_round()
        else:  # the next single round counts from the end of this run
            await self.context.store.run(self.context.store.sync.state.set, {ROUND_BEGAN: None})
        serving, hooks, notifier = self._serve(), self.tasks.hooks, self.tasks.notifier
        helpers = {
            asyncio.create_task(self._follow_others()),
            asyncio.create_task(self.tasks.listing.run(once=self._once)),
            asyncio.create_task(self._deliver("hooks", hooks.deliver, hooks.forget_told)),
            asyncio.create_task(self._deliver("people", notifier.deliver, notifier.forget)),
            asyncio.create_task(self._save_and_adapt()),
        }
        try:
            await self.dispatcher.run(until_s, {*serving, *helpers})
        finally:
            await self._finish(serving, *helpers)
        for task in serving:
            if not task.cancelled() and task.exception() is not None:
                task.result()  # raises: what is not saved is polled again by the next run
        return self.progress()

    async def _begin_single_round(self) -> None:
        """Begin a single round with the requests of the time since the last round or, if that is less, those
        that the budget allows now. Warn if the burst does not cover this time."""
        context, limits = self.context, budget_limits(self.settings.budget)
        store, now_s = context.store, context.member.time.now_s()
        # The last request may wait for half a slot, so that a round that starts a little early loses none.
        soon_s = now_s + limits.spacing_s / 2
        state = store.sync.state
        allowed = await store.run(count_allowed, store.sync, limits, soon_s)
        before = await store.run(state.get, ROUND_BEGAN) or await store.run(state.get, LAST_LEFT)
        await store.run(state.set, {ROUND_BEGAN: repr(now_s).encode()})
        earned = (soon_s - float(before)) * limits.requests if before else 0.0
        left_out = context.recorder.begin_single_round(context.clock.now_s(), min(allowed, earned))
        # Items whose staleness is observed are left out because they are fresh.
        sources = context.sources
        is_seen = all(sources.capabilities(name).staleness is not None for name in sources.names())
        if left_out and not is_seen and earned > _MUCH * limits.burst + 1.0:
            words = (
                "the burst does not cover the time since the last run: raise [budget] burst to spend it all"
            )
            log_event(logging.WARNING, words, burst=limits.burst, needed=math.ceil(earned))

    async def refresh(self, item_id: int) -> bool:
        """Poll an item now, whatever its status; return False if another engine does or if it was removed."""
        row, serving = self.scheduler.item_rows.row(item_id), self._serve()
        try:
            if row is None or not await self._wait_for_group(row):
                return False
            context, now_s = self.context, self.context.clock.now_s()
            take, worker = context.store.sync.leases.take, context.member.name
            leases = await context.store.run_once(
                take, [item_id], now_s, context.lease_s, any_status=True, worker=worker
            )
            if not leases:
                return False
            group_key = self.scheduler.item_rows.group_key(row)
            self.polls.begin(group_key)
            await self.polls.poll(Bulk(group_key, (row,)), leases, may_choose=False)
            return True
        finally:
            await self._finish(serving)

    async def list_items(self, source: str) -> ListingResult:
        serving = self._serve()
        try:
            return await self.tasks.listing.read(source)
        finally:
            await self._finish(serving)

    async def _wait_for_group(self, row: int) -> bool:
        """Wait until this worker holds the claim on the group of ``row``. Meanwhile the item is made due, so
        that the worker that holds the group polls it. Return False if it did, or if the item was removed."""
        item_rows, store = self.scheduler.item_rows, self.context.store
        items = store.sync.items
        group, ids = self.scheduler.group_names(item_rows.group_key(row))[1], [int(item_rows.ids[row])]
        (before,) = await store.run(items.by_id, ids) or (None,)
        holding = asyncio.create_task(self.context.member.claims.wait_until_open(group))
        try:
            held, _ = await asyncio.wait({holding}, timeout=TICK_S)
            if not held and before is not None and before.status == "active":
                change = ItemChange(due_s=self.context.clock.now_s())
                await store.run(items.change, ids, change)
            while not held:
                held, _ = await asyncio.wait({holding}, timeout=TICK_S)
                (item,) = await store.run(items.by_id, ids) or (None,)
                if item is None or before is None or item.polls > before.polls:
                    return False
            return True
        finally:
            holding.cancel()

    # Tasks besides the polls.

    def _serve(self) -> tuple[asyncio.Task[None], ...]:
        """Start the tasks that run until the last outcome is committed: writer, heartbeat and claims."""
        member, inherit = self.context.member, self.context.sources.inherit
        work = (self.tasks.writer.run(), member.run(self.polls.is_quiet), member.claims.run(inherit))
        return tuple(asyncio.create_task(each) for each in work)

    async def _follow_others(self) -> None:
        """Load the items that are not loaded yet; then follow changes of the store and staleness reports."""
        if not self._was_complete:
            self.context.recorder.is_loading = True
            full = await background_load.load_all_items(self.context)
            if full is not None:
                self.dispatcher.run_when_idle(lambda: self._switch_to(full))
            await self._is_complete.wait()
        tasks = self.tasks
        others = (tasks.watcher.run(), tasks.staleness.run(), tasks.unlinked.run(), tasks.websub.run())
        await asyncio.gather(*others, delete_unnamed_copies(self.context))

    async def _switch_to(self, full: Scheduler) -> None:
        self.context.recorder.is_loading = False
        await background_load.switch_to_all_items(self.context, full)
        self.tasks.watcher.restart()
        self._counted_items = _count_active(self.scheduler)
        # The settings may have been reloaded while ``full`` was loaded.
        self.scheduler.follow_settings(self.context.recorder.money_input())
        self._is_complete.set()

    async def _deliver(
        self, name: str, deliver: Callable[[], Coroutine[Any, Any, int]], forget: Callable[[], None]
    ) -> None:
        """Deliver changes while this worker is the planner; ``forget`` is called while another one is."""
        while True:
            delivered = 0
            if self.context.member.is_planner:
                self._deliveries[name] = asyncio.create_task(deliver())
                delivered = await asyncio.shield(self._deliveries[name])
            else:
                forget()
            await asyncio.sleep(0 if delivered else TICK_S)

    async def _save_and_adapt(self) -> None:
        """Save the state of the sources regularly, and adapt a budget per item to the number of items."""
        while True:
            await asyncio.sleep(TICK_S)
            await self.context.sources.save_state(self.context.member.claims)
            items, budget = _count_active(self.scheduler), self.settings.budget
            if budget.each_item and items != self._counted_items:
                requests = budget.requests * items / self._counted_items
                self._counted_items = items
                self.reload(replace(self.settings, budget=budget.model_copy(update={"requests": requests})))

    # Settings and the end.

    def reload(self, settings: Settings) -> list[str]:
        """Apply ``settings``; return what changed in the sources. If this raises, nothing has changed."""
        forgotten = changed_sources(self.settings, settings)
        words = self.context.sources.replace_sources(settings.sources)
        hooks, timeout_s = source_hooks(settings), settings.run.hook_timeout
        outlets = self.tasks.notifier.open_outlets(settings)
        self.tasks.hooks.replace_hooks(hooks, settings.views, timeout_s=timeout_s)
        self.tasks.notifier.replace_outlets(outlets, timeout_s=timeout_s)
        self.context.settings.now = settings
        self.context.gate.set_limits(budget_limits(settings.budget), settings.plan.caps)
        self.scheduler.follow_settings(self.context.recorder.money_input())
        if forgotten:
            forget_rows(self.scheduler, forgotten, self.context.clock.now_s())
        self.context.wakeup.set()
        return words

    async def _finish(self, serving: Sequence[asyncio.Task[None]], *others: asyncio.Task[None]) -> None:
        """Wait until all polls are committed and saved, or a second stop is requested; then close the run.
        Polls that wait for the budget end at once."""
        self.context.gate.waits.end()
        deliveries = tuple(self._deliveries.values())
        for other in (*others, *(deliveries if self._stop.is_requested else ())):
            other.cancel()
        draining = asyncio.create_task(self._drain())
        giving_up = asyncio.create_task(self._stop.abandoned.wait())
        await asyncio.wait({draining, giving_up, *serving}, return_when=asyncio.FIRST_COMPLETED)
        store = self.context.store
        if not draining.done():
            log_event(logging.WARNING, "stopped before everything was saved", problem=store.trouble)
        ended = (*others, *deliveries, *self.polls.in_flight, draining, giving_up, *serving)
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        await self.close()

    async def close(self) -> None:
        """Leave the fleet, and close the sources, the hooks, the notifier and the thread of the store."""
        await self.context.member.leave()
        await self.context.sources.close()
        await self.tasks.hooks.close()
        await self.tasks.notifier.close()
        self.context.store.close()

    async def _drain(self) -> None:
        if self.polls.in_flight:
            await asyncio.wait(set(self.polls.in_flight))
        await self.tasks.writer.wait_until_committed()
        if self._deliveries:  # those that are under way; if a stop was requested, they were ended
            await asyncio.wait(set(self._deliveries.values()))
        hooks, notifier = self.tasks.hooks, self.tasks.notifier
        while self.context.member.is_planner and await hooks.deliver(finish=True):
            pass
        while self.context.member.is_planner and await notifier.deliver():
            pass
        await self.context.gate.close()
        await self.tasks.watcher.save_learned()
        await self.tasks.staleness.save_state()
        await self.context.sources.save_state(self.context.member.claims, states=True)


def _count_active(scheduler: Scheduler) -> int:
    return max(int(scheduler.item_rows.is_active.sum()), 1)
