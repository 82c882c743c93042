"""Looks at what items stand on, beside the polls: the task that keeps the policy's sight up to date.

Every source that can tell staleness without a poll (``sources.staleness``) is looked at every few seconds,
each by itself so that a slow database keeps no other waiting. A look is a listing too: births and deaths of
items come with it. What is seen is kept in the store with what the source remembers, for the next process and
for whoever asks meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from afresh.engine.logs import say
from afresh.engine.mind.accounts import Accounts
from afresh.engine.mind.earnings import appraise, earns, rebudget
from afresh.engine.mind.picker import Picker
from afresh.engine.mind.sight import Sight, pack_evidence
from afresh.engine.run.listing_task import ListingTask
from afresh.engine.run.source_set import SourceSet
from afresh.engine.state_names import EVIDENCE, WITNESS
from afresh.engine.writer import Writer
from afresh.sources.capabilities import Capabilities, StalenessReport
from afresh.stores.store import Store
from afresh.values.clock import Clock

_GLANCE_S = 0.1
APPRAISE_EVERY_S = 2.0
_KEEP_S = 60.0
_COSTLY = 50.0  # reckoning may take a fiftieth of the time


class SightTask:
    """``names`` gives the names of sources by their codes; ``stirred`` wakes the feed."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        clock: Clock,
        sources: SourceSet,
        listing_task: ListingTask,
        accounts: Accounts,
        picker: Picker,
        names: Callable[[], dict[int, str]],
        stirred: asyncio.Event,
    ) -> None:
        self._store, self._writer, self._clock, self._sources = store, writer, clock, sources
        self._listing_task, self._accounts, self._picker, self._names = listing_task, accounts, picker, names
        self._stirred = stirred
        self._ids: dict[str, int] = {}
        self._known: dict[str, Capabilities] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._next_s: dict[str, float] = {}
        self._appraised_s = clock.elapsed_s()
        self._gist: Sequence[object] = []  # what the store remembers of what is seen, and since when
        self._kept_s = float("-inf")
        self.busy = True

    async def run(self) -> None:
        """Look at every source when its time has come, until cancelled."""
        try:
            while True:
                self._begin_looks()
                self.busy = bool(self._looking)
                if self._looking:
                    await asyncio.wait(self._looking.values(), timeout=_GLANCE_S)
                    self._end_looks()
                else:
                    await asyncio.sleep(_GLANCE_S)
                self._keep_appraising()
        finally:
            for task in self._looking.values():
                task.cancel()
            await asyncio.gather(*self._looking.values(), return_exceptions=True)

    def looking(self, source: str) -> bool:
        """Whether a look is under way: what to refresh is better chosen after it."""
        return source in self._looking

    def polled(self) -> None:
        """Polls were committed: what was refreshed is stale no more."""
        if self._known:
            self._take_in()

    async def keep(self) -> None:
        """Let the store remember what the sources saw and know."""
        values: dict[str, bytes | None] = {}
        for name, source in self._known.items():
            if source.state is not None:
                values[WITNESS + name] = source.state.save_state()
            values[EVIDENCE + name] = pack_evidence(_reports(source))
        if values:
            await self._writer.surely(lambda: self._store.state.set(values))

    async def _keep_news(self) -> None:
        """The same now and then, and as soon as anything is another way: idle looks are not worth a write."""
        seen = [pair for source in self._known.values() for pair in _reports(source).items()]
        gist = [(key, told.known, told.stale_since_s, told.cost_s, told.below) for key, told in seen]
        late = self._clock.elapsed_s() >= self._kept_s + _KEEP_S
        if late or gist != self._gist or any(told.changed for _, told in seen):
            await self.keep()
            self._gist, self._kept_s = gist, self._clock.elapsed_s()

    def _begin_looks(self) -> None:
        now_s = self._clock.elapsed_s()
        for table in self._accounts.settings.sources:
            name = table.settings.name
            source = self._sources.capabilities(name)
            if source.staleness is None or name in self._looking:
                continue
            if now_s >= self._next_s.get(name, now_s):
                every_s = table.settings.listings_every_s or self._accounts.settings.run.listings_every
                self._next_s[name] = now_s + every_s
                self._looking[name] = asyncio.create_task(self._look(name, source))
        for name in set(self._known) - {table.settings.name for table in self._accounts.settings.sources}:
            del self._known[name]

    def _end_looks(self) -> None:
        for name, task in list(self._looking.items()):
            if task.done():
                del self._looking[name]
                task.result()  # a defect of ours is not to be hidden

    async def _look(self, name: str, source: Capabilities) -> None:
        if self._known.get(name) is not source:
            kept = await self._writer.surely(lambda: self._store.state.get(WITNESS + name))
            if kept is not None and source.state is not None:
                source.state.load_state(kept)
        await self._listing_task.look(name)
        self._known[name] = source
        seen = _reports(source)
        if seen.keys() - self._ids.keys():
            ids = await self._writer.surely(lambda: self._store.items.ids(list(seen)))
            self._ids |= ids
        self._take_in()
        await self._keep_news()

    def _take_in(self) -> None:
        """Put what all sources see before the policy."""
        memory, policy = self._picker.memory, self._picker.policy
        seen: dict[int, StalenessReport] = {}
        rows_of: dict[str, int] = {}
        for source in self._known.values():
            for key, told in _reports(source).items():
                row = memory.row(self._ids[key]) if key in self._ids else None
                if row is not None:
                    seen[row], rows_of[key] = told, row
        policy.sight = Sight.of(seen, rows_of) if seen else None
        self._release()
        self._appraise()

    def _release(self) -> None:
        """In a single round what is seen to be stale is due, unless it was polled in it."""
        sight, due_s = self._picker.policy.sight, self._accounts.only_due_s
        if sight is not None and due_s is not None:
            memory, rows = self._picker.memory, sight.rows[sight.stale]
            memory.hold_s[rows[memory.polled_s[rows] < due_s]] = float("-inf")

    def _appraise(self) -> None:
        accounts = self._accounts
        appraise(self._picker.policy, accounts.settings, self._names(), accounts.uses)
        self._appraised_s = self._clock.elapsed_s()
        self._picker.stale()
        self._stirred.set()

    def _keep_appraising(self) -> None:
        """Where copies earn money, what polls cost and changes are worth is reckoned anew all the time."""
        accounts, now_s = self._accounts, self._clock.elapsed_s()
        if not earns(accounts.settings) or now_s < self._appraised_s + APPRAISE_EVERY_S:
            return
        self._appraise()
        found = rebudget(self._picker.policy, accounts.settings, self._names(), accounts.uses)
        took_s = self._clock.elapsed_s() - now_s
        self._appraised_s = now_s + _COSTLY * took_s
        if found is not None:
            say(logging.DEBUG, "budget chosen", requests_per_s=found.requests_per_s, futile=found.futile)


def _reports(source: Capabilities) -> Mapping[str, StalenessReport]:
    return {} if source.staleness is None else source.staleness.staleness_reports()
