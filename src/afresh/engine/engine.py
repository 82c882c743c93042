"""The Python interface of the engine: everything that the commands do.

with afresh.open_engine("mirror") as engine:
    engine.add(["https://example.org/"])
    engine.run(for_s=60)
    print(engine.status().freshness)
"""

from __future__ import annotations

import asyncio
import logging
import math
import signal
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from afresh.engine.event_loop import (
    NewEventLoop,
    StopContext,
    StopRequest,
    cancel_on_stop,
    new_fast_loop,
    run_coroutine,
    stop_after,
)
from afresh.engine.external_polls import ExternalPollsResult
from afresh.engine.external_scheduler import ExternalScheduler
from afresh.engine.feed.feed_reader import FeedReader
from afresh.engine.item_operations import ItemOperations
from afresh.engine.lending import Lending
from afresh.engine.logs import log_event
from afresh.engine.project_reports import ProjectReports
from afresh.engine.ratelimit.budget_override import (
    apply_override,
    drop_superseded_override,
    read_override,
    set_override,
)
from afresh.engine.runner.listing_changes import read_listings, with_more_listings, with_only_listings
from afresh.engine.scheduler.poll_recorder import compute_spent
from afresh.engine.settings.tables import Settings
from afresh.sources.context import NewFetcher, SourceContext, network_fetcher
from afresh.sources.secrets import Resolver
from afresh.stores.store import ClosedOnExit, Store
from afresh.values.clock import Clock
from afresh.values.errors import ListingError, UsageError
from afresh.values.items import Item
from afresh.values.lease import Lease
from afresh.values.reported import Reported
from afresh.values.stored import Copy

if TYPE_CHECKING:  # a command that only reads needs none of these
    import numpy as np

    from afresh.engine.dbt_models import DbtModels, DueModels
    from afresh.engine.ratelimit.gate import Gate
    from afresh.engine.reporting.preview import Preview
    from afresh.engine.runner.engine_run import Run, RunProgress
    from afresh.engine.runner.listing_task import ListingResult
    from afresh.engine.runner.reload import Reloader
    from afresh.engine.runner.run_context import StopSignal
    from afresh.engine.runner.source_set import BuildSource
    from afresh.sources.parsing.parser_pool import ParserPool

Report: TypeAlias = "Callable[[RunProgress], None]"
BesideRun: TypeAlias = "Callable[[Run], Coroutine[object, object, None]]"
"""Work that goes on beside a run, and is cancelled at its end; ``Engine.beside`` starts it with each run."""

T = TypeVar("T")
_REPORT_S, _REPORT_RARELY = 0.5, 20.0
_MOST_HOPS = 3


@dataclass(frozen=True, slots=True)
class EngineContext:
    """What the process gives to an engine: randomness, secrets, makers of event loops and page fetchers."""

    rng: np.random.Generator
    secrets: Resolver
    new_loop: NewEventLoop = new_fast_loop
    new_fetcher: NewFetcher = network_fetcher


