"""Pages that are found by links: what is looked up, what comes back, and how fresh their copies are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.engine.virtual_site import VirtualSite
from tests.servers.site import Answer, Seen, page
from tests.servers.threaded import sitemap
from tests.slow_cases import with_slow_cases
from tests.virtual_time import pass_time

from afresh.engine.reporting.found_summary import read_summary
from afresh.engine.runner.followed.found_pages import LINKS_AT_ONCE, add_found_pages
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.settings.tables import Settings
from afresh.engine.threaded_store import ThreadedStore
from afresh.sources.http.fetcher import Fetcher, Reply, Request
from afresh.stores.opening import open_store
from afresh.stores.sql.item_part import SqlItems
from afresh.stores.store import Store
from afresh.values.fetched import FoundLinks
from afresh.values.items import ItemChange, NewItem
from afresh.values.outcome import Outcome
from afresh.values.stored import PageLinks

HOME = "http://a.test/"
A, B, C = (f"{HOME}{name}" for name in "abc")


def settings_with(more: str = "") -> Settings:
    return parse_settings(f'[[source]]\nname = "web"\n{more}[source.follow]\nstart = ["{HOME}"]\n')


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory:") as opened:
        opened.items.add([NewItem(HOME, "web", "a.test", listed=True)], 1.0)
        yield opened


def read(store: Store, key: str, *links: str, settings: Settings | None = None, now_s: float = 9.0) -> int:
    """Commit a poll of ``key`` that found ``links``; return how many new items it showed."""
    (lease,) = store.leases.take([store.items.ids([key], "web")[key]], now_s, 60.0, worker="w")
    outcomes = [Outcome(lease, now_s, now_s + 1.0, links=FoundLinks(links))]
    outcomes = add_found_pages(store, settings or settings_with(), outcomes, now_s)
    assert store.commit(outcomes, {}) == []
    assert outcomes[0].links is not None
    return outcomes[0].links.gained


def known(store: Store) -> set[str]:
    return set(store.items.ids([HOME, A, B, C], "web"))


def links_of(store: Store, key: str) -> PageLinks:
    (found,) = store.links.by_id([store.items.ids([key], "web")[key]])
    return found


def test_only_links_that_are_new_on_a_page_are_looked_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    ids = SqlItems.ids

    def noted(items: SqlItems, keys: list[str], source: str | None = None) -> dict[str, int]:  # type: ignore[type-arg]
        asked.append(sorted(keys))
        return dict(ids(items, keys, source))

    assert read(store, HOME, A, B) == 0  # the first reading says nothing about how often new pages appear
    item_id = store.items.ids([HOME], "web")[HOME]
    with monkeypatch.context() as patch:
        patch.setattr(SqlItems, "ids", noted)
        patch.setattr(SqlItems, "counts", lambda _: pytest.fail("no item was added"))
        (lease,) = store.leases.take([item_id], 10.0, 60.0, worker="w")
        (outcome,) = add_found_pages(
            store, settings_with(), [Outcome(lease, 10.0, 11.0, links=FoundLinks((A, B)))], 10.0
        )
    assert asked == []
    assert outcome.links == FoundLinks((A, B))
    store.commit([outcome], {})
    assert read(store, HOME, A, B, C) == 1
    assert known(store) == {HOME, A, B, C}
    assert (links_of(store, HOME).readings, links_of(store, HOME).gained) == (3, 1)


def test_an_item_that_was_removed_comes_back_only_by_a_new_link(store: Store) -> None:
    read(store, HOME, A, B)
    store.items.remove(list(store.items.ids([A], "web").values()), 5.0, announce=False)
    read(store, HOME, A, B)
    assert known(store) == {HOME, B}
    read(store, B, A)
    assert known(store) == {HOME, A, B}


def test_a_page_that_is_gone_is_polled_again_only_after_a_new_link(store: Store) -> None:
    read(store, HOME, A, B)
    gone = store.items.ids([A], "web")[A]

    def status() -> str:
        return store.items.by_id([gone])[0].status

    store.items.change([gone], ItemChange(status="gone"))
    read(store, HOME, A, B)  # a dead link that stays on a page that changes
    assert status() == "gone"
    read(store, B, A)
    assert status() == "active"


def test_what_was_left_out_is_looked_at_again_at_the_next_reading(store: Store) -> None:
    read(store, HOME, A, B, settings=settings_with("max_items = 2\n"))
    assert known(store) == {HOME, A}
    assert links_of(store, HOME).links == (A,)
    read(store, HOME, A, B, settings=settings_with("max_items = 9\n"))
    assert known(store) == {HOME, A, B}


def test_thousands_of_links_are_added_in_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the parts the store answers the calls of other polls."""
    parts: list[int] = []
    add = SqlItems.add

    def noted(items: SqlItems, new: list[NewItem], now_s: float) -> int:  # type: ignore[type-arg]
        parts.append(len(new))
        return add(items, new, now_s)

    read(store, HOME, A)
    monkeypatch.setattr(SqlItems, "add", noted)
    links = [f"{HOME}n{number}" for number in range(2 * LINKS_AT_ONCE + 100)]
    item_ids = list(store.items.ids([HOME, A], "web").values())
    leases = store.leases.take(item_ids, 9.0, 60.0, worker="w")
    found = [links[: LINKS_AT_ONCE + 50], links]
    outcomes = [
        Outcome(lease, 9.0, 10.0, links=FoundLinks(tuple(keys)))
        for lease, keys in zip(leases, found, strict=True)
    ]
    outcomes = add_found_pages(store, settings_with(), outcomes, 9.0)
    assert max(parts) <= LINKS_AT_ONCE
    assert sum(parts) == len(links)
    kept = [each.links.keys for each in outcomes if each.links is not None]
    assert kept == [tuple(keys) for keys in found]
    assert len(store.items.ids(links, "web")) == len(links)
    assert read_summary(store, "web").pages == 1 + len(links)


