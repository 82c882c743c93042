"""A living site on loopback: pages that change at known rates, and an exact account of what it served when.

A page's content is a function of time, so the site knows at every moment which copies are fresh.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
from tests.servers.site import Answer, Handler, Seen, Site

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.settings.reading import read
from afresh.values.clock import SystemClock

CLOCK = SystemClock()
Floats = npt.NDArray[np.float64]


class _SiteAt(Site):
    """A site at a port that was free a moment ago (0: at any); ``address`` may be all of this machine's."""

    def __init__(self, routes: Mapping[str, Handler], port: int, address: str) -> None:
        super().__init__(routes)
        self.port, self._address = port, address

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, self._address, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self


class LivingSite:
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
        rng, self._hosts = np.random.default_rng(seed), hosts
        self.rates = np.asarray(rates, dtype=np.float64)
        self.started_s = CLOCK.now_s()
        self._changes = [
            self.started_s + np.sort(rng.uniform(0, lasts_s, rng.poisson(rate * lasts_s))) for rate in rates
        ]
        self.requests: list[tuple[float, str]] = []
        self.headers: Mapping[str, str] = {}
        self.twice: list[str] = []
        self._under_way: Counter[str] = Counter()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._ready, self.port = threading.Event(), port
        self.late_s = 0.0  # by which requests may be noted after they came, on a busy machine

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
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
            while not self._stop.is_set():
                before_s = CLOCK.elapsed_s()
                await asyncio.sleep(0.01)
                self.late_s = max(self.late_s, CLOCK.elapsed_s() - before_s - 0.01)

    async def _page(self, seen: Seen, answer: Answer) -> None:
        self.requests.append((CLOCK.now_s(), seen.path))
        self.headers = seen.headers
        self._under_way[seen.path] += 1
        if self._under_way[seen.path] > 1:
            self.twice.append(seen.path)
        await asyncio.sleep(0.001)  # long enough for a second request to meet the first
        self._under_way[seen.path] -= 1
        page = int(seen.path.removeprefix("/p/"))
        await answer.send(self.content(page, self.version(page, CLOCK.now_s())), Content_Type="text/plain")

    def url(self, page: int) -> str:
        """The address of a page."""
        return f"http://127.0.0.{1 + page % self._hosts}:{self.port}/p/{page}"

    def host_of(self, path: str) -> int:
        """The host that a page belongs to."""
        return int(path.removeprefix("/p/")) % self._hosts

    def urls(self) -> list[str]:
        """All addresses."""
        return [self.url(page) for page in range(self.rates.size)]

    def version(self, page: int, now_s: float) -> int:
        """How often a page had changed by then."""
        return int(np.searchsorted(self._changes[page], now_s))

    def content(self, page: int, version: int) -> bytes:
        """What a version says."""
        return f"page {page} version {version} {'x' * (page % 50)}".encode()

    def freshness(self, begin_s: float, end_s: float) -> float:
        """The time-average share of pages whose last answer was still right, from the site's own log."""
        fresh = [self._fresh(page, begin_s, end_s) for page in range(self.rates.size)]
        return float(np.mean(fresh))

    def _fresh(self, page: int, begin_s: float, end_s: float) -> float:
        """Share of the time in which this page's copy was right."""
        served = [time_s for time_s, path in self.requests if path == f"/p/{page}" and time_s < end_s]
        changes = self._changes[page]
        total = 0.0
        for place, time_s in enumerate(served):
            until_s = served[place + 1] if place + 1 < len(served) else end_s
            after = np.searchsorted(changes, time_s)
            stale_s = changes[after] if after < changes.size else np.inf
            total += max(0.0, min(until_s, stale_s, end_s) - max(time_s, begin_s))
        return total / (end_s - begin_s)

    def right_at(self, now_s: float) -> float:
        """The share of pages whose last answer before then was still right."""
        last = {path: time_s for time_s, path in self.requests if time_s < now_s}
        pages = ((int(path.removeprefix("/p/")), time_s) for path, time_s in last.items())
        right = [self.version(page, time_s) == self.version(page, now_s) for page, time_s in pages]
        return sum(right) / self.rates.size

    def expected_freshness(self, begin_s: float, end_s: float) -> float:
        """The same with the chance of the changes taken out: what pages of these rates, served then, come to.

        Between two answers a page stays right for ∫e^{−λt}dt.
        """
        total = 0.0
        for page, rate in enumerate(self.rates):
            served = np.array([time_s for time_s, path in self.requests if path == f"/p/{page}"])
            served = served[served < end_s]
            first = np.maximum(served, begin_s) - served
            last = np.append(served[1:], end_s) - served
            alive = last - first if rate == 0 else (np.exp(-rate * first) - np.exp(-rate * last)) / rate
            total += float(alive[last > first].sum())
        return total / self.rates.size / (end_s - begin_s)

    def most_over_budget(self, rate: float, jitter_s: float) -> float:
        """The largest excess over rate·(T + jitter) + 1 in any window: the way here is not always as long."""
        times = np.array(sorted(time_s for time_s, _ in self.requests))
        order = np.arange(times.size)
        # n − rate·T is largest where order − rate·time gains most from one request to a later one.
        level = order - rate * times
        return float(np.max(level - np.minimum.accumulate(level))) - rate * jitter_s


def closed_now() -> str:
    """A window that is not open."""
    hour = datetime.fromtimestamp(CLOCK.now_s(), UTC).hour
    return f"{(hour + 3) % 24:02}:00-{(hour + 4) % 24:02}:00"


def engine_for(
    folder: Path, *, budget: str = "100/s", more: str = "", source: str = "", seed: int = 1
) -> Engine:
    """An engine that may ask a loopback site quickly."""
    settings = read(
        f"""
[budget]
requests = "{budget}"
{more}
[[source]]
name = "web"
delay = "0s"
concurrency = 4
first_rest = "0.2s"
allow_private = true
{source}
"""
    )
    return make_engine(settings, folder, seed=seed)
