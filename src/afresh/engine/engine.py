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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self

import numpy as np

from afresh.engine.event_loop import (
    NewEventLoop,
    StopContext,
    cancellable,
    never_stop,
    new_fast_loop,
    run_coroutine,
)
from afresh.engine.external_polls import ExternalPollsResult, Reported, record_external
from afresh.engine.logs import log_event
from afresh.engine.ratelimit.budget_override import apply_override, drop_superseded_override, set_override
from afresh.engine.ratelimit.gate import Gate
from afresh.engine.ratelimit.source_windows import closed_sources
from afresh.engine.reporting.due_items import due_items
from afresh.engine.reporting.pulse import as_running
from afresh.engine.reporting.status import Status, read_status
from afresh.engine.reporting.why import Why, explain_key
from afresh.engine.runner.listing_changes import (
    LISTING_FIELDS,
    read_listings,
    save_listings,
    with_more_listings,
    with_only_listings,
)
from afresh.engine.runner.listing_task import ListingResult
from afresh.engine.runner.pulse_task import PulseTask
from afresh.engine.runner.reload import reload_handler
from afresh.engine.runner.run import Run, RunProgress
from afresh.engine.runner.source_set import Build
from afresh.engine.scheduler.poll_recorder import compute_spent
from afresh.engine.scheduler.reschedule import reschedule_changed
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import LISTED_AT
from afresh.sources.change_detection import Recipe
from afresh.sources.context import NewFetcher, SourceContext, network_fetcher
from afresh.sources.secrets import Resolver
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.errors import ListingError, UsageError, one_of
from afresh.values.formatting import format_moment
from afresh.values.items import Item, ItemChange, NewItem
from afresh.values.lease import Lease
from afresh.values.stored import Copy, Version

Report = Callable[[RunProgress], None]
_REPORT_S = 0.5


