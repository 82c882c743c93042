"""The loop: due → lease (``dispatcher``) → fetch → decide (``polls``) → learn and commit (``writer``).

    RowPolicy (memory) ──Picker.next──▶ rows ──Store.leases.take──▶ Lease ──Source.poll──▶ Fetched
         ▲                   (groups that are ready)                   (Gate: the budget)     │
         │                                                                                    ▼
         └── Accounts.complete ◀── Writer: groups of 30 ms ◀── Outcome ◀── Accounts.outcome: decide
                    └──▶ Store.commit

Decisions are made on one event loop. It calls the store in the writer's thread, so that its calls keep their
order; beats and the filling with very many items call it from threads of their own, as any store allows. An
item is busy from its pick until its outcome is committed, so it is never polled twice at once; its lease says
the same to other engines. Stopping drains: no new polls, those under way end, everything is committed.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from afresh.engine.logs import log_event
from afresh.engine.ratelimit.fleet_member import FleetMember
from afresh.engine.ratelimit.gate import Gate
from afresh.engine.ratelimit.request_slots import budget_limits
from afresh.engine.ratelimit.shared_reservations import SharedReservations
from afresh.engine.runner.background_load import first_due_items, load_all_items, switch_to_all_items
from afresh.engine.runner.dispatcher import Dispatcher
from afresh.engine.runner.hooks import Hook, Hooks
from afresh.engine.runner.listing_task import ListingResult, ListingTask
from afresh.engine.runner.parts import TICK_S, RunParts
from afresh.engine.runner.poll_tasks import Bulk, PollTasks
from afresh.engine.runner.settings_retry import retry_all_after_settings_change
from afresh.engine.runner.source_set import Build, SourceSet
from afresh.engine.runner.staleness_task import StalenessTask
from afresh.engine.runner.store_changes import StoreChanges
from afresh.engine.runner.store_watcher import StoreWatcher
from afresh.engine.scheduler.earnings import apply_money_terms, has_income
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.picker import Picker
from afresh.engine.scheduler.poll_recorder import PollRecorder, limit_time
from afresh.engine.scheduler.restore import start_policy
from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import POLL_COSTS, SHADOW_PRICE
from afresh.engine.writer import Writer
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.items import ItemChange
from afresh.values.outcome import Outcome, Refusal


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How a run goes: counts since its start."""

    polls: int = 0
    changes: int = 0
    failures: int = 0
    requests: int = 0
    audits: int = 0
    in_flight: int = 0
    freshness: float = math.nan
    trouble: str = ""


BuildFor = Callable[[Gate], Build]
"""What builds the sources whose requests pass a gate."""


