"""Pages that keep their ETag and Last-Modified over new content are found out, and kept fresh like others."""

from __future__ import annotations

from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from tests.engine.virtual_site import VirtualSite

from afresh.sources.http.fetcher import Reply, Request
from afresh.values.arrays import Float64s

EVERY_S = 10.0  # the budget is one poll of each page in so many seconds, on average


class LyingSite(VirtualSite):
    """Answers conditional requests with 304 if the validators are the same. One page in ``every`` lies: its
    validators stay those of its first version."""

    every, found = 10, set[int]()

    def lies(self, page: int) -> bool:
        return page % self.every == 3

    async def fetch(self, request: Request) -> Reply:
        reply = await super().fetch(request)
        path = urlsplit(request.url).path
        if not path.startswith("/p/"):
            return reply
        page = int(path.removeprefix("/p/"))
        version = 0 if self.lies(page) else self.version(page, self.time.now_s())
        modified_s = self.started_s - 9e5 if version == 0 else self.changes[page][version - 1]
        headers = {"etag": f'"{version}"', "last-modified": formatdate(modified_s, usegmt=True)}
        sent = {name.lower(): value for name, value in request.headers.items()}
        if sent.get("if-none-match") != headers["etag"]:
            return replace(reply, headers={**reply.headers, **headers})
        if self.lies(page):  # what is not sent refreshes no copy
            self.requests.remove(next(one for one in reversed(self.requests) if one[1] == path))
        return Reply(304, headers, b"", 100, reply.seconds)


def uniform_freshness(changes: Float64s, begin_s: float, end_s: float) -> float:
    """The share of time in which a copy that is refreshed every ``EVERY_S`` seconds is right."""
    edges = np.arange(begin_s, end_s, EVERY_S)
    stale_s = np.searchsorted(changes, edges)
    first = np.append(changes, np.inf)[stale_s]
    return float(np.clip(first - edges, 0.0, EVERY_S).mean() / EVERY_S)


def draw_rates(number: int) -> Float64s:
    return np.random.default_rng(7).lognormal(np.log(0.02), 1.5, number)


def live(
    folder: Path, rates: Float64s, rounds: float, every: int = 10
) -> tuple[LyingSite, dict[bool, float], dict[bool, float]]:
    """A tuple (site, freshness, freshness of uniform polling); the latter of honest (False) and lying (True)
    pages, after a third of the time."""
    pages, lasts_s = rates.size, rounds * EVERY_S
    site = LyingSite(rates.tolist(), seed=5, lasts_s=lasts_s + 5.0)
    site.every = every
    engine = site.engine(folder, budget=f"{pages / EVERY_S}/s", source="respect_robots = false")
    with engine:
        engine.add(site.urls())
        engine.run(for_s=lasts_s)
        leases = engine.store.leases.take(range(1, pages + 1), site.time.now_s(), 1.0)
    site.found = {int(lease.key.rpartition("/")[2]) for lease in leases if "lied" in lease.validators}
    begin_s, end_s = site.started_s + lasts_s / 3, site.started_s + lasts_s
    fresh: dict[bool, list[float]] = {False: [], True: []}
    uniform: dict[bool, list[float]] = {False: [], True: []}
    for page in range(pages):
        fresh[site.lies(page)].append(site.freshness_of(page, begin_s, end_s))
        uniform[site.lies(page)].append(uniform_freshness(site.changes[page], begin_s, end_s))
    means = [{lies: float(np.mean(each[lies])) for lies in each} for each in (fresh, uniform)]
    return site, means[0], means[1]


def test_lying_pages_are_found_out_and_kept_fresh(tmp_path: Path) -> None:
    site, fresh, uniform = live(tmp_path, draw_rates(32), 14, every=4)
    middle_s = site.started_s + 7 * EVERY_S
    early = {page for page in range(3, 32, 4) if np.any(site.changes[page] < middle_s)}
    assert early <= site.found <= set(range(3, 32, 4))
    assert fresh[True] >= uniform[True] - 0.03


@pytest.mark.slow
def test_no_class_of_pages_of_a_larger_site_is_below_uniform_polling(tmp_path: Path) -> None:
    """Of ten pages of the same rate one lies. If each page has a rate of its own, the draw decides: forty
    lying pages ended .003 below uniform polling, and so did they on a site where nobody lied."""
    _, fresh, uniform = live(tmp_path, draw_rates(40).repeat(10), 60)
    assert fresh[True] >= uniform[True]
    assert fresh[False] >= uniform[False]
