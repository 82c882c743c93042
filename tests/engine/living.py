"""A living site on loopback, in the machine's own time, and engines that may ask it quickly.

For what needs real processes and sockets. Behaviour over time is tested on ``virtual_site.py``.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.engine.changing_pages import ChangingPages
from tests.servers.site import Answer, Handler, Seen, Site

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.settings.tables import Settings
from afresh.values.clock import SystemClock

CLOCK = SystemClock()


class _SiteAt(Site):
    """A site at a port that was free a moment ago (0: at any); ``address`` may be all of this machine's."""

    def __init__(self, routes: Mapping[str, Handler], port: int, address: str) -> None:
        super().__init__(routes)
        self.port, self._address = port, address

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, self._address, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self


class LivingSite(ChangingPages):
    """Serves ``/p/0`` … from a thread of its own until its ``with`` ends."""

    def __init__(
        self,
        rates: Sequence[float],
        *,
        seed: int = 1,
        lasts_s: float = 300.0,
        port: int = 0,
        hosts: int = 1,
    ) -> None:
        """``hosts``: so many addresses of this machine share the pages, each host its own."""
        super().__init__(rates, CLOCK, seed=seed, lasts_s=lasts_s, hosts=hosts)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._ready, self.port = threading.Event(), port

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        routes = {f"/p/{page}": self._page for page in range(self.rates.size)}
        async with _SiteAt(routes, self.port, "127.0.0.1" if self._hosts == 1 else "0.0.0.0") as site:
            self.port = site.port
            self._ready.set()
            await self._stop.wait()

    async def _page(self, seen: Seen, answer: Answer) -> None:
        await answer.send(await self.serve(seen.path, seen.headers), Content_Type="text/plain")


def closed_now() -> str:
    """A window that is not open."""
    hour = datetime.fromtimestamp(CLOCK.now_s(), UTC).hour
    return f"{(hour + 3) % 24:02}:00-{(hour + 4) % 24:02}:00"


def settings_for(*, budget: str = "100/s", more: str = "", source: str = "") -> Settings:
    """Settings for a site that may be asked quickly."""
    return parse_settings(
        f"""
[budget]
requests = "{budget}"
{more}
[[source]]
name = "web"
{"" if "delay" in source else 'delay = "0s"'}
concurrency = 4
first_rest = "0.2s"
allow_private = true
{"" if "min_interval" in source else "min_interval = 0"}
{source}
"""
    )


def engine_for(
    folder: Path, *, budget: str = "100/s", more: str = "", source: str = "", seed: int = 1
) -> Engine:
    """An engine that may ask a loopback site quickly."""
    return make_engine(settings_for(budget=budget, more=more, source=source), folder, seed=seed)
