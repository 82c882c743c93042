"""Hosts that answer a byte now and then cannot hold all slots: polls of an honest host go on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.engine.living import settings_for
from tests.servers.site import Answer, Seen, Site, page
from tests.servers.threaded import served_by
from tests.waiting import until

from afresh.engine.app import make_engine
from afresh.values.items import ItemChange

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