class Run:
    """One run of the engine, from ``run`` until it returns."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        clock: Clock,
        rng: np.random.Generator,
        build_for: BuildFor,
    ) -> None:
        self.store, self.settings, self._clock, self._rng = store, settings, clock, rng
        self._build_for = build_for
        self.item_rows = ItemRows()
        self._wakeup, self._stopping, self._abandoned = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._is_complete = asyncio.Event()
        self.running = False

    def stop(self) -> None:
        """Start no more polls; end when those under way are committed. A second time: end now."""
        if self._stopping.is_set():
            self._abandoned.set()
        self._stopping.set()
        self._wakeup.set()

    def progress(self) -> RunProgress:
        """How it goes."""
        return replace(self.count_progress(), freshness=self.policy.freshness(self._clock.now_s())[0])

    def count_progress(self) -> RunProgress:
        """The same without freshness, which takes longer to tell than all the rest."""
        return RunProgress(
            **{name: self._recorder.counts[name] for name in ("polls", "changes", "failures", "audits")},
            requests=self._gate.requests,
            in_flight=len(self.polls.in_flight),
            trouble=self._writer.trouble,
        )

    async def run(self, *, for_s: float = math.inf, once: bool = False) -> RunProgress:
        """Poll until stopped, for a time, or (``once``) until everything due now was polled once."""
        filled = await self._start(whole=once)
        self.running = True
        until_s = self._clock.elapsed_s() + for_s
        if once:
            self._recorder.begin_single_round(self._clock.now_s(), self._rng)
        serving = self._serve()
        helpers = {
            asyncio.create_task(self._look_around(filled=filled)),
            asyncio.create_task(self._listing_task.run(once=once)),
            asyncio.create_task(self._tell_hooks()),
            asyncio.create_task(self._keep_up()),
        }
        try:
            await self.dispatcher.run(until_s, {*serving, *helpers})
        finally:
            await self._finish(serving, *helpers)
        return self.progress()

    async def refresh(self, item_id: int) -> bool:
        """Poll one item now, whatever its status; False if another engine is polling it."""
        await self._start([item_id])
        row = self.item_rows.row(item_id)
        serving = self._serve()
        try:
            if row is None or not await self._turn_of(row):
                return False
            now_s, lease_s = self._clock.now_s(), self._parts.lease_s
            leases = await self._writer.call(
                lambda: self.store.leases.take(
                    [item_id], now_s, lease_s, any_status=True, worker=self.member.name
                )
            )
            if not leases:
                return False
            group_key = self.picker.group_key(row)
            self.polls.begin(group_key)
            await self.polls.poll(Bulk(group_key, (row,)), leases, may_choose=False)
            return True
        finally:
            await self._finish(serving)

    async def _turn_of(self, row: int) -> bool:
        """Wait until the group of an item is ours; False if whoever has it polled the item meanwhile."""
        group, ids = self._parts.named(self.picker.group_key(row))[1], [int(self.item_rows.ids[row])]
        (before,) = await self._writer.call_with_retry(lambda: self.store.items.by_id(ids)) or (None,)
        holding = asyncio.create_task(self.member.claims.wait_until_open(group))
        try:
            held, _ = await asyncio.wait({holding}, timeout=TICK_S)
            if not held and before is not None and before.status == "active":
                soon = ItemChange(due_s=self._clock.now_s())
                await self._writer.call_with_retry(lambda: self.store.items.change([before.key], soon))
            while not held:
                held, _ = await asyncio.wait({holding}, timeout=TICK_S)
                (item,) = await self._writer.call_with_retry(lambda: self.store.items.by_id(ids)) or (None,)
                if item is None or before is None or item.polls > before.polls:
                    return False
            return True
        finally:
            holding.cancel()

    async def list_items(self, source: str) -> ListingResult:
        """Read the documents of one source now."""
        await self._start([])
        serving = self._serve()
        try:
            return await self._listing_task.read(source)
        finally:
            await self._finish(serving)

    def _serve(self) -> tuple[asyncio.Task[None], ...]:
        """What every request needs until the last is committed: the writer, the beats and the claims."""
        member = self.member
        work = (self._writer.run(), member.run(self.polls.is_quiet), member.claims.run(self.sources.inherit))
        return tuple(asyncio.create_task(each) for each in work)

    async def _start(self, only: Sequence[int] | None = None, *, whole: bool = False) -> bool:
        """Take in what the store remembers, join its workers, and wire what a run is made of; whether all
        items that are wanted are there."""
        store, settings = self.store, self.settings
        self._writer = Writer(store, self._committed, self._engine_state, self._complete)
        if only is None:
            await self._writer.call_with_retry(
                lambda: retry_all_after_settings_change(store, settings, self._clock.now_s())
            )
        store_changes = await self._writer.call_with_retry(lambda: StoreChanges(store))
        filled = await self._read_items(store_changes, only, whole=whole)
        await self._join()
        now_s = self._clock.now_s()
        self.policy = await self._writer.call_with_retry(
            lambda: start_policy(store, settings, self.item_rows, now_s)
        )
        self._counted = max(int(self.item_rows.is_active.sum()), 1)
        await self._wire(store_changes)
        return filled

    async def _read_items(
        self, store_changes: StoreChanges, only: Sequence[int] | None, *, whole: bool
    ) -> bool:
        """All items, or ``only`` some; of very many perhaps just the first to be polled, unless the ``whole``
        is wanted: whether all that are wanted are there."""
        store, clock, settings = self.store, self._clock, self.settings
        first = only
        if only is None and not whole:
            first = await self._writer.call_with_retry(
                lambda: first_due_items(store, settings, clock.now_s())
            )
        if first is None:
            self.item_rows.load(await self._writer.call_with_retry(lambda: store_changes.added(0)))
        else:
            self.item_rows.load([await self._writer.call_with_retry(lambda: store.plan.columns_of(first))])
        return first is only

    async def _wire(self, store_changes: StoreChanges) -> None:
        """Make the parts of a run, each with those that it needs."""
        store, clock, settings = self.store, self._clock, self.settings
        self.picker = Picker(self.item_rows, self.policy, clock.elapsed_s)
        self._recorder = PollRecorder(settings, self.item_rows, self.policy)
        self._watch = StoreWatcher(
            store,
            self._writer,
            store_changes,
            self.picker,
            self._recorder,
            clock,
            self._wakeup,
            self._is_planner,
        )
        await self._watch.begin()
        self.sources = SourceSet(store, self._writer, clock, self._build_for(self._gate))
        await self.sources.open(settings)
        self._listing_task = ListingTask(
            store, self._writer, clock, self.sources, settings, self._gate.record_cost, self._is_planner
        )
        self._staleness_task = StalenessTask(
            store,
            self._writer,
            clock,
            self.sources,
            self._listing_task,
            self._recorder,
            self.picker,
            lambda: self._watch.names,
            self._wakeup,
        )
        self._hooks = Hooks(
            store, self._writer, clock, source_hooks(settings), timeout_s=settings.run.hook_timeout
        )
        self._parts = RunParts(
            store,
            clock,
            self._wakeup,
            self._writer,
            self.member,
            self._gate,
            self.picker,
            self._recorder,
            self.sources,
            self._watch,
            self._listing_task,
            self._staleness_task,
        )
        self.polls = PollTasks(self._parts)
        self.dispatcher = Dispatcher(self._parts, self.polls, self._rng, self._stopping)

    async def _join(self) -> None:
        """Become a worker of the store, with the gate that all its requests pass."""
        store, settings = self.store, self.settings
        delay_s = max((each.settings.delay_s or 0.0 for each in settings.sources), default=0.0)
        self.member = FleetMember(
            store,
            self._writer,
            self._clock,
            claim_s=settings.run.claim,
            delay_s=delay_s,
            wakeup=self._wakeup,
        )
        await self.member.join()
        line = SharedReservations(store, self._writer, self.member.time, lambda: self.member.is_alone)
        limits, caps = budget_limits(settings.budget), settings.plan.caps
        self._gate = Gate(self._clock, limits, line, self.member.claims, caps)

    def _is_planner(self) -> bool:
        return self.member.is_planner

    def _is_elsewhere(self, group: str) -> bool:
        return group not in self.member.claims

    def _engine_state(self) -> Mapping[str, bytes | None]:
        if not self.member.is_planner:
            return {}
        return {
            SHADOW_PRICE: repr(self.policy.shadow_price).encode(),
            POLL_COSTS: self._recorder.poll_costs.pack(),
        }

    async def _look_around(self, *, filled: bool) -> None:
        """Follow what others do, and what is seen; first, where they are not there yet, read all items."""
        if not filled:
            self._recorder.filling = True
            full = await load_all_items(self.store, self.settings, self._clock)
            if full is not None:
                self.dispatcher.run_when_idle(lambda: self._take_over(full))
            await self._is_complete.wait()
        await asyncio.gather(self._watch.run(), self._staleness_task.run())

    async def _take_over(self, full: RowPolicy) -> None:
        self._recorder.filling = False
        await switch_to_all_items(self._parts, full)
        self._counted = max(int(self.item_rows.is_active.sum()), 1)
        self._rank_by(self.settings)  # they may have been reloaded meanwhile
        self._is_complete.set()

    async def _tell_hooks(self) -> None:
        while True:
            delivered = await self._hooks.deliver() if self.member.is_planner else self._hooks.forget_order()
            await asyncio.sleep(0 if delivered else TICK_S)

    async def _keep_up(self) -> None:
        """Keep the sources' manners, and a budget for each item in step with how many there are."""
        while True:
            await asyncio.sleep(TICK_S)
            await self.sources.keep(is_elsewhere=self._is_elsewhere)
            items, budget = max(int(self.item_rows.is_active.sum()), 1), self.settings.budget
            if budget.each_item and items != self._counted:
                more = budget.model_copy(update={"requests": budget.requests * items / self._counted})
                self._counted = items
                self.reload(replace(self.settings, budget=more))

    def _complete(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        now_s = self._clock.now_s()
        return self._recorder.complete([limit_time(outcome, now_s) for outcome in outcomes])

    def _committed(self, outcomes: Sequence[Outcome], refusals: Sequence[Refusal]) -> None:
        for refusal in refusals:
            log_event(logging.WARNING, "an outcome was not kept", problem=str(refusal))
        rows = self.item_rows.rows([outcome.lease.item_id for outcome in outcomes])
        self._staleness_task.after_commit()
        self.item_rows.is_busy[rows] = False
        self._wakeup.set()

    def reload(self, settings: Settings) -> list[str]:
        """Other settings from now on; which sources are others, in words. Refused whole if any is wrong."""
        words = self.sources.replace_sources(settings.sources)
        self._hooks.replace_hooks(source_hooks(settings), timeout_s=settings.run.hook_timeout)
        self.settings = self._recorder.settings = self._listing_task.settings = settings
        self._gate.set_limits(budget_limits(settings.budget), settings.plan.caps)
        self._rank_by(settings)
        self._wakeup.set()
        return words

    def _rank_by(self, settings: Settings) -> None:
        self.policy.name = settings.plan.policy
        self.policy.ranking.set_objective(settings.plan.objective)
        if not has_income(settings):
            self.policy.ranking.set_budget(settings.budget.requests)
        apply_money_terms(self.policy, settings, self._watch.names, self._recorder.poll_costs)
        self.picker.invalidate()

    async def _finish(self, serving: Sequence[asyncio.Task[None]], *others: asyncio.Task[None]) -> None:
        """Drain: polls under way end, what they brought is committed, sources and thread are let go."""
        for other in others:
            other.cancel()
        draining = asyncio.create_task(self._drain())
        giving_up = asyncio.create_task(self._abandoned.wait())
        await asyncio.wait({draining, giving_up, *serving}, return_when=asyncio.FIRST_COMPLETED)
        if not draining.done():
            log_event(logging.WARNING, "stopped before everything was kept", problem=self._writer.trouble)
        ended = (*others, *self.polls.in_flight, draining, giving_up, *serving)
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        await self.member.leave()
        await self.sources.close()
        self._writer.close()

    async def _drain(self) -> None:
        if self.polls.in_flight:
            await asyncio.wait(set(self.polls.in_flight))
        await self._writer.wait_until_committed()
        while self.member.is_planner and await self._hooks.deliver():
            pass
        await self._gate.close()
        await self._watch.keep_learned()
        await self._staleness_task.keep()
        await self.sources.keep(states=True, is_elsewhere=self._is_elsewhere)


def source_hooks(settings: Settings) -> dict[str, Hook]:
    """Who is told of the changes of each source."""
    return {table.settings.name: table.on_change for table in settings.sources if table.on_change}
