"""A source whose views are tables that a command or function of the user rebuilds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.sources.polling import SetClock, lease_of, lease_with_copy, make_source

from afresh.sources.context import SourceContext
from afresh.sources.views.source import ViewSource
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing


class RebuiltViews:
    """A view source with the settings ``changes`` and a clock that goes when told to. The command of the
    views appends their names to a file, then does what ``then`` says in the shell."""

    def __init__(self, folder: Path, then: str = ":", **changes: Any) -> None:
        self.log, self.clock = folder / "built.txt", SetClock()
        self.log.touch()
        script = f'echo "$1" >> {self.log}; {then}'
        command = ["sh", "-c", script, "sh", "{view}"]
        self.table = {"name": "house", "kind": "view", "refresh": command} | changes
        self.source = self.make()
        self._leases: dict[str, Lease] = {}

    def make(self) -> ViewSource:
        source = make_source(self.table, SourceContext(clock=self.clock))
        assert isinstance(source, ViewSource)
        return source

    async def look(self, seconds: float = 5.0) -> Listing:
        self.clock.time_s += seconds
        (listing,) = [listing async for listing in self.source.listings()]
        return listing

    async def poll(self, view: str, **options: Any) -> Fetched:
        lease = self._leases.get(view, lease_of(view))
        found = await self.source.poll(lease, **options)
        self._leases[view] = lease_with_copy(lease, found)
        return found

    def built(self) -> list[str]:
        """The views that were rebuilt since the last call, in their order."""
        found = self.log.read_text().split()
        self.log.write_text("")
        return found

    def stale(self) -> set[str]:
        return {view for view, told in self.source.staleness_reports().items() if not told.fresh}

    async def check_stale_then_refresh(self, why: str, stale: set[str], view: str) -> None:
        """Check that a look finds just ``stale``, and that a poll of ``view`` rebuilds just these."""
        await self.look()
        assert (why, self.stale()) == (why, stale)
        await self.poll(view)
        await self.look()
        assert (why, self.stale()) == (why, set())
        assert set(self.built()) == stale

    def use(self, work: Callable[[], Awaitable[None]]) -> None:
        async def run() -> None:
            try:
                await work()
            finally:
                await self.source.close()

        asyncio.run(run())
