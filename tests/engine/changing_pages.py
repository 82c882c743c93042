"""Pages that change at known rates, and an exact account of what was served when.

A page's content is a function of time, so the account tells at every moment which copies are fresh.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from afresh.values.clock import Clock


class ChangingPages:
    """Pages ``/p/0`` … whose changes are drawn beforehand; ``requests`` is what was served, and when."""

    def __init__(
        self, rates: Sequence[float], clock: Clock, *, seed: int, lasts_s: float, hosts: int
    ) -> None:
        rng, self._hosts, self._clock, self.port = np.random.default_rng(seed), hosts, clock, 8000
        self.rates = np.asarray(rates, dtype=np.float64)
        self.started_s = clock.now_s()
        self.changes = [
            self.started_s + np.sort(rng.uniform(0, lasts_s, rng.poisson(rate * lasts_s))) for rate in rates
        ]
        self.requests: list[tuple[float, str]] = []
        self.headers: Mapping[str, str] = {}
        self.twice: list[str] = []
        self._under_way: Counter[str] = Counter()

    async def serve(self, path: str, headers: Mapping[str, str]) -> bytes:
        """The content of a page; the request is written down."""
        self.requests.append((self._clock.now_s(), path))
        self.headers = headers
        self._under_way[path] += 1
        if self._under_way[path] > 1:
            self.twice.append(path)
        await asyncio.sleep(0.001)  # an answer takes its time: a second request could meet the first
        self._under_way[path] -= 1
        page = int(path.removeprefix("/p/"))
        return self.content(page, self.version(page, self._clock.now_s()))

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
        return int(np.searchsorted(self.changes[page], now_s))

    def stop_changes(self) -> None:
        """From now on, no page changes any more."""
        now_s = self._clock.now_s()
        self.changes = [times[times <= now_s] for times in self.changes]

    def content(self, page: int, version: int) -> bytes:
        """What a version says."""
        return f"page {page} version {version} {'x' * (page % 50)}".encode()

    def freshness(self, begin_s: float, end_s: float) -> float:
        """The time-average share of pages whose last answer was still right, from the site's own log."""
        fresh = [self.freshness_of(page, begin_s, end_s) for page in range(self.rates.size)]
        return float(np.mean(fresh))

    def freshness_of(self, page: int, begin_s: float, end_s: float) -> float:
        """Share of the time in which this page's copy was right."""
        served = [time_s for time_s, path in self.requests if path == f"/p/{page}" and time_s < end_s]
        changes = self.changes[page]
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
