"""The sources of a run: they are built, polled, replaced after changes of the settings, and closed.

If the settings of a source change, its polls under way end first; then the new source receives the state of
the old one and is used. The state of sources (``sources.capabilities``) is saved in the store: back-offs
within a second, what they learned once a minute and at the end, merged with that of other workers.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import takewhile

from afresh.engine.logs import log_event
from afresh.engine.reporting.group_status import pack_backoffs, unpack_backoffs
from afresh.engine.scheduler.content_settings import forget_after_content_change
from afresh.engine.scheduler.restore import read_items
from afresh.engine.settings.tables import Settings, SourceTable
from afresh.engine.state_names import ACCESS_FINGERPRINT, BACKOFFS, SOURCE_STATE
from afresh.engine.threaded_store import ThreadedStore
from afresh.sources.capabilities import Capabilities, GroupBackoff, StatefulSource, find_capabilities
from afresh.sources.settings import SourceSettings
from afresh.sources.source import Source
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.fetched import Fetched
from afresh.values.items import ItemChange, ItemQuery
from afresh.values.lease import Lease

BuildSource = Callable[[SourceTable], Source]
STATES_EVERY_S = 60.0
_TRIES = 3  # attempts to save a state that other workers save at the same time


@dataclass(slots=True, eq=False)
class _OpenSource:
    """A source, its settings, its capabilities, and the number of tasks that use it now."""

    source: Source
    table: SourceTable
    users: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    can: Capabilities = field(init=False)

    def __post_init__(self) -> None:
        self.can = find_capabilities(self.source)

    @property
    def state(self) -> StatefulSource | None:
        """The source, if ``SourceSet`` saves its state; None without state or if ``StalenessTask`` does."""
        return None if self.can.staleness is not None else self.can.state


class SourceSet:
    """The sources of a run by their names."""

    def __init__(self, store: ThreadedStore, clock: Clock, build: BuildSource) -> None:
        self._store, self._clock, self._build = store, clock, build
        self._held: dict[str, _OpenSource] = {}
        self._retiring: dict[str, asyncio.Task[None]] = {}
        self._backoffs: dict[str, tuple[GroupBackoff, ...]] = {}
        self._known_states: dict[str, bytes] = {}  # a digest of the state that each source has loaded
        self._save_state_at_s = clock.elapsed_s() + STATES_EVERY_S

    async def open(self, settings: Settings) -> None:
        for table in settings.sources:
            name = table.settings.name
            self._held[name] = held = _OpenSource(self._build(table), table)
            if held.state is not None:
                backoffs = await self._store.run(self._store.sync.state.get, BACKOFFS + name)
                saved = await self._store.run(self._store.sync.state.get, SOURCE_STATE + name)
                self._known_states[name] = _digest(saved)
                held.state.load_state(saved or b"", unpack_backoffs(backoffs))

    def get(self, name: str) -> Source | None:
        """Return the source ``name``; None while polls of the source that it replaced are still under way."""
        held = self._held.get(name)
        return held.source if held is not None and name not in self._retiring else None

    def capabilities(self, name: str) -> Capabilities:
        """Return what the source ``name`` can do; nothing while ``get`` returns None."""
        held = self._held.get(name)
        return held.can if held is not None and name not in self._retiring else Capabilities()

    def names(self) -> list[str]:
        """Return the names of the sources that can be used now."""
        return [name for name in self._held if name not in self._retiring]

    def ready_s(self, name: str, group: str, now_s: float) -> float:
        """Return when the next poll of ``group`` may start; infinite while ``get`` returns None."""
        source = self.get(name)
        return math.inf if source is None else source.ready_s(group, now_s)

    def backoffs(self, name: str) -> tuple[GroupBackoff, ...]:
        """Return the groups to which the source ``name`` sends no requests for a while after failures."""
        held = self._held.get(name)
        return () if held is None or held.state is None else held.state.backoffs()

    @contextmanager
    def using(self, name: str) -> Iterator[Source | None]:
        """Keep the source open inside the ``with`` block, even if the settings change meanwhile."""
        held = self._held.get(name)
        if held is None:
            yield None
            return
        held.users += 1
        try:
            yield held.source
        finally:
            held.users -= 1
            if held.users == 0:
                held.idle.set()

    def bulk_limit(self, name: str, group: str) -> int:
        bulk = self.capabilities(name).bulk
        return 1 if bulk is None else max(bulk.bulk_limit(group), 1)

    async def poll(self, leases: Sequence[Lease], *, conditional: bool) -> list[Fetched]:
        """Poll items of one source; several items are polled with one request if the source can do so."""
        name = leases[0].source
        with self.using(name) as source:
            if source is None:
                problem = f"its source {name!r} is not in the settings"
                return [Fetched("refused", problem=problem)] * len(leases)
            try:
                bulk = self._held[name].can.bulk
                if len(leases) > 1 and bulk is not None:
                    return await bulk.poll_many(leases, conditional=conditional)
                return [await source.poll(lease, conditional=conditional) for lease in leases]
            except Exception as error:  # noqa: BLE001  # a source's own defect must not end others' polls
                key = leases[0].key
                log_event(logging.ERROR, "a source failed", source=name, item=key, error=repr(error))
                problem = f"the source raised {type(error).__name__}"
                return [Fetched("failed", problem=problem)] * len(leases)

    def replace_sources(self, tables: Iterable[SourceTable]) -> list[str]:
        """Build the sources of ``tables`` that are new or changed, retire the old ones, and return phrases
        about what changed. If a source cannot be built, change nothing."""
        wanted = {table.settings.name: table for table in tables}
        built = {
            name: _OpenSource(self._build(table), table)
            for name, table in wanted.items()
            if (held := self._held.get(name)) is None
            or held.table.settings != table.settings
            or held.table.kind is not table.kind
        }
        gone = [name for name in self._held if name not in wanted]
        words = []
        for name in [*gone, *built]:
            old, new = self._held.pop(name, None), built.get(name)
            if new is not None:
                self._held[name] = new
            if old is not None:
                self._retiring[name] = asyncio.create_task(self._retire(name, old, new))
            words.append(f"source {name!r} {_describe_difference(old, new)}")
        for name, table in wanted.items():
            self._held[name].table = table
        return words

    async def _retire(self, name: str, old: _OpenSource, new: _OpenSource | None) -> None:
        """Wait until no task uses the old source, pass its state to the new one, and close the old one."""
        try:
            while old.users:
                old.idle.clear()
                await old.idle.wait()
            if old.state is not None and new is not None and new.state is not None:
                new.state.load_state(old.state.save_state(), old.state.backoffs())
            if new is not None:
                settings, now_s = new.table.settings, self._clock.now_s()
                await self._store.run(retry_after_settings_change, self._store.sync, settings, now_s)
                await self._store.run(forget_after_content_change, self._store.sync, [settings], now_s)
            log_event(logging.INFO, "source removed" if new is None else "source replaced", source=name)
        finally:
            del self._retiring[name]
            await old.source.close()

    # The state of the sources.

    async def inherit(self, groups: Collection[str]) -> None:
        """Load the back-offs and learned paces of ``groups``, which another worker held until now."""
        for held in list(self._held.values()):
            if held.state is not None:
                saved = await self._store.run(self._store.sync.state.get, BACKOFFS + held.source.name)
                kept = unpack_backoffs(saved)
                is_one_group = held.source.name in groups  # then all that the source learned is of use
                found = [backoff for backoff in kept if is_one_group or backoff.group in groups]
                held.state.load_state(b"", found)
                if is_one_group:
                    await self._load_newer_state(held.source.name, held.state)

    def load_backoffs(self, backoffs: Sequence[GroupBackoff], only: str | None = None) -> None:
        """Let the sources, or the one named ``only``, send no request to groups before the end of these
        back-offs. A back-off without failures and reason is for a request of another program."""
        for name, held in self._held.items():
            if held.state is not None and backoffs and only in (None, name):
                held.state.load_state(b"", backoffs)

    def backoff(self, name: str, group: str) -> GroupBackoff | None:
        """Return the back-off of a group of the source ``name``, or None if it has none."""
        held = self._held.get(name)
        found = held.state.backoffs() if held is not None and held.state is not None else ()
        return next((each for each in found if each.group == group), None)

    async def _load_newer_state(self, name: str, source: StatefulSource) -> bool:
        """Load the state that other workers saved since the last call; return whether there was any."""
        saved = await self._store.run(self._store.sync.state.get, SOURCE_STATE + name)
        if not saved or _digest(saved) == self._known_states.get(name):
            return False
        source.load_state(saved)
        return True

    async def _save_states(self) -> None:
        """Save what the sources learned, merged with what other workers saved. If another worker saved at
        the same time, load its state and save again."""
        self._save_state_at_s = self._clock.elapsed_s() + STATES_EVERY_S
        for name, held in list(self._held.items()):
            source = held.state
            if source is None:
                continue
            await self._load_newer_state(name, source)
            for _ in range(_TRIES):
                packed = source.save_state()
                self._known_states[name] = _digest(packed)
                await self._store.run(self._store.sync.state.set, {SOURCE_STATE + name: packed})
                if not await self._load_newer_state(name, source):
                    break

    async def save_state(self, ours: Container[str], *, states: bool = False) -> None:
        """Save back-offs that changed. Once a minute, or with ``states``, also save what the sources learned.
        Back-offs of groups that this worker does not hold (``ours``) stay as other workers saved them."""
        values: dict[str, bytes | None] = {}
        for name, held in self._held.items():
            source = held.state
            if source is None:
                continue
            backoffs = source.backoffs()
            if backoffs != self._backoffs.get(name, ()):
                self._backoffs[name] = backoffs
                kept = await self._store.run(self._store.sync.state.get, BACKOFFS + name)
                known, now_s = {backoff.group for backoff in backoffs}, self._clock.now_s()
                theirs = [
                    backoff
                    for backoff in unpack_backoffs(kept)
                    if (backoff.until_s > now_s or backoff.pace is not None or backoff.used is not None)
                    and backoff.group not in known
                    and backoff.group not in ours
                ]
                values[BACKOFFS + name] = pack_backoffs((*backoffs, *theirs))
        if values:
            await self._store.run(self._store.sync.state.set, values)
        if states or self._clock.elapsed_s() >= self._save_state_at_s:
            await self._save_states()

    async def close(self) -> None:
        retiring = list(self._retiring.values())
        for task in retiring:
            task.cancel()
        await asyncio.gather(*retiring, return_exceptions=True)
        for held in self._held.values():
            await held.source.close()


def retry_after_settings_change(store: Store, settings: SourceSettings, now_s: float) -> int:
    """If the settings of a source allow other requests than before, make its failing items due now; return
    how many. The fingerprint of the settings is saved last, so that all is repeated after an interruption."""
    name, fingerprint = ACCESS_FINGERPRINT + settings.name, settings.access_fingerprint.encode()
    if store.state.get(name) == fingerprint:
        return 0
    failed = takewhile(
        lambda item: item.failures, read_items(store, ItemQuery(sort="failures", descending=True))
    )
    # Items that are gone or paused keep their status.
    ids = [
        item.id for item in failed if item.source == settings.name and item.status in ("active", "refused")
    ]
    if ids:
        store.items.change(ids, ItemChange(status="active", due_s=now_s))
        log_event(logging.INFO, "failing items are polled again", source=settings.name, items=len(ids))
    store.state.set({name: fingerprint})
    return len(ids)


def _digest(states: bytes | None) -> bytes:
    return blake2b(states or b"", digest_size=16).digest()


def _describe_difference(old: _OpenSource | None, new: _OpenSource | None) -> str:
    """Return what differs between two sources: names of settings without values, which may be secret."""
    if old is None or new is None:
        return "is new" if old is None else "is removed"
    before, after = old.table.settings.model_dump(), new.table.settings.model_dump()
    keys = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    return f"has other settings: {', '.join(keys) or 'its kind'}"