class Engine(ItemOperations, ProjectReports, ClosedOnExit):
    """One project: its settings, its store, and the operations on them. ``make_engine`` builds it.
    ``lending`` lends items to programs that fetch them themselves, ``dbt`` chooses models to build, ``feed``
    tells what changed.
    ``on_stop`` is called around long work with the function that stops this work (``StopContext``). A run
    that is stopped finishes its polls first; other work is cancelled. ``beside`` is work beside each run."""

    def __init__(self, settings: Settings, store: Store, clock: Clock, given: EngineContext) -> None:
        super().__init__(settings, store, clock)
        self._given, self._external = given, ExternalScheduler(store, clock)
        self.lending = Lending(store, clock, self.current, self._external)
        self.feed = FeedReader(store, clock)
        self._started: tuple[ThreadPoolExecutor, Future[RunProgress], Future[StopRequest]] | None = None
        self.on_stop: StopContext = lambda _request, _limit_s: nullcontext()  # no stop is ever requested
        self.beside: BesideRun | None = None

    @cached_property
    def dbt(self) -> DbtModels:
        """The models of a dbt project."""
        from afresh.engine.dbt_models import DbtModels

        secrets = self._given.secrets
        return DbtModels(self.store, self.clock, self.current, secrets, self._external, self.lending)

    def close(self) -> None:
        self.store.close()

    # Running.

    def run(
        self,
        *,
        for_s: float = math.inf,
        once: bool = False,
        report: Report | None = None,
        reload: Callable[[], Settings] | None = None,
        signals: bool = False,
    ) -> RunProgress:
        """Poll items, and return the progress at the end. The run ends when a stop is requested, after
        ``for_s`` seconds or, with ``once``, when each due item was polled once. ``report`` is called with the
        progress twice per second. If the store cannot be written when the time is over, nor within
        ``drain_timeout`` after it, this raises ``StoreError``. With ``signals``, SIGTERM and SIGINT stop the
        run when its polls under way have ended. With ``reload``, SIGHUP applies the settings that
        ``reload()`` returns."""
        if not for_s >= 0:
            raise UsageError(f"for_s is {for_s:g}: give seconds from 0 on")

        def read_again() -> Settings:
            self.settings = reload() if reload is not None else self.settings
            return self._with_listings()

        from afresh.engine.runner.reload import Reloader

        reloader = None if reload is None else Reloader(read_again)
        work = self._run(for_s, once, report, reloader, signals)
        return run_coroutine(work, self._given.new_loop)

    def start(self) -> None:
        """Poll items in a new thread until ``stop`` is called; return at once."""
        if self._started is not None:
            raise UsageError("the engine is running already: stop it first")
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="afresh-run")
        stopper = Future[StopRequest]()

        def work() -> RunProgress:
            try:
                return run_coroutine(self._run(stopper=stopper), self._given.new_loop)
            finally:
                if not stopper.done():
                    stopper.set_result(lambda: None)

        self._started = thread, thread.submit(work), stopper

    def is_running(self) -> bool:
        """Return whether the run that ``start`` began goes on."""
        return self._started is not None and not self._started[1].done()

    def stop(self) -> RunProgress:
        """Stop the run that ``start`` began. Wait until its polls are committed, and return its progress."""
        if self._started is None:
            raise UsageError("the engine is not running: start it first")
        thread, run, stopper = self._started
        with suppress(RuntimeError):  # the run has ended already, and its loop is closed
            stopper.result()()
        try:
            return run.result()
        finally:
            thread.shutdown()
            self._started = None

    async def open_run(
        self,
        *,
        once: bool = False,
        only: Sequence[int] | None = None,
        stop: StopSignal | None = None,
        settings: Settings | None = None,
        for_s: float = math.inf,
    ) -> Run:
        """Return a run that is ready to poll, for callers that have their own event loop. With ``once``, the
        run polls each due item once. ``only`` are the ids of the items to load, by default all. ``stop`` is
        the signal that ends the run; ``settings`` replaces the settings of the engine. If the store cannot be
        written ``drain_timeout`` after ``for_s`` seconds, the run raises ``StoreError``."""
        from afresh.engine.runner.build import RunInput, build_run
        from afresh.engine.runner.run_context import StopSignal
        from afresh.sources.parsing.parser_pool import ParserPool

        rng, stop, settings = self._given.rng, stop or StopSignal(), settings or self._with_listings()
        parsers = ParserPool()
        sources_for = partial(self._sources_for, parsers)
        place = (self.store, settings, self.clock, rng, sources_for, stop)
        give_up_s = self.clock.elapsed_s() + for_s + settings.run.drain_timeout
        given = RunInput(*place, only, once, parsers, self._given.secrets, give_up_s)
        return await build_run(given)

    async def _run(
        self,
        for_s: float = math.inf,
        once: bool = False,
        report: Report | None = None,
        reloader: Reloader | None = None,
        signals: bool = False,
        stopper: Future[StopRequest] | None = None,
    ) -> RunProgress:
        from afresh.engine.runner.pulse_task import PulseTask
        from afresh.engine.runner.run_access import RunAccess
        from afresh.engine.runner.run_context import StopSignal

        stop, loop = StopSignal(), asyncio.get_running_loop()

        def drain() -> None:
            loop.call_soon_threadsafe(stop.request)

        if stopper is not None:
            stopper.set_result(drain)
        if signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, stop.request)
        if reloader is not None:
            loop.add_signal_handler(signal.SIGHUP, reloader.request)
        with self.on_stop(drain, self.settings.run.drain_timeout):
            drop_superseded_override(self.store, self.settings)
            override = read_override(self.store)
            run = await self.open_run(once=once, stop=stop, for_s=for_s)
            if reloader is not None:
                reloader.attach(run)
            pulse = PulseTask(run, self.store, self.clock, self.current, override)
            # A single round polls only what is due at its start, so that it lends nothing.
            self._external.live = None if once else RunAccess(run, loop)
            try:
                work = [pulse.run(), *([_report(run, report)] if report else [])]
                return await _run_with(run, for_s, [*work, *([self.beside(run)] if self.beside else [])])
            finally:
                self._external.live = None

    def _read_listings(
        self, source: str, documents: Mapping[str, Sequence[str]], limit_s: float
    ) -> ListingResult | None:
        settings = self._with_listings()
        tables = tuple(
            replace(table, settings=with_only_listings(table.settings, documents))
            if table.settings.name == source
            else table
            for table in settings.sources
        )

        async def work() -> ListingResult:
            run = await self.open_run(settings=replace(settings, sources=tables), only=[])
            return await run.list_items(source)

        return self._run_within(work(), limit_s)

    def _refresh(self, item_id: int, limit_s: float = math.inf) -> None:
        """Poll one item now, for ``limit_s`` seconds at most."""

        async def work() -> bool:
            run = await self.open_run(only=[item_id])
            return await run.refresh(item_id)

        self._run_within(work(), limit_s)

    def _run_within(self, work: Coroutine[Any, Any, T], limit_s: float) -> T | None:
        """Run ``work`` and return its result; cancel it after ``limit_s`` seconds and return None."""
        limited = stop_after(cancel_on_stop(work, self.on_stop), limit_s)
        return run_coroutine(limited, self._given.new_loop)

    def preview(
        self, *, source: str | None = None, limit_s: float = math.inf, **documents: Sequence[str]
    ) -> Preview:
        """Return what ``add_listings`` with these arguments would add, without adding it. Of the pages whose
        links are followed, only the start pages are read. The requests are made within the budget. After
        ``limit_s`` seconds, what was found by then is returned, and a problem that says so."""
        from afresh.engine.reporting.item_selection import EVERYTHING, selected_items
        from afresh.engine.reporting.preview import compare_preview
        from afresh.stores.sqlite.memory_store import MemoryStore

        name, problems = self._source_name(source), dict[str, str]()
        end_s = self.clock.elapsed_s() + limit_s
        with MemoryStore() as tried:
            other = Engine(self.settings, tried, self.clock, self._given)
            other.on_stop = self.on_stop
            try:
                other.add_listings(source=source, limit_s=limit_s, **documents)
            except ListingError as error:
                problems |= error.problems
            if documents.get("follow"):
                for _ in range(_MOST_HOPS):  # a start page may lead to another one
                    items = list(selected_items(tried, EVERYTHING))
                    if len(items) > len(documents["follow"]) * 2 or all(item.polls for item in items):
                        break
                    for item in items:
                        if not item.polls and (left_s := end_s - self.clock.elapsed_s()) > 0:
                            other._refresh(item.id, left_s)
            if self.clock.elapsed_s() >= end_s:
                given = [url for urls in documents.values() for url in urls]
                problems.setdefault(given[0], f"not everything was read within {limit_s:g} s")
            spent = tried.ledger.total(0.0, math.inf)
            self.store.ledger.add(name, self.clock.now_s(), spent)
            return compare_preview(self.store, tried, self.settings, name, problems)

    def _sources_for(self, parsers: ParserPool, gate: Gate) -> BuildSource:
        def cost(received: int, seconds: float) -> None:
            gate.owe_ahead(compute_spent(self.settings.budget, 1, received, seconds))

        context = SourceContext(
            clock=self.clock,
            admit=gate.admit,
            admit_reading=gate.admit_reading,
            cost=cost,
            resolver=self._given.secrets,
            new_fetcher=self._given.new_fetcher,
            parsers=parsers,
            under_way=gate.under_way,
        )
        return lambda table: table.kind.build(table.settings, context)

    def _with_listings(self) -> Settings:
        """Return the current settings with the listings that were added by commands."""
        sources = []
        for table in self.settings.sources:
            more = read_listings(self.store, table.settings.name)
            sources.append(replace(table, settings=with_more_listings(table.settings, more)))
        return replace(self.current(), sources=tuple(sources))

    # Copies.

    def get(
        self,
        key: str,
        *,
        source: str | None = None,
        max_age_s: float = math.inf,
        version: int | None = None,
    ) -> Copy | None:
        """Return the copy of an item, or None if there is none. If its last poll is older than ``max_age_s``
        seconds, poll the item first, unless its source may not be polled at this hour. ``version`` is the
        number of an older version; then nothing is polled. ``source`` is needed if several sources have an
        item with this key; otherwise ``AmbiguousKeyError`` is raised."""
        item, now_s = self.find_item(key, source), self.clock.now_s()
        polled_s = -math.inf if item.polled_s is None else item.polled_s
        is_old = version is None and now_s - polled_s > max_age_s
        if is_old and item.source not in self.settings.closed_sources(now_s):
            self._refresh(item.id)
        return self.store.copies.get(item.id, version)

    # The budget.

    def current(self) -> Settings:
        """Return the settings with the budget override, if one is set. A budget that is stated per item is
        multiplied by the number of active items."""
        settings = apply_override(self.store, self.settings)
        if settings.budget.each_item:
            items = sum(count.items for count in self.store.items.counts() if count.status == "active")
            settings = replace(settings, budget=settings.budget.of_items(items))
        return settings

    def ask_budget(self, requests_per_s: float) -> None:
        """Set a budget override in requests per second. Running engines apply it within seconds. It ends when
        the budget in the settings file changes, or when an engine starts with a budget as an option."""
        set_override(self.store, self.settings, requests_per_s)

    # For programs that fetch items themselves.

    def due(
        self,
        k: int,
        *,
        lease_s: float | None = None,
        source: str | None = None,
        within_budget: bool = True,
    ) -> list[Lease | Item]:
        """Return at most ``k`` items to poll now, those whose polls gain most first. They are as many as the
        budget allows now: one request for each item, with the bursts that ``[budget] burst`` allows. With
        ``lease_s``, lease them to the caller for that many seconds, and return the leases; their requests are
        then reserved, so that a lease that is never returned counts as spent. Items of a source are not due
        at hours in which the source may not be polled."""
        if lease_s is None:
            return list(self.lending.find_due(k, source, within_budget=within_budget))
        return list(self.lending.lend(k, lease_s, source).leases)

    def find_due_models(self, period_s: float, source: str | None = None) -> DueModels:
        """Return the models of a dbt project that are worth building now, within the budget of ``period_s``
        seconds; ``source`` is needed if there are several sources of models."""
        work = self.dbt.find_due(period_s, source)
        return run_coroutine(cancel_on_stop(work, self.on_stop), self._given.new_loop)

    def observe(self, reported: Iterable[Reported]) -> ExternalPollsResult:
        """Record polls that other programs made, now or in the past. Return how many of them were recorded,
        were known already, or were refused."""
        return self.lending.record(reported)


async def _run_with(run: Run, for_s: float, beside: Sequence[Coroutine[object, object, None]]) -> RunProgress:
    tasks = [asyncio.create_task(work) for work in beside]
    try:
        return await run.run(for_s=for_s)
    finally:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception):  # the polls continued without the failed task
                log_event(logging.ERROR, "the pulse or the report failed", error=repr(ended))


async def _report(run: Run, report: Report) -> None:
    while True:
        began_s = run.context.clock.elapsed_s()
        report(run.progress())
        # While it is computed no poll can start, so reports may take a twentieth of the time at most.
        took_s = run.context.clock.elapsed_s() - began_s
        await asyncio.sleep(max(_REPORT_S, _REPORT_RARELY * took_s))