class Engine:
    """One project: its settings, its store, and what can be done with them. Made by ``make_engine``.

    ``on_stop`` says how work that takes long is asked to stop: a run drains, any other poll is cancelled.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock,
        rng: np.random.Generator,
        secrets: Resolver,
        *,
        new_loop: NewEventLoop | None = None,
        new_fetcher: NewFetcher = network_fetcher,
    ) -> None:
        """``new_loop`` makes the event loop of each run, ``new_fetcher`` what asks servers for pages."""
        self.settings, self.store = settings, store
        self._clock, self._rng, self._secrets = clock, rng, secrets
        self._new_loop, self._new_fetcher = new_loop or new_fast_loop, new_fetcher
        self.on_stop: StopContext = never_stop

    @property
    def clock(self) -> Clock:
        """The time by which everything here is done; on a shared store it is the store's."""
        return self._clock

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the store."""
        self.store.close()

    # Items.

    def add(
        self,
        keys: Iterable[str],
        *,
        source: str | None = None,
        weight: float = 1.0,
        cost: float = 1.0,
        min_interval_s: float = 0.0,
        max_interval_s: float = math.inf,
        prior_rate_per_s: float | None = None,
        labels: Mapping[str, str] | None = None,
        selector: str = "",
    ) -> int:
        """Register items (addresses, or what their source knows them by); how many were new.

        ``selector`` (CSS) says which part of their content counts, instead of the source's own.
        """
        Recipe().for_item(selector)  # refuses what is no selector
        name = self._source_name(source)
        group = self._grouping(name)
        new = (
            NewItem(
                key,
                name,
                group(key),
                weight=weight,
                cost=cost,
                min_interval_s=min_interval_s,
                max_interval_s=max_interval_s,
                prior_rate_per_s=prior_rate_per_s,
                labels=labels or {},
                selector=selector,
            )
            for key in keys
        )
        try:
            return self.store.items.add(new, self._clock.now_s())
        except UsageError as error:  # a key that the source could never poll
            others = [table.settings.name for table in self.settings.sources if table.settings.name != name]
            if source is not None or not others:
                raise
            hint = f"for a source other than {name!r} say --source {' or '.join(others)}"
            raise UsageError(f"{error}; {hint}") from None

    def add_listings(self, *, source: str | None = None, **documents: Sequence[str]) -> int:
        """Register what ``sitemaps``, ``feeds`` or ``discover`` (start pages) list; how many items were new.

        The documents are read now, within the budget, and again by every run, at their own pace. Those that
        cannot be read are not kept, and make a ``ListingError`` once the others are taken in. Outside the
        windows of the source they are left for a run to read.
        """
        name = self._source_name(source)
        group = self._grouping(name)
        for field, urls in documents.items():
            one_of("kind of listing", field, LISTING_FIELDS)
            for url in urls:
                group(url)  # refuses what is no address
        opens_s = closed_sources(self.settings, self._clock.now_s()).get(name)
        if opens_s is not None:
            save_listings(self.store, name, documents)
            words = f"outside its windows: a run reads what it lists from {format_moment(opens_s)} on"
            log_event(logging.WARNING, words, source=name)
            return 0
        work = self._loop(documents, name).list_items(name)
        found = run_coroutine(cancellable(work, self.on_stop), self._new_loop)
        self._keep_listings(name, documents, found)
        named = {url for urls in documents.values() for url in urls}
        failed = {url: words for url, words in found.problems.items() if url in named & found.unread}
        for url, words in found.problems.items():
            if url not in failed:
                log_event(logging.WARNING, "listing has a problem", listing=url, problem=words)
        if failed:
            raise ListingError(failed, found.born)
        return found.born

    def _keep_listings(self, name: str, documents: Mapping[str, Sequence[str]], found: ListingResult) -> None:
        """Remember the documents that could be read; where they are the first, no run needs to hurry."""
        table = self.settings.source(name)
        known = read_listings(self.store, name) or (table is not None and table.settings.lists_items)
        read = {field: [url for url in urls if url not in found.unread] for field, urls in documents.items()}
        if any(read.values()):
            save_listings(self.store, name, read)
            if not known:
                self.store.state.set({LISTED_AT + name: repr(found.again_s).encode()})

    def remove(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Forget items and their copies; the keys that were not known. Hooks are told."""
        hooked = any(source.on_change for source in self.settings.sources)
        return self.store.items.remove(keys, self._clock.now_s(), announce=hooked)

    def set(self, keys: Sequence[str], change: ItemChange) -> tuple[str, ...]:
        """Change items; the keys that were not known. A running engine follows within a second."""
        unknown = self.store.items.change(keys, change)
        ids = sorted(self.store.items.ids(list(keys)).values())
        reschedule_changed(self.store, self.current(), ids, change, self._clock.now_s())
        return unknown

    def poll_now(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Have items polled as soon as may be; the keys that were not known."""
        return self.set(keys, ItemChange(due_s=self._clock.now_s(), status="active"))

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
        """Poll until stopped, for a time, or (``once``) everything that is due, once.

        ``signals``: SIGTERM and SIGINT drain and stop it, for a caller that does not handle them itself.
        SIGHUP takes the settings that ``reload`` gives.
        """
        if not for_s >= 0:
            raise UsageError(f"for_s is {for_s:g}: give seconds from 0 on")
        return run_coroutine(self._run(for_s, once, report, reload, signals), self._new_loop)

    async def _run(
        self,
        for_s: float,
        once: bool,
        report: Report | None,
        reload: Callable[[], Settings] | None,
        signals: bool,
    ) -> RunProgress:
        drop_superseded_override(self.store, self.settings)
        loop = self._loop()
        running = asyncio.get_running_loop()
        if signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                running.add_signal_handler(number, loop.stop)
        if reload is not None:
            running.add_signal_handler(
                signal.SIGHUP, reload_handler(loop, lambda: self._reload_settings(reload))
            )

        def drain() -> None:
            running.call_soon_threadsafe(loop.stop)

        with self.on_stop(drain, self.settings.run.drain_timeout):
            return await self._run_beside(loop, for_s, once, report)

    async def _run_beside(self, loop: Run, for_s: float, once: bool, report: Report | None) -> RunProgress:
        """The loop, with the beats and the report beside it."""
        beside = [asyncio.create_task(PulseTask(loop, self.store, self._clock, self.current).run())]
        if report:
            beside.append(asyncio.create_task(_report(loop, report)))
        try:
            return await loop.run(for_s=for_s, once=once)
        finally:
            for task in beside:
                task.cancel()
            for ended in await asyncio.gather(*beside, return_exceptions=True):
                if isinstance(ended, Exception):  # a defect of ours: the polls went on without it
                    log_event(logging.ERROR, "the pulse or the report broke", error=repr(ended))

    def _loop(self, documents: Mapping[str, Sequence[str]] | None = None, source: str = "") -> Run:
        """A loop over all; with ``documents`` those are all that ``source`` lists."""
        settings = self._with_listings()
        if documents is not None:
            tables = (
                replace(table, settings=with_only_listings(table.settings, documents))
                if table.settings.name == source
                else table
                for table in settings.sources
            )
            settings = replace(settings, sources=tuple(tables))
        return Run(self.store, settings, self._clock, self._rng, self._build_for)

    def _reload_settings(self, reload: Callable[[], Settings]) -> Settings:
        self.settings = reload()
        return self._with_listings()

    def _build_for(self, gate: Gate) -> Build:
        def cost(received: int, seconds: float) -> None:
            gate.owe_ahead(compute_spent(self.settings.budget, 1, received, seconds))

        context = SourceContext(
            clock=self._clock,
            admit=gate.admit,
            cost=cost,
            resolver=self._secrets,
            new_fetcher=self._new_fetcher,
        )
        return lambda table: table.kind.build(table.settings, context)

    def _with_listings(self) -> Settings:
        """The settings with the documents that were added by command and the budget that was asked for."""
        sources = tuple(
            replace(
                table,
                settings=with_more_listings(table.settings, read_listings(self.store, table.settings.name)),
            )
            for table in self.settings.sources
        )
        return replace(self.current(), sources=sources)

    # Copies.

    def get(self, key: str, *, max_age_s: float = math.inf, version: int | None = None) -> Copy | None:
        """The copy of an item, polled first if the last look at it is older than ``max_age_s``.

        Outside the windows of its source nothing is polled: it is the copy there is.
        """
        item, now_s = self._item(key), self._clock.now_s()
        looked_s = -math.inf if item.polled_s is None else item.polled_s
        wanted = version is None and now_s - looked_s > max_age_s
        if wanted and item.source not in closed_sources(self.settings, now_s):
            run_coroutine(cancellable(self._loop().refresh(item.id), self.on_stop), self._new_loop)
        return self.store.copies.get(item.id, version)

    # Questions.

    def current(self) -> Settings:
        """The settings, with the budget for the items there are, or that was asked for instead of theirs."""
        settings = apply_override(self.store, self.settings)
        if settings.budget.each_item:
            items = sum(count.items for count in self.store.items.counts() if count.status == "active")
            settings = replace(settings, budget=settings.budget.of_items(items))
        return settings

    def status(self) -> Status:
        """How the mirror does."""
        now_s = self._clock.now_s()
        return read_status(self.store, as_running(self.store, self.current(), now_s), now_s)

    def why(self, key: str) -> Why:
        """Why an item is polled as often as it is."""
        now_s = self._clock.now_s()
        return explain_key(self.store, as_running(self.store, self.current(), now_s), key, now_s)

    def ask_budget(self, requests_per_s: float) -> None:
        """Another budget from now on, also for engines that run; until the settings say something new."""
        set_override(self.store, self.settings, requests_per_s)

    def notice(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Hints that these items changed, such as a webhook gives; the keys that were not known."""
        ids = self.store.items.ids(keys)
        self.store.notices.add(list(ids.values()), self._clock.now_s())
        return tuple(key for key in keys if key not in ids)

    def versions(self, key: str) -> list[Version]:
        """The versions kept of an item's copy, newest first."""
        return self.store.copies.versions(self._item(key).id)

    def due(self, k: int, *, lease_s: float | None = None, source: str | None = None) -> list[Lease | Item]:
        """The items due now, longest due first; with ``lease_s`` they are lent to the caller for so long.

        Those of sources outside their windows are not due.
        """
        now_s = self._clock.now_s()
        closed = closed_sources(self.settings, now_s)
        if lease_s is not None and not closed:
            name = None if source is None else self._source_name(source)
            return list(self.store.leases.take_due(now_s, k, lease_s, source=name))
        names = {count.source for count in self.store.items.counts()} - closed.keys()
        if source is not None:
            names &= {self._source_name(source)}
        found = due_items(self.store, now_s, k, names)
        if lease_s is None:
            return list(found)
        return list(self.store.leases.take([item.id for item in found], now_s, lease_s))

    def observe(self, reported: Iterable[Reported]) -> ExternalPollsResult:
        """Take back what those who fetch themselves found, and old poll logs."""
        return record_external(self.store, self.settings, reported, self._clock.now_s())

    # Helpers.

    def _item(self, key: str) -> Item:
        item = self.store.items.get(key)
        if item is None:
            raise UsageError(f"there is no item {key!r}: add it first")
        return item

    def _source_name(self, source: str | None) -> str:
        names = [table.settings.name for table in self.settings.sources]
        if source is not None:
            return one_of("source", source, names)
        if not names:
            raise UsageError("the settings name no source: add a [[source]] table")
        return names[0]

    def _grouping(self, name: str) -> Callable[[str], str]:
        """The politeness group of a key, by the source's own rule."""
        table = self.settings.source(name)
        assert table is not None
        return partial(table.kind.group, table.settings)


async def _report(loop: Run, report: Report) -> None:
    while True:
        await asyncio.sleep(_REPORT_S)
        if loop.running:
            report(loop.progress())
