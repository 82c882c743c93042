"""Sitemaps and feeds: births, deaths and notices, seen once each, across restarts too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.living import engine_for
from tests.servers.site import Site, page

from afresh.engine.run.listing import extended, keep_listings, kept_listings, take_in
from afresh.sources.http.settings import HttpSettings
from afresh.stores.opening import open_store
from afresh.stores.store import Store
from afresh.values.items import ItemChange
from afresh.values.listing import Listed, Listing


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory:") as opened:
        yield opened


def listing(*entries: Listed, complete: bool = True) -> Listing:
    return Listing("https://h/sitemap.xml", "sitemap", entries, complete)


def test_births_deaths_and_notices(store: Store) -> None:
    first = listing(Listed("a", "1", prior_rate_per_s=0.5), Listed("b", "1"))
    assert take_in(store, "web", lambda _key: "h", first, 10.0) == (2, 0, 0)
    assert take_in(store, "web", lambda _key: "h", first, 20.0) == (0, 0, 0)
    item = store.items.get("a")
    assert item is not None
    assert item.prior_rate_per_s == 0.5
    second = listing(Listed("b", "2"), Listed("c", "1"))
    assert take_in(store, "web", lambda _key: "h", second, 30.0) == (1, 1, 1)
    gone = store.items.get("a")
    assert gone is not None
    assert (gone.status, gone.due_s) == ("active", 30.0)  # the source itself has the last word
    assert [notice.item_id for notice in store.notices.open()] == [store.items.ids(["b"])["b"]]


def test_an_incomplete_listing_kills_nothing(store: Store) -> None:
    take_in(store, "web", lambda _key: "h", listing(Listed("a"), Listed("b")), 10.0)
    assert take_in(store, "web", lambda _key: "h", listing(Listed("b"), complete=False), 20.0) == (0, 0, 0)
    assert take_in(store, "web", lambda _key: "h", listing(Listed("a"), Listed("b")), 30.0) == (0, 0, 0)


def test_what_was_gone_and_is_listed_again_comes_back(store: Store) -> None:
    take_in(store, "web", lambda _key: "h", listing(Listed("a")), 10.0)
    take_in(store, "web", lambda _key: "h", listing(), 20.0)
    store.items.change(["a"], ItemChange(status="gone"))
    take_in(store, "web", lambda _key: "h", listing(Listed("a")), 30.0)
    item = store.items.get("a")
    assert item is not None
    assert item.status == "active"


def test_documents_added_by_command_extend_the_settings(store: Store) -> None:
    keep_listings(store, "web", {"sitemaps": ["s1"]})
    keep_listings(store, "web", {"sitemaps": ["s1", "s2"], "feeds": ["f"]})
    settings = extended(HttpSettings(name="web", sitemaps=("s0",)), kept_listings(store, "web"))
    assert isinstance(settings, HttpSettings)
    assert (settings.sitemaps, settings.feeds) == (("s0", "s1", "s2"), ("f",))


def test_a_sitemap_on_a_real_site(tmp_path: Path) -> None:
    def work(url: str, site: Site) -> None:
        def sitemap(*names: str) -> bytes:
            rows = "".join(f"<url><loc>{url}/{name}</loc></url>" for name in names)
            return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'.encode()

        site.routes["/sitemap.xml"] = page(sitemap("a", "b"), Content_Type="application/xml")
        with engine_for(tmp_path, more='[run]\nlistings_every = "0.1s"') as engine:
            assert engine.add_listings(sitemaps=[f"{url}/sitemap.xml"]) == 2
            assert engine.run(once=True).polls == 2
            site.routes["/sitemap.xml"] = page(sitemap("a", "b", "c"), Content_Type="application/xml")
            engine.run(for_s=2.5)
            copy = engine.get(f"{url}/c")
            assert copy is not None
            assert copy.content == b"c"

    async def serve() -> None:
        async with Site({f"/{name}": page(name.encode()) for name in "abc"}) as site:
            await asyncio.to_thread(work, site.url, site)

    asyncio.run(serve())
