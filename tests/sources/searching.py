"""What the tests of the search source share: a small world, sources on its site, an engine's part by hand."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from tests.servers.search_site import Papers, SearchSite, draw_papers
from tests.sources.polling import SetClock, lease_of, lease_with_copy

from afresh.sources.capabilities import BatchSource
from afresh.sources.context import SourceContext
from afresh.sources.search.settings import SearchSettings
from afresh.sources.search.source import SearchSource
from afresh.sources.settings import read_settings
from afresh.values.arrays import Float64s
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease

Found = TypeVar("Found")


@dataclass(frozen=True)
class World:
    """Papers on a site, and those of some authors as the relation in a file."""

    papers: Papers
    own: tuple[int, ...]
    relation: Path

    @property
    def keys(self) -> list[str]:
        """The keys of the relation."""
        return [f"p{paper}" for paper in self.own]


def make_world(
    folder: Path,
    *,
    count: int = 600,
    own: int = 60,
    lasts_s: float = 60.0,
    begin_s: float = 0.0,
    mean_rate: float = 0.2,
) -> World:
    """A world that lasts so long."""
    papers = draw_papers(count, 3, begin_s=begin_s, lasts_s=lasts_s, mean_rate=mean_rate)
    rng = np.random.default_rng(5)
    chosen: set[str] = set()
    found: list[int] = []
    while len(found) < own:
        chosen.add(f"Ann A{rng.integers(count // 6)}")
        found = [at for at in range(count) if chosen & set(papers.authors[at].split(";"))]
    world = World(papers, tuple(found), folder / "relation.csv")
    write_relation(world, world.own)
    return world


def write_relation(world: World, own: Sequence[int]) -> None:
    """The relation with these papers."""
    with world.relation.open("w", newline="") as file:
        csv.writer(file).writerows([("id", "title", "authors"), *world.papers.rows(own)])


def search_table(world: World, site: SearchSite | None, **changes: Any) -> dict[str, Any]:
    """A ``[[source]]`` table, on the site or elsewhere."""
    table: dict[str, Any] = {
        "name": "papers",
        "relation": str(world.relation),
        "key": "id",
        "keywords": ["authors:;", "title"],
        "fields": {"cites": "absolute"},
        "scoped": True,
    }
    if site is not None:
        table |= {
            "server": site.url + "/search?q={query}&page={page}",
            "look_up": site.url + "/papers/{key}",
            "total": "count",
            "rows": "data",
            "paths": {"cites": "metrics.cites"},
            "delay": 0,
            "respect_robots": False,
            "allow_private": True,
        }
    return {"kind": "search", **table, **changes}


def search_source(world: World, site: SearchSite | None, clock: SetClock, **changes: Any) -> SearchSource:
    """A source whose time stands still."""
    settings = read_settings(SearchSettings, search_table(world, site, **changes))
    return SearchSource(settings, SourceContext(clock=clock, sleep=clock.sleep))


def with_source(
    world: World,
    site: SearchSite | None,
    clock: SetClock,
    work: Callable[[SearchSource, Desk], Awaitable[Found]],
    **changes: Any,
) -> Found:
    """What the work with a source and a desk brings; the source is closed then."""

    async def run() -> Found:
        source = search_source(world, site, clock, **changes)
        try:
            return await work(source, Desk(world.keys, clock))
        finally:
            await source.close()

    return asyncio.run(run())


class Desk:
    """The engine's part: leases of all items, taken and given back."""

    def __init__(self, keys: Sequence[str], clock: SetClock) -> None:
        self.leases: dict[str, Lease] = {key: lease_of(key, source="papers") for key in keys}
        self.fetched: dict[str, Fetched] = {}
        self.requests = 0
        self._clock = clock

    def lead(self) -> str:
        """The item that was not looked at for the longest time."""
        return min(self.leases, key=lambda key: self.leases[key].polled_s or 0.0)

    async def ask(
        self, source: BatchSource, lead: str = "", weights: Float64s | None = None
    ) -> dict[str, Fetched]:
        """One request of the source's choosing; what came."""
        batch = await source.choose(lead or self.lead(), weights)
        leases = [self.leases[key] for key in batch.keys if key in self.leases]
        found = await source.poll_batch(batch, leases)
        came = {lease.key: one for lease, one in zip(leases, found, strict=True) if one is not None}
        self.requests += sum(one.requests for one in came.values())
        for key, one in came.items():
            self.leases[key] = lease_with_copy(self.leases[key], one, self._clock.time_s)
        self.fetched |= came
        return came
