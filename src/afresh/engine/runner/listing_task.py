"""Reads the listings of each source (sitemaps, feeds, start pages) regularly, while the polls continue.

If no document could be read, reading is repeated after one second, or the time that the source states, and
then after longer and longer waits of at most five minutes. It is repeated at once if the settings of the
source change, or if another process takes over. At hours in which a source may not be polled it is not read.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from afresh.engine.logs import log_event
from afresh.engine.runner.listing_changes import AppliedListing, apply_listing
from afresh.engine.runner.run_context import RunContext
from afresh.engine.runner.websub.websub_task import WebSubTask
from afresh.engine.scheduler.poll_recorder import compute_spent
from afresh.engine.state_names import LISTED_AT, SETTLED_SOURCES, TROUBLE
from afresh.sources.source import Source
from afresh.values.backoff import Backoff
from afresh.values.listing import Listing, ListingEntry
from afresh.values.printable_text import hide_credentials

_CHECK_EVERY_S = 1.0
_LONGEST_WAIT_S = 300.0
_FEW_ENTRIES = 5_000  # the store is busy with them for less than a few tenths of a second


@dataclass(frozen=True, slots=True)
class ListingResult:
    """The result of reading the documents of a source. ``born`` is the number of new items, ``again_s`` the
    Unix time at which to read again, ``problems`` a message for each document that has a problem, ``unread``
    the documents without any entry, ``documents`` the number of documents: 0 in a back-off of the source."""

    born: int = 0
    again_s: float = 0.0
    problems: Mapping[str, str] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    documents: int = 0


class ListingTask:
    """Reads the listings of every source when they are due, if this worker is the planner."""

    def __init__(self, context: RunContext, websub: WebSubTask) -> None:
        self._context, self._store, self._clock = context, context.store, context.clock
        self._websub = websub
        self._sources = context.sources
        self._troubles: dict[str, str] = {}
        self._reported: dict[str, Mapping[str, str]] = {}
        self._settled: set[str] | None = None
        self._failures: dict[str, int] = {}  # by source that was read here: reads without success in a row
        self.is_busy, self.read_s = True, -math.inf  # elapsed seconds when documents were last read

    async def run(self, *, once: bool = False) -> None:
        """Read documents when they are due, until cancelled; with ``once``, read the due ones one time."""
        while True:
            for table in self._context.settings.now.sources:
                name = table.settings.name
                source = self._sources.get(name)
                if not table.settings.lists_items or source is None or self._observes_staleness(name):
                    continue  # it has no documents, is being replaced, or is read by ``StalenessTask``
                if self._context.member.is_planner and await self._is_due(name):
                    await self.read_and_schedule(name)
            await self._leave_settled_alone()
            self.is_busy = False
            if once:
                return
            await asyncio.sleep(_CHECK_EVERY_S)

    async def _leave_settled_alone(self) -> None:
        """Tell the scheduler which sources have a cursor that proved right, and listings that can be read."""
        scheduler, sources = self._context.scheduler, self._sources
        settled = {
            name
            for name in sources.names()
            if (cursor := sources.capabilities(name).cursor) is not None
            and cursor.is_cursor_proven
            and not self._failures.get(name)
        }
        codes = frozenset(code for code, name in scheduler.names.items() if name in settled)
        if codes != scheduler.policy.settled_sources:
            scheduler.policy.settled_sources = codes
            scheduler.picker.invalidate()
        if self._context.member.is_planner and settled != self._settled:
            self._settled = settled  # for commands and programs outside of the run
            packed = json.dumps(sorted(settled)).encode()
            await self._store.run(self._store.sync.state.set, {SETTLED_SOURCES: packed})

    async def _is_due(self, name: str) -> bool:
        if name in self._context.settings.now.closed_sources(self._clock.now_s()):
            return False
        kept = await self._store.run(self._store.sync.state.get, LISTED_AT + name)
        trouble = await self._store.run(self._store.sync.state.get, TROUBLE + name)
        if kept is None or (trouble and name not in self._failures):
            return True
        again_s, _, fingerprint = kept.decode().partition(" ")
        is_changed = fingerprint not in ("", self._settings_fingerprint(name))
        return is_changed or float(again_s) <= self._clock.now_s()

    def _settings_fingerprint(self, name: str) -> str:
        table = self._context.settings.now.source(name)
        text = "" if table is None else table.settings.model_dump_json()
        return blake2b(text.encode(), digest_size=8).hexdigest()

    async def read(self, name: str) -> ListingResult:
        with self._sources.using(name) as source:
            return await self._read(name, source) if source is not None else ListingResult()

    async def read_and_schedule(self, name: str) -> None:
        """Read all documents of one source, report their problems, and save when to read them again."""
        found = await self.read_and_report(name)
        again = f"{found.again_s!r} {self._settings_fingerprint(name)}".encode()
        await self._store.run(self._store.sync.state.set, {LISTED_AT + name: again})

    async def read_and_report(self, name: str) -> ListingResult:
        found = await self.read(name)
        if found.documents:
            before, self._reported[name] = self._reported.get(name, {}), found.problems
            for origin, problem in found.problems.items():
                if before.get(origin) != problem:  # a problem is logged once for as long as it lasts
                    shown = {"listing": hide_credentials(origin), "problem": hide_credentials(problem)}
                    log_event(logging.WARNING, "listing has a problem", **shown)
            # Saved for ``status``: which documents cannot be read, and why.
            words = hide_credentials(
                "; ".join(f"{origin}: {found.problems[origin]}" for origin in sorted(found.unread))
            )
            self._context.recorder.failures.record_source(name, words)
            if words != self._troubles.get(name):
                self._troubles[name] = words
                await self._store.run(self._store.sync.state.set, {TROUBLE + name: words.encode() or None})
        elif name not in self._troubles:  # its back-off began in an earlier run, which said why
            trouble = await self._store.run(self._store.sync.state.get, TROUBLE + name)
            if trouble:
                self._context.recorder.failures.record_source(name, trouble.decode())
        self.read_s = self._clock.elapsed_s()
        return found

    async def _read(self, name: str, source: Source) -> ListingResult:
        table = self._context.settings.now.source(name)
        own_s = table.settings.listings_every_s if table is not None else None
        every_s = wait_s = self._context.settings.now.run.listings_every if own_s is None else own_s
        documents = born = 0
        problems: dict[str, str] = {}
        unread: set[str] = set()
        read: list[Listing] = []  # without their entries
        async for listing in source.listings():
            read.append(replace(listing, entries=listing.entries[:1]))
            applied = await self._apply(name, source, listing)
            documents, born = documents + 1, born + applied.born
            problem = "; ".join(words for words in (listing.problem, applied.problem) if words)
            if problem:
                problems[listing.origin] = problem
            if listing.problem and not listing.entries and not listing.complete:
                unread.add(listing.origin)
            if listing.again_after_s is not None:
                wait_s = max(wait_s, listing.again_after_s)
        self._websub.listings_read(name, read)
        self._failures[name] = self._failures.get(name, 0) + 1 if len(unread) == documents else 0
        if self._failures[name]:
            first_s = table.settings.first_rest_s if table is not None else 1.0
            wait_s = min(Backoff(first_s, _LONGEST_WAIT_S).wait_s(self._failures[name]), every_s)
        return ListingResult(born, self._clock.now_s() + wait_s, problems, frozenset(unread), documents)

    def _observes_staleness(self, name: str) -> bool:
        return self._sources.capabilities(name).staleness is not None

    async def _apply(self, name: str, source: Source, listing: Listing) -> AppliedListing:
        """Apply one document and record its cost."""
        now_s = self._clock.now_s()
        # Reading the counters of a source that reports staleness is not charged to the budget like a refresh.
        seconds = 0.0 if self._observes_staleness(name) else listing.seconds
        spent = compute_spent(self._context.settings.now.budget, listing.requests, listing.bytes, seconds)
        if self._observes_staleness(name):
            # The source reports staleness. Therefore dates of change in the listing are not used as notices.
            listing = replace(listing, entries=tuple(ListingEntry(one.key) for one in listing.entries))
        else:
            self._context.gate.record_cost(spent)
        await self._store.run(self._store.sync.ledger.add, name, now_s, spent)
        sync, group = self._store.sync, source.group
        settings = self._context.settings.now
        table, most = settings.source(name), settings.store.max_size
        if table is None:  # the source was removed from the settings meanwhile
            return AppliedListing(0, 0, 0)
        run = self._store.run if len(listing.entries) <= _FEW_ENTRIES else self._store.run_beside
        return await run(apply_listing, sync, table.settings, group, listing, now_s, most)
