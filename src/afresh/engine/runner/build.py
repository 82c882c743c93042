"""Builds all parts of a run in one place: reads the store, joins its fleet of workers, connects the parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from afresh.engine.ratelimit.fleet_member import FleetMember
from afresh.engine.ratelimit.gate import Gate, SharedReservations
from afresh.engine.ratelimit.request_slots import budget_limits
from afresh.engine.runner.background_load import first_due_items
from afresh.engine.runner.dispatcher import RunTasks
from afresh.engine.runner.engine_run import Run
from afresh.engine.runner.followed.unlinked_pages import UnlinkedPagesTask
from afresh.engine.runner.hooks import Hooks, source_hooks
from afresh.engine.runner.listing_task import ListingTask
from afresh.engine.runner.notify.notifier import Notifier
from afresh.engine.runner.run_context import RunContext, StopSignal
from afresh.engine.runner.source_set import BuildSource, SourceSet, retry_after_settings_change
from afresh.engine.runner.staleness_task import StalenessTask
from afresh.engine.runner.store_watcher import StoreWatcher
from afresh.engine.runner.websub.websub_task import WebSubTask
from afresh.engine.runner.writer import Writer
from afresh.engine.scheduler.content_settings import forget_after_content_change
from afresh.engine.scheduler.poll_recorder import PollRecorder
from afresh.engine.scheduler.restore import read_poll_costs, start_scheduler
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.tables import LiveSettings, Settings
from afresh.engine.threaded_store import ThreadedStore
from afresh.sources.context import no_secrets
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.sources.secrets import Resolver
from afresh.stores.store import Store
from afresh.values.clock import Clock

SourcesFor = Callable[[Gate], BuildSource]
"""A function that takes a gate and returns the function that builds sources; their requests pass the gate."""


@dataclass(frozen=True, slots=True)
class RunInput:
    """The input of ``build_run``. ``only`` are the ids of the items to load, by default all. With ``once``,
    the run makes a single round: it polls each item that is due at its start once. The sources that
    ``sources_for`` builds use the parser processes ``parsers``. ``secrets`` resolves the addresses of people
    who are told of changes. After the elapsed time ``give_up_s``, a store that cannot be written ends the run
    with its error."""

    store: Store
    settings: Settings
    clock: Clock
    rng: np.random.Generator
    sources_for: SourcesFor
    stop: StopSignal
    only: Sequence[int] | None = None
    once: bool = False
    parsers: ParserPool = field(default_factory=ParserPool)
    secrets: Resolver = no_secrets
    give_up_s: float = math.inf


async def build_run(given: RunInput) -> Run:
    """Return a run that is ready to poll. Each of ``Run.run``, ``refresh`` and ``list_items`` closes it."""
    store = ThreadedStore(given.store, gives_up=lambda: given.clock.elapsed_s() >= given.give_up_s)
    try:
        return await _build(store, given)
    except BaseException:
        store.close()
        raise


async def _build(store: ThreadedStore, given: RunInput) -> Run:
    if given.only is None:
        await store.run(_follow_changed_settings, given)
    # The edit number is read before the items, so that edits made meanwhile are followed afterwards.
    edit_number = (await store.run(store.sync.items.edits, 0)).number
    first = given.only
    if first is None and not given.once:
        first = await store.run(lambda: first_due_items(given.store, given.settings, given.clock.now_s()))
    context = await _make_context(store, given, first)
    watcher, websub = StoreWatcher(context, edit_number), WebSubTask(context)
    listing = ListingTask(context, websub)
    await watcher.begin()
    await context.sources.open(given.settings)
    await watcher.follow_lent_requests()
    staleness = StalenessTask(context, listing)
    told, timeout_s = source_hooks(given.settings), given.settings.run.hook_timeout
    hooks = Hooks(store, given.clock, told, given.settings.views, timeout_s=timeout_s)
    notifier = Notifier(store, given.clock, given.secrets)
    notifier.replace_outlets(notifier.open_outlets(given.settings), timeout_s=timeout_s)
    await notifier.begin()
    writer = Writer(context, staleness, given.parsers)
    unlinked = UnlinkedPagesTask(context, writer)
    tasks = RunTasks(watcher, listing, staleness, hooks, notifier, writer, unlinked, websub)
    return Run(context, tasks, given.rng, given.stop, once=given.once, is_complete=first is given.only)


async def _make_context(store: ThreadedStore, given: RunInput, first: Sequence[int] | None) -> RunContext:
    """Join the fleet, and load the items with the ids ``first``, or all items if it is None."""
    settings, clock, wakeup = given.settings, given.clock, given.stop.wakeup
    delay_s = max((each.settings.delay_s or 0.0 for each in settings.sources), default=0.0)
    member = FleetMember(store, clock, wakeup, claim_s=settings.run.claim, delay_s=delay_s)
    await member.join()
    scheduler = await store.run(_load, given, first)
    limits, reservations = budget_limits(settings.budget), SharedReservations(store, member)
    gate = Gate(clock, limits, reservations, member.claims, settings.plan.caps)
    live = LiveSettings(settings)
    poll_costs = await store.run(read_poll_costs, given.store)
    recorder = PollRecorder(live, scheduler, poll_costs)
    sources = SourceSet(store, clock, given.sources_for(gate))
    return RunContext(store, clock, live, wakeup, member, gate, scheduler, recorder, sources)


def _follow_changed_settings(given: RunInput) -> None:
    sources = [table.settings for table in given.settings.sources]
    forget_after_content_change(given.store, sources, given.clock.now_s())
    for table in given.settings.sources:
        retry_after_settings_change(given.store, table.settings, given.clock.now_s())


def _load(given: RunInput, first: Sequence[int] | None) -> Scheduler:
    plan = given.store.plan
    columns = plan.columns() if first is None else [plan.columns_of(first)]
    return start_scheduler(given.store, given.settings, columns, given.clock)
