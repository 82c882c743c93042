"""Locked and full stores, clocks set back, dead networks, hostile sites: said in words, nothing lost."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.engine.living import CLOCK, LivingSite, engine_for
from tests.servers.hostile import hostile_routes
from tests.servers.site import Site

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.logs import LOGGER
from afresh.engine.mind import accounts
from afresh.engine.run import target_watch
from afresh.engine.run.loop import Loop
from afresh.sources.http.source import HttpSource
from afresh.stores.opening import open_store
from afresh.values.clock import SystemClock
from afresh.values.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreReadOnlyError,
)
from afresh.values.items import ItemQuery
from afresh.values.outcome import Outcome, Refusal


class FlakyStore:
    """A store whose commits fail for a while."""

    def __init__(self, store: Any, errors: Sequence[StoreError]) -> None:
        self._store, self._errors = store, list(errors)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(
        self, outcomes: Sequence[Outcome], state: Mapping[str, bytes | None] | None = None
    ) -> list[Refusal]:
        if self._errors:
            raise self._errors.pop(0)
        refusals: list[Refusal] = self._store.commit(outcomes, state)
        return refusals


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What the engine logs."""
    words: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: words.append(  # type: ignore[method-assign]
        f"{record.getMessage()} {getattr(record, 'fields', {})}"
    )
    LOGGER.addHandler(handler)
    before = LOGGER.level
    LOGGER.setLevel(logging.INFO)
    yield words
    LOGGER.removeHandler(handler)
    LOGGER.setLevel(before)


@pytest.mark.parametrize(
    "error",
    [
        StoreFullError("the disk is full"),
        StoreLockedError("another holds it"),
        StoreReadOnlyError("it may not be written"),
    ],
)
def test_a_store_that_cannot_write_is_waited_for(tmp_path: Path, said: list[str], error: StoreError) -> None:
    with LivingSite([0.0] * 5) as site:
        engine = engine_for(tmp_path)
        with make_engine(engine.settings, store=FlakyStore(engine.store, [error] * 3)) as flaky:
            flaky.add(site.urls())
            assert flaky.run(once=True).polls == 5
            assert all(flaky.get(url) for url in site.urls())
        assert len(site.requests) == 5  # nothing was asked for again
    assert sum("cannot be written" in words for words in said) == 1
    assert any("works again" in words for words in said)


def test_a_second_signal_ends_a_run_whose_store_stays_full(tmp_path: Path, said: list[str]) -> None:
    async def work(loop: Loop) -> None:
        running = asyncio.create_task(loop.run())
        while not any("cannot be written" in words for words in said):
            await asyncio.sleep(0.02)
        loop.stop()
        loop.stop()
        await running

    with LivingSite([0.0] * 3) as site:
        engine = engine_for(tmp_path)
        full = FlakyStore(engine.store, [StoreFullError("the disk is full")] * 1000)
        with make_engine(engine.settings, store=full) as stuck:
            stuck.add(site.urls())
            asyncio.run(work(stuck._loop()))
    assert any("before everything was kept" in words for words in said)


def test_a_damaged_store_ends_the_run(tmp_path: Path) -> None:
    with LivingSite([0.0] * 5) as site:
        engine = engine_for(tmp_path)
        broken = FlakyStore(engine.store, [StoreCorruptError("page 7 is damaged")])
        with make_engine(engine.settings, store=broken) as flaky:
            flaky.add(site.urls())
            with pytest.raises(StoreCorruptError):
                flaky.run(for_s=20.0)


