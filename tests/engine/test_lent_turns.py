"""A run and a program that leases share a host that both want: they take turns, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.engine.virtual_site import VirtualSite
from tests.virtual_time import pass_time

from afresh.engine.engine import Engine
from afresh.values.lease import Lease
from afresh.values.reported import Reported

EVERY_S, LASTS_S = 0.1, 20.0
SOURCE = 'delay = "1s"\nrespect_robots = false'


class _SharedSite(VirtualSite):
    """A site with one host, from which a program fetches what ``lender`` lends it. It asks ten times a second
    for ``wanted`` items, of the next ``ahead_s`` seconds. ``lent_s`` are the starts of its requests."""

    lender: Engine
    wanted, ahead_s = 1, 0.0
    _program: asyncio.Task[None] | None = None

    async def serve(self, path: str, headers: Mapping[str, str]) -> bytes:
        """With the first request of the run, the program begins."""
        if self._program is None:
            self.lent_s: list[float] = []
            self._program = asyncio.create_task(self._ask())
        return await super().serve(path, headers)

    async def _ask(self) -> None:
        async with asyncio.TaskGroup() as requests:
            while True:
                for lease in self.lender.lending.lend(self.wanted, 30.0, ahead_s=self.ahead_s).leases:
                    requests.create_task(self._fetch(lease))
                await pass_time(EVERY_S)

    async def _fetch(self, lease: Lease) -> None:
        await pass_time(max(lease.not_before_s - self.time.now_s(), 0.0))
        self.lent_s.append(lease.not_before_s)
        content = await VirtualSite.serve(self, urlsplit(lease.key).path, {})
        self.lender.lending.record(
            [Reported(lease.key, self.time.now_s(), content=content, lease=lease.token)]
        )


def share_host(folder: Path, budget: str, *, wanted: int, ahead_s: float, apart: bool) -> tuple[int, int]:
    """Return a tuple (requests of the program, requests of the run); ``apart``: an engine of another process
    lends, as the store sees it."""
    with _SharedSite([0.2] * 40, lasts_s=60.0) as site:
        with (
            site.engine(folder, budget=budget, source=SOURCE) as engine,
            site.engine(folder, budget=budget, source=SOURCE, seed=2) as other,
        ):
            engine.add(site.urls())
            site.lender, site.wanted, site.ahead_s = other if apart else engine, wanted, ahead_s
            engine.run(for_s=LASTS_S)
        times_s = sorted(time_s for time_s, _ in site.requests)
        assert min(after - before for before, after in pairwise(times_s)) > 0.99  # the host's delay
        return len(site.lent_s), len(site.requests) - len(site.lent_s)


@pytest.mark.parametrize(
    ("budget", "wanted", "ahead_s"), [("1/s", 1, 0.0), ("20/s", 1, 0.0), ("20/s", 9, 10.0)]
)
def test_a_run_and_a_program_that_leases_take_turns(
    tmp_path: Path, budget: str, wanted: int, ahead_s: float
) -> None:
    """At 20/s the program had got nothing: the run took the host as soon as it might be asked. At 1/s the
    run had got nothing, because the program asked ahead, and did not even end."""
    lent, own = share_host(tmp_path, budget, wanted=wanted, ahead_s=ahead_s, apart=False)
    assert lent + own >= LASTS_S - 1
    assert abs(lent - own) <= 2


def test_beside_an_engine_in_another_process_both_get_their_share(tmp_path: Path) -> None:
    """The engine learns of lent requests only within a second, so some of the host's time is lost."""
    lent, own = share_host(tmp_path, "20/s", wanted=3, ahead_s=0.0, apart=True)
    assert lent + own >= 0.65 * LASTS_S
    assert abs(lent - own) <= 2
