"""A hundred pages that change at steady rates, and the ways to poll them: a run, single rounds, ``due``.

All ways see the same changes, so that differences between them are not chance.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests.engine.virtual_site import VirtualSite

from afresh.engine.engine import Engine
from afresh.engine.external_polls import Reported
from afresh.values.lease import Lease

EVERY_S = 10.0  # the budget is one poll of each page in so many seconds, on average
JUMP, JUMPING = 10.0, 5  # the rates of every fifth page rise tenfold


class SteadyWorld:
    """Pages and one way to poll them for ``lasts_s`` seconds. If ``jumps``, some rates rise in the middle."""

    def __init__(
        self, folder: Path, pages: int, lasts_s: float, *, jumps: bool = False, burst: float | None = None
    ) -> None:
        self.rates = np.random.default_rng(1).lognormal(np.log(0.03), 1.5, pages)
        self.lasts_s, self.budget_per_s = lasts_s, pages / EVERY_S
        self.site = VirtualSite(self.rates.tolist(), seed=3, lasts_s=lasts_s + 5.0)
        self.begin_s = self.site.started_s
        self.middle_s, self.end_s = self.begin_s + lasts_s / 2, self.begin_s + lasts_s
        if jumps:
            self._jump()
        more = "" if burst is None else f"burst = {burst}"
        self._folder = folder
        self._given: dict[str, Any] = {
            "budget": f"{self.budget_per_s}/s",
            "more": more,
            "source": "respect_robots = false",
        }

    def _jump(self) -> None:
        rng = np.random.default_rng(4)
        for page in range(0, self.rates.size, JUMPING):
            changes, count = self.site.changes[page], rng.poisson(JUMP * self.rates[page] * self.lasts_s / 2)
            later = self.middle_s + np.sort(rng.uniform(0.0, self.lasts_s / 2, count))
            self.site.changes[page] = np.concatenate([changes[changes < self.middle_s], later])

    def engine(self) -> Engine:
        """An engine with all pages; another one on the same folder continues."""
        made = self.site.engine(self._folder, **self._given)
        made.add(self.site.urls())
        return made

    def run(self) -> None:
        """One run from the beginning to the end."""
        with self.engine() as engine:
            engine.run(for_s=self.lasts_s)

    def run_once(self, every_s: float) -> None:
        """A single round every ``every_s`` seconds, each by another engine, as from cron."""
        rounds, began_s = 0, self.site.time.passed_s
        while self.site.time.now_s() < self.end_s:
            with self.engine() as engine:
                engine.run(once=True)
            rounds += 1
            self.site.time.passed_s = max(self.site.time.passed_s, began_s + rounds * every_s)

    def fetch(self, every_s: float, *, leased: bool, bits: bool = False) -> None:
        """Polls by the caller: ``due``, then ``observe``, every ``every_s`` seconds."""
        with self.engine() as engine:
            held: dict[str, bytes] = {}
            while self.site.time.now_s() < self.end_s:
                found = engine.due(self.rates.size, lease_s=60.0 if leased else None)
                engine.observe([self._poll(entry.key, entry, held, bits=bits) for entry in found])
                self.site.time.passed_s += every_s

    def _poll(self, key: str, entry: object, held: dict[str, bytes], *, bits: bool) -> Reported:
        page, now_s = int(key.rpartition("/")[2]), self.site.time.now_s()
        self.site.requests.append((now_s, f"/p/{page}"))
        content = self.site.content(page, self.site.version(page, now_s))
        changed, held[key] = held.get(key, content) != content, content
        token = entry.token if isinstance(entry, Lease) else None
        if bits:
            return Reported(key, now_s, changed=changed, lease=token)
        return Reported(key, now_s, content=content, media_type="text/plain", lease=token)

    def freshness(self) -> float:
        """The mean share of fresh copies in the second half."""
        return self.site.freshness(self.middle_s, self.end_s)

    def spent(self) -> float:
        """The polls of the second half, as a share of the budget."""
        polls = sum(self.middle_s <= time_s < self.end_s for time_s, _ in self.site.requests)
        return polls / (self.budget_per_s * self.lasts_s / 2)

    def most_at_once(self) -> float:
        """The largest number of requests beyond rate·T, over all periods T: at most the burst."""
        return self.site.most_over_budget(self.budget_per_s, jitter_s=0.003) + 1.0