def test_limits_count_across_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.engine.runner.followed.found_pages.LINKS_AT_ONCE", 3)
    links = [f"{HOME}n?page={number}" for number in range(10)]
    assert read(store, HOME, *links, settings=settings_with("max_items = 6\n")) == 0
    assert links_of(store, HOME).links == tuple(links[:5])
    (left_out,) = read_summary(store, "web").left_out.values()
    assert left_out[0] == 5
    assert read(store, HOME, *links) == 5
    assert links_of(store, HOME).links == tuple(links)


def test_other_polls_go_on_while_many_links_are_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long adding them takes, other outcomes are committed, and their items are polled again."""

    def slow(method: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        async def call(store: ThreadedStore, work: object, *given: object, **named: object) -> object:
            if work is add_found_pages:
                await pass_time(20.0)
            return await method(store, work, *given, **named)

        return call

    for name in ("run", "run_beside"):
        monkeypatch.setattr(ThreadedStore, name, slow(getattr(ThreadedStore, name)))
    site, asked_s = VirtualSite(), list[float]()

    async def honest(_seen: Seen, answer: Answer) -> None:
        asked_s.append(site.time.now_s())
        await answer.send(b"honest", Content_Type="text/plain")

    links = b"".join(b"<a href=/p/%d>" % number for number in range(600))
    site.routes |= {"/honest": honest, "/p/": page(links, Content_Type="text/html")}
    with site.engine(tmp_path, budget="4/s") as engine:
        engine.add([f"{site.root}/honest"])
        engine.set([f"{site.root}/honest"], ItemChange(max_interval_s=1.0))
        engine.add_listings(follow=[f"{site.root}/p/"])
        engine.run(for_s=12.0)
        assert site.paths.count("/p/") == 1
        assert len(engine.store.items.ids([f"{site.root}/p/{number}" for number in range(600)])) == 600
    assert max(after - before for before, after in pairwise(asked_s)) < 5.0
    assert asked_s[-1] > asked_s[0] + 8.0


def _site_of(pages: int, seed: int) -> VirtualSite:
    """A site whose pages link to each other, and change at rates that differ by orders of magnitude."""
    rng = np.random.default_rng(seed)
    weights = rng.lognormal(0.0, 1.5, pages)
    site = VirtualSite(0.4 * weights / weights.mean() / 17, seed=seed, lasts_s=900.0)

    async def serve(seen: Seen, answer: Answer) -> None:
        number = int(seen.path.removeprefix("/p/"))
        mark = f'"{number}-{site.version(number, site.time.now_s())}"'
        await site.serve(seen.path, seen.headers)
        others = {(2 * number + 1) % pages, (2 * number + 2) % pages, *range(0, pages, 9)}
        links = "".join(f'<a href="/p/{other}">{other}</a>' for other in sorted(others))
        if seen.headers.get("if-none-match") == mark:
            await answer.send(b"", 304, ETag=mark)
        else:
            await answer.send(f"{links}{mark}".encode(), ETag=mark, Content_Type="text/html")

    site.routes |= {f"/p/{number}": serve for number in range(pages)}
    site.routes["/p/"] = page(b'<a href="/p/0">first</a>', ETag='"home"', Content_Type="text/html")
    names = sitemap(site.root, "p/", *(f"p/{number}" for number in range(pages)))
    site.routes["/sitemap.xml"] = page(names, Content_Type="application/xml")
    return site


class _ScriptedPages:
    """In place of the browser: scripts make what a page says, with three requests, in half a second."""

    def __init__(self, plain: Fetcher, *_: object) -> None:
        self._plain, self._turns = plain, asyncio.Semaphore(2)

    async def check_url(self, url: str) -> Reply | None:
        return await self._plain.check_url(url)

    async def fetch(self, request: Request) -> Reply:
        if "/p/" not in request.url:
            return await self._plain.fetch(request)
        shell = Reply(200, {"content-type": "text/html"}, b"<div id=app></div>", seconds=0.001)
        if not request.render:
            return shell
        async with self._turns:
            await pass_time(0.5)
            return replace(await self._plain.fetch(request), plain=shell, requests=3)

    async def close(self) -> None:
        """Nothing was started."""


@pytest.mark.parametrize("rendered", with_slow_cases([True, False], kept=1))
def test_copies_are_as_fresh_by_links_as_by_a_sitemap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rendered: bool
) -> None:
    """Links are read from what polls receive anyway, and those that lead to nothing new cost no poll."""
    name = "afresh.sources.http.rendering.rendering_fetcher.RenderingFetcher"
    monkeypatch.setattr(name, _ScriptedPages)
    budget, source = ("9/s", 'render = "auto"') if rendered else ("3/s", "")
    pages, requests, found = 60, list[int](), dict[str, float]()
    for way in ("follow", "sitemaps"):
        site = _site_of(pages, seed=3)
        (tmp_path / way).mkdir()
        plan = "[plan]\naudit_share = 0"
        with site.engine(tmp_path / way, budget=budget, more=plan, source=source) as engine:
            if way == "follow":
                engine.add_listings(follow=[f"{site.root}/p/"])
            else:
                engine.add_listings(sitemaps=[f"{site.root}/sitemap.xml"])
            engine.run(for_s=100.0)
        end_s = site.time.now_s()
        found[way] = site.expected_freshness(end_s - 70.0, end_s)
        requests.append(len(site.requests))
        assert len({path for _, path in site.requests}) == pages
    assert requests[0] == pytest.approx(requests[1], rel=0.02)
    assert found["follow"] == pytest.approx(found["sitemaps"], abs=0.02)
