"""Hosts that answer a byte now and then cannot hold all slots: polls of an honest host go on."""

from __future__ import annotations

import asyncio
import math
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.engine.living import settings_for
from tests.engine.virtual_site import VirtualSite
from tests.servers.site import Answer, Seen, Site, page
from tests.servers.threaded import served_by
from tests.virtual_time import pass_time
from tests.waiting import until

from afresh.engine.app import make_engine
from afresh.sources.http.fetcher import Reply, Request
from afresh.values.items import ItemChange, ItemQuery

pytestmark = pytest.mark.waits

SLOTS, SLOW_SHARE, SLOW_HOSTS = 8, 6, 12


class DrippingSite(Site):
    """``/p`` answers at once; ``/slow`` of any address of this machine sends a byte now and then, until
    ``is_over``."""

    def __init__(self) -> None:
        super().__init__(
            {"/robots.txt": page(b""), "/p": page(b"here"), "/slow": self._drip}, address="0.0.0.0"
        )
        self.dripping = self.most_dripping = 0
        self.is_over = False

    async def _drip(self, _seen: Seen, answer: Answer) -> None:
        self.dripping += 1
        self.most_dripping = max(self.most_dripping, self.dripping)
        try:
            await answer.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not self.is_over:
                await answer.raw(b"x")
                await asyncio.sleep(0.05)
            answer.hang_up()
        finally:
            self.dripping -= 1


def test_slow_hosts_leave_slots_to_a_quick_one(tmp_path: Path) -> None:
    source = "max_size = '2MB'\nleast_rate = 0"
    settings = settings_for(more=f"[run]\nconcurrency = {SLOTS}", source=source)
    with served_by(DrippingSite()) as site, make_engine(settings, tmp_path, seed=1) as engine:
        engine.add([f"{site.url}/p"])
        engine.set([f"{site.url}/p"], ItemChange(max_interval_s=0.05))
        engine.add([f"http://127.0.1.{host}:{site.port}/slow" for host in range(1, 1 + SLOW_HOSTS)])
        engine.start()
        try:
            until(lambda: site.most_dripping >= SLOW_SHARE, "slow hosts hold their share")
            before = site.paths().count("/p")
            until(lambda: site.paths().count("/p") >= before + 3, "more polls of the honest host")
        finally:
            site.is_over = True
            engine.stop()
    assert site.most_dripping == SLOW_SHARE


class StallingSite(VirtualSite):
    """All hosts answer at once until ``stalls_s``; then only that of page 0 does."""

    stalls_s = math.inf

    async def fetch(self, request: Request) -> Reply:
        if self.time.now_s() > self.stalls_s and urlsplit(request.url).path != "/p/0":
            self.paths.append(urlsplit(request.url).path)
            await pass_time(60.0)
            return Reply(trouble="timeout", problem="no answer within 60 s")
        return await super().fetch(request)


def test_hosts_that_were_quick_lose_reserved_slots_when_they_stall(tmp_path: Path) -> None:
    site = StallingSite([0.0] * 13, hosts=13)
    more, source = f"[run]\nconcurrency = {SLOTS}", "respect_robots = false"
    with site.engine(tmp_path, budget="100/s", more=more, source=source) as engine:
        engine.add(site.urls())
        engine.set(site.urls(), ItemChange(max_interval_s=0.05))
        site.stalls_s = site.time.now_s() + 5.0
        engine.run(for_s=25.0)
        honest = [time_s for time_s, path in site.requests if path == "/p/0" and time_s > site.stalls_s]
        problems = {item.problem for item in engine.store.items.page(ItemQuery(), 99).items}
    gaps = [after - before for before, after in pairwise([site.stalls_s, *honest])]
    assert max(gaps) < 1.2
    assert len(honest) > 100
    assert any("kept others waiting" in problem for problem in problems)