def test_a_store_locked_by_another_process_is_waited_for(tmp_path: Path) -> None:
    with LivingSite([0.0] * 5) as site:
        with engine_for(tmp_path) as engine:
            settings = engine.settings
            engine.add(site.urls())
        other = sqlite3.connect(tmp_path / "afresh.db", isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(1.0, lambda: other.execute("COMMIT"))
        release.start()
        store = open_store("sqlite:afresh.db", base=tmp_path, timeout_s=0.1)
        with make_engine(settings, store=store) as engine:
            assert engine.run(once=True).polls == 5
        release.join()
        other.close()


def test_a_source_that_breaks_spoils_only_its_own_poll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_given: object, **_named: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(HttpSource, "poll", broken)
    with engine_for(tmp_path) as engine:
        engine.add(["http://127.0.0.1:9/"])
        engine.run(once=True)
        assert engine.store.items.by_id([1])[0].problem == "the source itself broke: ZeroDivisionError"


def test_a_defect_of_ours_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_given: object, **_named: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(accounts, "decide", broken)
    with engine_for(tmp_path) as engine:
        engine.add(["http://127.0.0.1:9/"])
        with pytest.raises(ZeroDivisionError):
            engine.run(for_s=20.0)


def test_a_missed_target_is_said_once(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_watch, "TARGET_EVERY_S", 0.5)
    more = "[plan]\naudit_share = 0.5\ntarget = 0.99"
    with LivingSite([20.0] * 10) as site, engine_for(tmp_path, budget="50/s", more=more) as engine:
        engine.add(site.urls())
        engine.run(for_s=3.0)
    assert sum("below the target" in words for words in said) == 1


@dataclass
class SteppingClock(SystemClock):
    """A clock that is set back by an hour when told."""

    back_s: float = 0.0

    def now_s(self) -> float:
        return super().now_s() - self.back_s


def test_a_clock_set_back_is_noticed_and_lived_with(tmp_path: Path, said: list[str]) -> None:
    clock = SteppingClock()
    with LivingSite([2.0] * 5) as site:
        with engine_for(tmp_path, budget="30/s") as engine:
            settings = engine.settings
        with make_engine(settings, tmp_path, clock=clock, seed=1) as engine:
            engine.add(site.urls())
            step = threading.Timer(1.0, lambda: setattr(clock, "back_s", 3600.0))
            step.start()
            done = engine.run(for_s=3.0)
            step.join()
            last = max(item.polled_s or 0.0 for item in engine.store.items.page(ItemQuery(), 10).items)
        assert done.polls > 45  # it went on at the same pace
        assert last < clock.now_s() + 1
    assert any("clock was set back" in words for words in said)


def test_two_engines_on_one_store_never_poll_an_item_twice_at_once(tmp_path: Path) -> None:
    with LivingSite([5.0] * 8) as site:
        with engine_for(tmp_path) as engine:
            engine.add(site.urls())
        threads = [threading.Thread(target=lambda seed=seed: _run(tmp_path, seed)) for seed in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert site.twice == []
        assert len(site.requests) > 50


def test_what_another_engine_polled_a_moment_ago_is_not_polled_again(tmp_path: Path) -> None:
    async def work(first: Engine, second: Engine) -> int:
        loop = second._loop()
        await loop._start()  # it knows of items never polled
        serving = loop._serve()
        await asyncio.to_thread(first.run, once=True)
        async with asyncio.timeout(10):
            while not (chosen := loop.feed.choose(1)):  # first its host is claimed
                await asyncio.sleep(0.01)
        await loop.feed.launch(chosen)
        await loop._finish(serving)
        return len(chosen)

    with (
        LivingSite([0.0] * 4) as site,
        engine_for(tmp_path, budget="1/s") as first,
        engine_for(tmp_path, budget="0.1/s") as second,
    ):
        first.add(site.urls())
        assert asyncio.run(work(first, second)) == 1
        assert len(site.requests) == 4
        assert second.store.leases.open(CLOCK.now_s()) == []


def _run(folder: Path, seed: int) -> None:
    with engine_for(folder, budget="60/s", seed=seed) as engine:
        engine.run(for_s=2.5)


def test_no_network_for_a_while(tmp_path: Path) -> None:
    """The site comes up late: until then failures are in words, then the copies come."""
    with LivingSite([0.0]) as gone:
        port = gone.port
    urls = [f"http://127.0.0.1:{port}/p/{page}" for page in range(3)]
    more = '[run]\nretry_first = "0.2s"\nretry_longest = "0.5s"'
    with engine_for(tmp_path, more=more, source='longest_rest = "0.5s"\nrespect_robots = false') as engine:
        engine.add(urls)
        engine.run(for_s=1.5)
        items = engine.store.items.page(ItemQuery(), 10).items
        assert all(item.problem for item in items)
        assert all(item.status == "active" and item.version == 0 for item in items)
        with LivingSite([0.0] * 3, port=port):
            engine.run(for_s=3.0)
        items = engine.store.items.page(ItemQuery(), 10).items
        assert all(item.version == 1 and not item.problem and not item.failures for item in items)


def on_a_site(routes: Mapping[str, Any], work: Callable[[str], None]) -> None:
    """Run ``work(url)`` in a thread while a site serves ``routes``."""

    async def serve() -> None:
        async with Site(routes) as site:
            await asyncio.to_thread(work, site.url)

    asyncio.run(serve())


def test_a_hostile_site_is_reported_per_item_in_words(tmp_path: Path) -> None:
    routes = hostile_routes()
    limits = 'connect_timeout = "0.5s"\nidle_timeout = "0.5s"\ntimeout = "1.5s"\n'
    limits += 'max_size = "1MB"\nqueue_time = "5s"\nlongest_rest = "0.2s"\n'

    def work(url: str) -> None:
        more = '[run]\nretry_first = "1h"'
        with engine_for(tmp_path, more=more, source=limits) as engine:
            engine.add(url + path for path in routes if path != "/robots.txt")
            engine.run(for_s=25.0, once=True)
            items = engine.store.items.page(ItemQuery(), 100).items
            for item in items:
                assert item.polls >= 1, item.key
                # Either it has a copy, or the store says in one line why not.
                assert item.version or (item.problem and "\n" not in item.problem), item
            assert engine.store.upkeep.check() == []

    on_a_site(routes, work)
