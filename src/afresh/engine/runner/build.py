"""Builds a run, once and in one place: reads the store, joins its workers, connects the parts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from afresh.engine.logs import log_event
from afresh.engine.ratelimit.fleet_member import FleetMember
from afresh.engine.ratelimit.gate import Gate
from afresh.engine.ratelimit.request_slots import budget_limits
from afresh.engine.ratelimit.shared_reservations import SharedReservations
from afresh.engine.runner.background_load import first_due_items
from afresh.engine.runner.engine_run import Run
from afresh.engine.runner.hooks import Hooks, source_hooks
from afresh.engine.runner.listing_task import ListingTask
from afresh.engine.runner.parts import RunParts
from afresh.engine.runner.run_context import RunContext, StopSignal
from afresh.engine.runner.settings_retry import retry_all_after_settings_change
from afresh.engine.runner.source_set import BuildSource, SourceSet
from afresh.engine.runner.staleness_task import StalenessTask
from afresh.engine.runner.store_watcher import StoreWatcher
from afresh.engine.runner.writer import Writer
from afresh.engine.scheduler.decide import DecidedPoll
from afresh.engine.scheduler.poll_recorder import PollRecorder
from afresh.engine.scheduler.restore import read_poll_costs, start_scheduler
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.tables import LiveSettings, Settings
from afresh.engine.state_names import POLL_COSTS, SHADOW_PRICE
from afresh.engine.threaded_store import ThreadedStore
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.outcome import Outcome, Refusal

SourcesFor = Callable[[Gate], BuildSource]
"""Returns what builds the sources whose requests pass a gate."""


@dataclass(frozen=True, slots=True)
class RunInput:
    """What a run is built from.

    ``only`` are the items that it holds, all by default; ``once`` means a single round.
    """

    store: Store
    settings: Settings
    clock: Clock
    rng: np.random.Generator
    sources_for: SourcesFor
    stop: StopSignal
    only: Sequence[int] | None = None
    once: bool = False


@dataclass(frozen=True, slots=True)
class RunCommits:
    """The ``CommitHandler`` of a run."""

    context: RunContext
    member: FleetMember
    scheduler: Scheduler
    recorder: PollRecorder
    staleness_task: StalenessTask

    def complete(self, polls: Sequence[DecidedPoll]) -> list[Outcome]:
        """Learn from the polls, and return their outcomes."""
        return self.recorder.complete(polls, self.context.clock.now_s())

    def state_values(self) -> Mapping[str, bytes | None]:
        """Return the shadow price and the costs of polls, if this worker keeps them for all."""
        if not self.member.is_planner:
            return {}
        price = repr(self.scheduler.policy.shadow_price).encode()
        return {SHADOW_PRICE: price, POLL_COSTS: self.recorder.poll_costs.pack()}

    def after_commit(self, outcomes: Sequence[Outcome], refusals: Sequence[Refusal]) -> None:
        """Release the rows of committed polls."""
        for refusal in refusals:
            log_event(logging.WARNING, "an outcome was not kept", problem=str(refusal))
        rows = self.scheduler.item_rows.rows([outcome.lease.item_id for outcome in outcomes])
        self.staleness_task.after_commit()
        self.scheduler.item_rows.is_busy[rows] = False
        self.context.wakeup.set()


async def build_run(given: RunInput) -> Run:
    """Return a run with all its parts, ready to poll; ``Run.run``, ``refresh`` or ``list_items`` ends it."""
    store = ThreadedStore(given.store)
    try:
        return await _build(store, given)
    except BaseException:
        store.close()
        raise


async def _build(store: ThreadedStore, given: RunInput) -> Run:
    context = RunContext(store, given.clock, LiveSettings(given.settings), given.stop.wakeup)
    if given.only is None:
        await store.call_with_retry(
            lambda: retry_all_after_settings_change(given.store, given.settings, given.clock.now_s())
        )
    # Edits are counted before the items are read: what happens meanwhile is followed afterwards.
    edit_number = (await store.items.edits(0)).number
    first = await _first_items(context, given)
    member = await _join(context)
    scheduler = await store.call_with_retry(lambda: _load(given, first))
    gate = _open_gate(context, member)
    sources = SourceSet(store, given.clock, given.sources_for(gate))
    poll_costs = await store.call_with_retry(lambda: read_poll_costs(given.store))
    recorder = PollRecorder(context.settings, scheduler, poll_costs)
    watcher = StoreWatcher(context, scheduler, recorder, member, edit_number)
    await watcher.begin()
    await sources.open(given.settings)
    listing_task = ListingTask(context, sources, gate, member)
    staleness_task = StalenessTask(context, sources, listing_task, scheduler, recorder)
    timeout_s = given.settings.run.hook_timeout
    parts = RunParts(
        context,
        member,
        gate,
        scheduler,
        recorder,
        sources,
        watcher,
        listing_task,
        staleness_task,
        Hooks(store, given.clock, source_hooks(given.settings), timeout_s=timeout_s),
        Writer(store, RunCommits(context, member, scheduler, recorder, staleness_task)),
    )
    return Run(parts, given.rng, given.stop, once=given.once, is_complete=first is given.only)


async def _first_items(context: RunContext, given: RunInput) -> Sequence[int] | None:
    """Return the items to load before the first poll; None for all of them."""
    if given.only is not None or given.once:
        return given.only
    now_s, store = given.clock.now_s(), context.store
    return await store.call_with_retry(lambda: first_due_items(given.store, given.settings, now_s))


def _load(given: RunInput, first: Sequence[int] | None) -> Scheduler:
    store, clock = given.store, given.clock
    columns = store.plan.columns() if first is None else [store.plan.columns_of(first)]
    return start_scheduler(store, given.settings, columns, clock.now_s(), clock.elapsed_s)


async def _join(context: RunContext) -> FleetMember:
    """Become a worker of the store."""
    settings = context.settings.now
    delay_s = max((each.settings.delay_s or 0.0 for each in settings.sources), default=0.0)
    claim_s = settings.run.claim
    member = FleetMember(context.store, context.clock, context.wakeup, claim_s=claim_s, delay_s=delay_s)
    await member.join()
    return member


def _open_gate(context: RunContext, member: FleetMember) -> Gate:
    """Return the gate that all requests of this worker pass."""
    settings = context.settings.now
    reservations, limits = SharedReservations(context.store, member), budget_limits(settings.budget)
    return Gate(context.clock, limits, reservations, member.claims, settings.plan.caps)
