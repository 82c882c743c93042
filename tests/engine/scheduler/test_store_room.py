"""A store that reaches its ``max_size``: old versions go first, then new copies are refused, in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.engine.virtual_site import VirtualSite
from tests.stores.backends import schema_url

from afresh.cli.engine.status_commands import status_rows
from afresh.engine.engine import Engine
from afresh.engine.external_polls import Reported
from afresh.engine.settings.parsing import parse_settings
from afresh.stores.opening import open_store
from afresh.stores.store import Store
from afresh.values.items import Item, ItemQuery

PAGE_BYTES = 40_000
FULL = "the store has reached [store] max_size ="


class LargePages(VirtualSite):
    """Pages that do not get smaller when they are compressed; ``edition`` changes all of them."""

    edition = 0

    def content(self, page: int, version: int) -> bytes:
        del version
        return np.random.default_rng([page, self.edition]).bytes(PAGE_BYTES)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = "sqlite:afresh.db"
    if request.param == "postgres":
        url = schema_url(request.getfixturevalue("postgres_url"), tmp_path)
    with open_store(url, base=tmp_path) as opened:
        yield opened
        assert opened.upkeep.check() == []


def engine_with_room(site: LargePages, folder: Path, store: Store, pages: float) -> tuple[Engine, int]:
    """An engine with the pages of ``site`` as items, and the size that its store may have: so many pages."""
    source = "[[source]]\nname = 'web'\ndelay = '0s'\nallow_private = true\nmin_interval = 0\n"
    text = f"[budget]\nrequests = '100/s'\n[plan]\naudit_share = 0\n{source}"
    site.engine(folder, settings=parse_settings(text), store=store).add(site.urls())
    most = store.upkeep.used_bytes() + int(pages * PAGE_BYTES)
    settings = parse_settings(f"[store]\nmax_size = {most}\n{text}")
    return site.engine(folder, settings=settings, store=store), most


def items_of(store: Store) -> list[Item]:
    return sorted(store.items.page(ItemQuery(), 100).items, key=lambda item: item.key)


def copied(store: Store) -> list[str]:
    return [item.key for item in items_of(store) if item.version > 0]


def test_new_items_are_refused_and_nothing_is_lost(tmp_path: Path, store: Store) -> None:
    site = LargePages([0.0] * 60)
    engine, most = engine_with_room(site, tmp_path, store, 50)
    failed = engine.run(once=True).failed
    there = copied(store)
    assert 40 <= len(there) <= 50
    assert store.upkeep.used_bytes() <= most
    assert len(failed.items) == 60 - len(there)
    assert all(FULL in words for words in failed.items.values())
    refused = [item for item in items_of(store) if item.version == 0]
    assert all((item.failures, item.polled_s, item.status) == (1, None, "active") for item in refused)
    assert all(FULL in item.problem for item in refused)

    # Changes of the items that have a copy go on: the versions that they replace make room.
    for site.edition in (1, 2, 3, 4, 5, 6):
        engine.get(there[0], max_age_s=0.0)
    assert len(engine.versions(there[0])) < 7
    newest = engine.get(there[0])
    assert newest is not None
    assert newest.version.number == 7
    assert store.upkeep.used_bytes() <= most
    assert "the store is full" in dict(status_rows(engine.status(), 1.0))["store"]

    # When there is room, the refused items are polled as usual.
    engine.remove(there[:9])
    waiting = [item.key for item in refused][:4]
    for key in waiting:
        assert engine.get(key, max_age_s=0.0) is not None


def test_old_versions_make_room_for_new_copies(tmp_path: Path, store: Store) -> None:
    site = LargePages([0.0] * 40)
    engine, most = engine_with_room(site, tmp_path, store, 90)
    for site.edition in range(6):
        engine.poll_now(site.urls())
        assert engine.run(once=True).failed.items == {}
        assert store.upkeep.used_bytes() <= most
    versions = [len(engine.versions(url)) for url in site.urls()]
    assert 40 <= sum(versions) < 40 * 5
    for page, url in enumerate(site.urls()):
        copy = engine.get(url)
        assert copy is not None
        assert (copy.content, copy.version.number) == (site.content(page, 0), 6)


def test_a_report_whose_content_has_no_room_is_refused_in_words(tmp_path: Path, store: Store) -> None:
    site = LargePages([0.0] * 6)
    engine, _ = engine_with_room(site, tmp_path, store, 4)
    now_s = site.time.now_s()
    reports = [
        Reported(url, now_s, content=site.content(page, 0), media_type="text/plain")
        for page, url in enumerate(site.urls())
    ]
    done = engine.observe(reports)
    stored = copied(store)
    assert 1 <= len(stored) < 4
    assert [answer.result == "recorded" for answer in done.answers] == [url in stored for url in site.urls()]
    assert all(FULL in words for words in done.refused)


def test_a_store_that_never_had_room_refuses_even_the_first_copy(tmp_path: Path, store: Store) -> None:
    site = LargePages([0.0])
    engine, _ = engine_with_room(site, tmp_path, store, 0)
    assert engine.run(once=True).failed.items
    assert copied(store) == []
