"""Sitemaps and feeds: births, deaths and notices, seen once each, across restarts too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engine.virtual_site import VirtualSite
from tests.servers.site import page
from tests.servers.threaded import sitemap
from tests.stores.backends import ids_of, seen

from afresh.engine.engine import Engine
from afresh.engine.logs import JsonLines
from afresh.engine.runner.listing_changes import (
    apply_listing,
    read_listings,
    save_listings,
    with_more_listings,
)
from afresh.engine.scheduler.restore import unpack_learned
from afresh.engine.state_names import LEARNED
from afresh.policy.adaptive.saved_state import Arrays
from afresh.sources.http.settings import HttpSettings
from afresh.stores.opening import open_store
from afresh.stores.store import Store
from afresh.values.errors import UsageError
from afresh.values.items import ItemChange, NewItem
from afresh.values.listing import Listing, ListingEntry, ListingKind
from afresh.values.stored import ObservationColumns

DAY_S = 86400.0


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory:") as opened:
        yield opened


def listing(*entries: ListingEntry, complete: bool = True) -> Listing:
    return Listing("https://h/sitemap.xml", "sitemap", entries, complete)


def apply(store: Store, given: Listing, now_s: float, **changes: Any) -> tuple[int, int, int]:
    """Apply a listing of the source ``web`` without a problem; return the numbers of what it changed."""
    done = apply_listing(store, HttpSettings(name="web", **changes), lambda _key: "h", given, now_s)
    assert done.problem == ""
    return done.born, done.missing, done.notices


def test_credentials_of_a_document_are_neither_logged_nor_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = VirtualSite()
    source = f'feeds = ["{site.root}/feed?token=hunter2"]'
    with site.engine(tmp_path, source=source) as engine:
        engine.run(for_s=5.0)
        shown = repr(engine.status())
    logged = "".join(JsonLines().format(record) for record in caplog.records)
    for text in (shown, logged):
        assert "/feed?token=•••: 404 Not Found" in text or '/feed?token=•••", "problem": "404' in text
        assert "hunter2" not in text


def test_an_entry_that_cannot_be_an_item_is_refused_alone(store: Store) -> None:
    def group(key: str) -> str:
        if key == "ftp":
            raise UsageError("ftp is not an address")
        return "h"

    entries = [ListingEntry(key, "mark\udcff") for key in ("a", "nul\0", "half \udc80", "ftp", "", "b")]
    for _ in range(2):  # the refused ones are refused again, and change nothing
        done = apply_listing(store, HttpSettings(name="web"), group, listing(*entries), 10.0)
        assert "4 entries refused, the first because" in done.problem
        assert "'nul\\x00'" in done.problem
        assert [item.key for item in store.items.by_id([1, 2, 3])] == ["a", "b"]


def test_listings_add_items_until_the_source_has_max_items(store: Store) -> None:
    store.items.add([NewItem("other", "books", "h")], 0.0)
    settings = HttpSettings(name="web", max_items=2)

    def read(*keys: str) -> tuple[int, str]:
        given = listing(*(ListingEntry(key) for key in keys), complete=False)
        done = apply_listing(store, settings, lambda _key: "h", given, 10.0)
        return done.born, done.problem

    assert read("a", "b") == (2, "")
    assert read("a", "b") == (0, "")
    assert read("a", "b", "c", "d") == (0, "the source has its max_items = 2 items: 2 entries not added")
    store.items.remove(ids_of(store, ["a", "b"]), 20.0)
    assert read("c", "d", "e") == (2, "the source has its max_items = 2 items: 1 entry not added")
    store.items.add([NewItem("e", "web", "h")], 30.0)  # a user may add more
    assert read("c", "d", "e") == (0, "")


def test_many_items_are_added_in_parts(store: Store) -> None:
    entries = [ListingEntry(f"https://h/{number}") for number in range(4_500)]
    assert apply(store, listing(*entries), 10.0) == (4_500, 0, 0)
    assert sum(count.items for count in store.items.counts()) == 4_500
    assert apply(store, listing(*entries[:-1]), 20.0) == (0, 1, 0)


def test_listings_add_no_items_to_a_store_that_is_full(store: Store) -> None:
    def read(*keys: str, max_bytes: float) -> tuple[int, str]:
        given = listing(*(ListingEntry(key) for key in keys), complete=False)
        settings = HttpSettings(name="web")
        done = apply_listing(store, settings, lambda _key: "h", given, 10.0, max_bytes)
        return done.born, done.problem

    used = store.upkeep.used_bytes()
    assert read("a", max_bytes=1.1 * used) == (1, "")
    born, words = read("a", "b", max_bytes=used)
    assert (born, words.startswith("the store has reached [store] max_size =")) == (0, True)
    assert words.endswith(": 1 entry not added")
    assert read("a", "b", max_bytes=2 * used) == (1, "")


def test_births_deaths_and_notices(store: Store) -> None:
    first = listing(ListingEntry("a", "1", prior_rate_per_s=0.5), ListingEntry("b", "1"))
    assert apply(store, first, 10.0) == (2, 0, 0)
    assert apply(store, first, 20.0) == (0, 0, 0)
    item = store.items.get("a")
    assert item is not None
    assert item.prior_rate_per_s == 0.5
    second = listing(ListingEntry("b", "2"), ListingEntry("c", "1"))
    assert apply(store, second, 30.0) == (1, 1, 1)
    gone = store.items.get("a")
    assert gone is not None
    assert (gone.status, gone.due_s) == ("active", 30.0)  # the source itself has the last word
    (notice,) = store.notices.open()
    assert (notice.item_id, notice.origin, notice.time_s) == (store.items.ids(["b"])["b"], "sitemap", 30.0)


def test_an_incomplete_listing_kills_nothing(store: Store) -> None:
    apply(store, listing(ListingEntry("a"), ListingEntry("b")), 10.0)
    assert apply(store, listing(ListingEntry("b"), complete=False), 20.0) == (0, 0, 0)
    assert apply(store, listing(ListingEntry("a"), ListingEntry("b")), 30.0) == (0, 0, 0)


def test_what_was_gone_and_is_listed_again_comes_back(store: Store) -> None:
    apply(store, listing(ListingEntry("a")), 10.0)
    apply(store, listing(), 20.0)
    store.items.change(ids_of(store, ["a"]), ItemChange(status="gone"))
    apply(store, listing(ListingEntry("a")), 30.0)
    item = store.items.get("a")
    assert item is not None
    assert item.status == "active"


def test_documents_added_by_command_extend_the_settings(store: Store) -> None:
    save_listings(store, "web", {"sitemaps": ["s1"]})
    save_listings(store, "web", {"sitemaps": ["s1", "s2"], "feeds": ["f"]})
    settings = with_more_listings(HttpSettings(name="web", sitemaps=("s0",)), read_listings(store, "web"))
    assert isinstance(settings, HttpSettings)
    assert (settings.sitemaps, settings.feeds) == (("s0", "s1", "s2"), ("f",))


def test_a_sitemap_is_read_again_and_what_is_new_is_polled(tmp_path: Path) -> None:
    site = VirtualSite(routes={f"/{name}": page(name.encode()) for name in "abc"})

    def lists(*names: str) -> None:
        site.routes["/sitemap.xml"] = page(sitemap(site.root, *names), Content_Type="application/xml")

    lists("a", "b")
    with site.engine(tmp_path, budget="2/s", more='[run]\nlistings_every = "10s"') as engine:
        assert engine.add_listings(sitemaps=[f"{site.root}/sitemap.xml"]) == 2
        assert engine.run(once=True).polls == 2
        lists("a", "b", "c")
        engine.run(for_s=6.0)
        assert engine.store.items.get(f"{site.root}/c") is None  # not read again before its time
        engine.run(for_s=6.0)
        copy = engine.get(f"{site.root}/c")
        assert copy is not None
        assert copy.content == b"c"


def polled(store: Store, key: str, now_s: float) -> None:
    """A poll of an item that found nothing."""
    nan = np.array([np.nan])
    store.observations.add(
        ObservationColumns(
            np.array([store.items.ids([key])[key]]),
            np.array([now_s]),
            np.array([10.0]),
            np.array([False]),
            nan,
            nan,
            np.array([False]),
        )
    )


@pytest.mark.parametrize(
    ("mark", "modified_s", "announced"),
    [
        ("1970-01-12T00:00Z", 11 * DAY_S, False),  # a poll on the 20th has seen it
        ("1970-01-20T09:58Z", 19.415 * DAY_S, True),  # two minutes before the poll: clocks differ
        ("1970-01-20", 19 * DAY_S, True),  # some time on the day of the poll
        ("1970-01-19", 18 * DAY_S, False),
        ("1970-01", 0.0, True),
        ("1970-01-25", 24 * DAY_S, True),
        ("version 7", None, True),  # no date at all
    ],
)
def test_a_date_before_the_last_poll_announces_nothing(
    store: Store, mark: str, modified_s: float | None, announced: bool
) -> None:
    apply(store, listing(ListingEntry("a", "first")), 10.0)
    polled(store, "a", 19.4166 * DAY_S)  # the 20th, ten o'clock
    again = listing(ListingEntry("a", mark, modified_s=modified_s))
    assert apply(store, again, 30 * DAY_S) == (0, 0, int(announced))
    assert len(store.notices.open()) == announced
    assert apply(store, again, 31 * DAY_S) == (0, 0, 0)  # it is known now


@pytest.mark.parametrize(("kind", "origin"), [("sitemap", "sitemap"), ("feed", "feed"), ("query", "cursor")])
def test_a_notice_has_the_origin_of_its_document_and_the_time_of_the_change(
    store: Store, kind: ListingKind, origin: str
) -> None:
    def read(mark: str, modified_s: float | None, now_s: float) -> None:
        entries = (ListingEntry("a", mark, modified_s), ListingEntry("b", mark, modified_s))
        apply(store, Listing("x", kind, entries, complete=True), now_s)

    read("first", None, 10.0)
    (under_way,) = store.leases.take([1], 20_000.0, 60.0)  # it begins before the document is read
    read("second", 15_000.0, 20_010.0)
    assert [(one.origin, one.time_s) for one in store.notices.open()] == [(origin, 15_300.0)] * 2
    store.commit([seen(under_way, 20_020.0)])
    assert [one.item_id for one in store.notices.open()] == [2]  # the poll of item 1 has seen the change
    read("third", 20_500.0, 20_400.0)  # the clock of the site is ahead
    assert [one.time_s for one in store.notices.open()] == [20_400.0, 20_400.0]


def test_a_date_that_a_poll_has_seen_announces_nothing_after_a_restart(tmp_path: Path) -> None:
    site = VirtualSite(routes={"/a": page(b"first"), "/b": page(b"first")})

    def lists(changed_s: float) -> None:
        moment = datetime.fromtimestamp(changed_s, UTC).isoformat()
        entries = "".join(
            f"<url><loc>{site.root}/{name}</loc><lastmod>{moment}</lastmod></url>" for name in "ab"
        )
        xml = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
        site.routes["/sitemap.xml"] = page(xml.encode(), Content_Type="application/xml")

    def opened() -> AbstractContextManager[Engine]:
        return site.engine(tmp_path, budget="1/s", more='[run]\nlistings_every = "10s"')

    with opened() as engine:
        lists(engine.clock.now_s() - 2 * DAY_S)
        assert engine.add_listings(sitemaps=[f"{site.root}/sitemap.xml"]) == 2
        assert engine.run(once=True).polls == 2
        seen_s = engine.clock.now_s() - DAY_S
        assert engine.store.notices.open() == []
    lists(seen_s)  # the sitemap tells late of a change that the polls have seen
    with opened() as engine:
        engine.run(for_s=11.0)
        assert learned_of(engine)["notices.sources"].tolist() == []
    lists(seen_s + 2 * DAY_S)
    with opened() as engine:
        engine.run(for_s=11.0)
        learned = learned_of(engine)
        assert learned["notices.sources"].tolist() == ["sitemap"]
        assert learned["notices.followed"].tolist() == [2.0]


def learned_of(engine: Engine) -> Arrays:
    """What the last run learned of all items together."""
    learned = unpack_learned(engine.store.state.get(LEARNED))
    assert learned is not None
    return learned
