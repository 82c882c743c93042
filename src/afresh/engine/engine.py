"""The Python interface of the engine: everything that the commands do.

with afresh.open_engine("mirror") as engine:
    engine.add(["https://example.org/"])
    engine.run(for_s=60)
    print(engine.status().freshness)
"""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

import numpy as np

from afresh.engine.gate import Gate
from afresh.engine.loop import Loop, Progress
from afresh.engine.settings import Settings
from afresh.sources.kinds import BUILT_IN
from afresh.sources.secret import Resolver
from afresh.sources.source import Source
from afresh.sources.surroundings import Surroundings
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.errors import UsageError, one_of
from afresh.values.items import ItemChange, NewItem
from afresh.values.stored import Copy

Report = Callable[[Progress], None]
_REPORT_S = 0.5


class Engine:
    """One project: its settings, its store, and what can be done with them. Made by ``make_engine``."""

    def __init__(
        self, settings: Settings, store: Store, clock: Clock, rng: np.random.Generator, secrets: Resolver
    ) -> None:
        self.settings, self.store = settings, store
        self._clock, self._rng, self._secrets = clock, rng, secrets

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
    ) -> int:
        """Register items (addresses, or what their source knows them by); how many were new."""
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
            )
            for key in keys
        )
        return self.store.items.add(new, self._clock.now_s())

    def remove(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Forget items and their copies; the keys that were not known. Hooks are told."""
        hooked = any(source.on_change for source in self.settings.sources)
        return self.store.items.remove(keys, self._clock.now_s(), announce=hooked)

    def set(self, keys: Sequence[str], change: ItemChange) -> tuple[str, ...]:
        """Change items; the keys that were not known. A running engine follows within a second."""
        return self.store.items.change(keys, change)

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
    ) -> Progress:
        """Poll until stopped, for a time, or (``once``) everything that is due, once.

        ``signals``: SIGTERM and SIGINT drain and stop, SIGHUP takes the settings that ``reload`` gives.
        """
        return asyncio.run(self._run(for_s, once, report, reload, signals))

    async def _run(
        self,
        for_s: float,
        once: bool,
        report: Report | None,
        reload: Callable[[], Settings] | None,
        signals: bool,
    ) -> Progress:
        loop = self._loop()
        if signals:
            self._obey(loop, reload)
        reporting = asyncio.create_task(_report(loop, report)) if report else None
        try:
            return await loop.run(for_s=for_s, once=once)
        finally:
            if reporting is not None:
                reporting.cancel()

    def _loop(self) -> Loop:
        return Loop(self.store, self.settings, self._clock, self._rng, self._make_sources)

    def _obey(self, loop: Loop, reload: Callable[[], Settings] | None) -> None:
        from afresh.engine.reload import reloader

        running = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            running.add_signal_handler(number, loop.stop)
        if reload is not None:
            running.add_signal_handler(signal.SIGHUP, reloader(loop, reload))

    def _make_sources(self, gate: Gate) -> dict[str, Source]:
        around = Surroundings(clock=self._clock, admit=gate.admit, resolver=self._secrets)
        return {
            table.settings.name: BUILT_IN[table.settings.kind].build(table.settings, around)
            for table in self.settings.sources
        }

    # Copies.

    def get(self, key: str, *, max_age_s: float = math.inf, version: int | None = None) -> Copy | None:
        """The copy of an item, polled first if the last look at it is older than ``max_age_s``."""
        item = self.store.items.get(key)
        if item is None:
            raise UsageError(f"there is no item {key!r}: add it first")
        looked_s = -math.inf if item.polled_s is None else item.polled_s
        if version is None and self._clock.now_s() - looked_s > max_age_s:
            asyncio.run(self._loop().refresh(item.id))
        return self.store.copies.get(item.id, version)

    # Helpers.

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
        if table.settings.kind == "http":
            from afresh.sources.urls import host_group

            return host_group
        call = str(getattr(table.settings, "call", name))
        return lambda _key: call


async def _report(loop: Loop, report: Report) -> None:
    while True:
        await asyncio.sleep(_REPORT_S)
        if loop.running:
            report(loop.progress())
