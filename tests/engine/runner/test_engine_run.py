"""Locked and full stores, clocks set back, dead networks, hostile sites: said in words, nothing lost."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.engine.living import engine_for
from tests.engine.run_through import run_through
from tests.engine.virtual_site import VirtualSite
from tests.servers.hostile import hostile_routes
from tests.servers.site import Site
from tests.virtual_time import pass_time

from afresh.engine.engine import Engine
from afresh.engine.logs import LOGGER
from afresh.engine.runner import store_watcher
from afresh.engine.runner.engine_run import Run
from afresh.engine.runner.run_context import StopSignal
from afresh.engine.scheduler import poll_recorder
from afresh.engine.scheduler.restore import unpack_learned
from afresh.engine.state_names import LEARNED
from afresh.sources.http.fetcher import Reply
from afresh.sources.http.source import HttpSource
from afresh.stores.opening import open_store
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
    with VirtualSite([0.0] * 5) as site:
        store = open_store("memory:")
        with site.engine(tmp_path, store=FlakyStore(store, [error] * 3)) as flaky:
            flaky.add(site.urls())
            assert flaky.run(once=True).polls == 5
            assert all(flaky.get(url) for url in site.urls())
        assert len(site.requests) == 5  # nothing was asked for again
    assert sum("cannot be written" in words for words in said) == 1
    assert any("works again" in words for words in said)


def test_a_second_signal_ends_a_run_whose_store_stays_full(tmp_path: Path, said: list[str]) -> None:
    async def work(engine: Engine) -> None:
        stop = StopSignal()
        running = asyncio.create_task(run_through(engine, stop=stop))
        while not any("cannot be written" in words for words in said):
            await pass_time(0.1)
        stop.request()
        stop.request()
        await running

    with VirtualSite([0.0] * 3) as site:
        full = FlakyStore(open_store("memory:"), [StoreFullError("the disk is full")] * 1000)
        with site.engine(tmp_path, store=full) as stuck:
            stuck.add(site.urls())
            site.time.run(work(stuck))
    assert any("before everything was saved" in words for words in said)


def test_a_damaged_store_ends_the_run(tmp_path: Path) -> None:
    with VirtualSite([0.0] * 5) as site:
        broken = FlakyStore(open_store("memory:"), [StoreCorruptError("page 7 is damaged")])
        with site.engine(tmp_path, store=broken) as flaky:
            flaky.add(site.urls())
            with pytest.raises(StoreCorruptError):
                flaky.run(for_s=20.0)


def test_a_store_locked_by_another_process_is_waited_for(tmp_path: Path, said: list[str]) -> None:
    async def work(engine: Engine) -> Run:
        running = asyncio.create_task(run_through(engine, once=True))
        while not any("cannot be written" in words for words in said):
            await pass_time(0.1)
        other.execute("COMMIT")
        return await running

    with VirtualSite([0.0] * 5) as site:
        with site.engine(tmp_path) as engine:
            engine.add(site.urls())
        other = sqlite3.connect(tmp_path / "afresh.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        store = open_store("sqlite:afresh.db", base=tmp_path, timeout_s=0.01)
        with site.engine(tmp_path, store=store) as engine:
            run = site.time.run(work(engine))
            assert run.progress().polls == 5
        other.close()
    assert any("works again" in words for words in said)


def test_a_run_for_a_time_ends_although_the_store_cannot_be_written(tmp_path: Path, said: list[str]) -> None:
    with VirtualSite([0.0] * 5) as site:
        full = FlakyStore(open_store("memory:"), [StoreFullError("the disk is full")] * 1_000_000)
        with site.engine(tmp_path, store=full) as engine:
            engine.add(site.urls())
            began_s = site.time.elapsed_s()
            with pytest.raises(StoreError, match="the disk is full"):
                engine.run(for_s=20.0)
            assert 80.0 <= site.time.elapsed_s() - began_s < 90.0  # drain_timeout is a minute
    assert any("stopped before everything was saved" in words for words in said)


def test_a_run_for_a_time_ends_although_the_store_is_locked(tmp_path: Path) -> None:
    with VirtualSite([0.0] * 5) as site:
        with site.engine(tmp_path) as engine:
            engine.add(site.urls())
        other = sqlite3.connect(tmp_path / "afresh.db", isolation_level=None)
        store = open_store("sqlite:afresh.db", base=tmp_path, timeout_s=0.01)
        with site.engine(tmp_path, store=store) as engine:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreLockedError):
                engine.run(for_s=20.0)
            other.execute("ROLLBACK")
            assert engine.run(for_s=20.0).polls >= 5
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
        assert engine.store.items.by_id([1])[0].problem == "the source raised ZeroDivisionError"


def test_a_defect_of_ours_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_given: object, **_named: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(poll_recorder, "decide", broken)
    with engine_for(tmp_path) as engine:
        engine.add(["http://127.0.0.1:9/"])
        with pytest.raises(ZeroDivisionError):
            engine.run(for_s=20.0)


def test_a_missed_target_is_said_once(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_watcher, "TARGET_EVERY_S", 0.5)
    more = "[plan]\naudit_share = 0.5\ntarget = 0.99"
    with VirtualSite([20.0] * 10) as site, site.engine(tmp_path, budget="50/s", more=more) as engine:
        engine.add(site.urls())
        engine.run(for_s=3.0)
    assert sum("below the target" in words for words in said) == 1


def test_a_missed_content_lag_is_said_once_and_shown(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_watcher, "TARGET_EVERY_S", 0.5)
    more = '[plan]\nobjective = "lag"\naudit_share = 0.0\ntarget = "lag=0.01s"'
    with VirtualSite([1.0] * 10) as site, site.engine(tmp_path, budget="10/s", more=more) as engine:
        engine.add(site.urls())
        engine.run(for_s=20.0)
        status = engine.status()
    # Pages that change once a second, polled every second: 1/6 on average, 1/2 just before a poll.
    assert 0.05 < status.content_lag_s < 1.0
    assert (status.target, status.content_lag_target_s, status.above_content_lag_target) == (None, 0.01, True)
    assert sum("content lag is above the target" in words for words in said) == 1


def test_notices_that_wait_for_a_restart_keep_their_origin(tmp_path: Path) -> None:
    with VirtualSite([0.0] * 3) as site:
        with site.engine(tmp_path) as first:
            first.add(site.urls())
            assert first.run(once=True).polls == 3
            assert first.notice(site.urls()[:1]) == ()
            first.store.notices.add([2, 3], site.time.now_s(), "feed")
        with site.engine(tmp_path) as second:
            second.run(for_s=5.0)
            learned = unpack_learned(second.store.state.get(LEARNED))
            assert second.store.notices.open() == []
    assert learned is not None
    assert learned["notices.sources"].tolist() == ["webhook", "feed"]
    assert learned["notices.followed"].tolist() == [1.0, 2.0]
    assert learned["notices.host_counts"].shape == (1, 5, 2)  # one host, two origins


def test_a_clock_set_back_is_noticed_and_lived_with(tmp_path: Path, said: list[str]) -> None:
    async def work(engine: Engine) -> int:
        running = asyncio.create_task(run_through(engine, for_s=3.0))
        await pass_time(1.0)
        site.time.set_back_s = 3600.0
        return (await running).progress().polls

    with VirtualSite([2.0] * 5) as site:
        with site.engine(tmp_path, budget="30/s") as engine:
            engine.add(site.urls())
            polls = site.time.run(work(engine))
            last = max(item.polled_s or 0.0 for item in engine.store.items.page(ItemQuery(), 10).items)
        assert polls >= 80  # it went on at the same pace
        assert last < site.time.now_s() + 1
    assert any("clock was set back" in words for words in said)


@pytest.mark.parametrize("burst", [1, 10])
def test_two_engines_on_one_store_keep_the_budget_and_the_delays_together(tmp_path: Path, burst: int) -> None:
    more = f'burst = {burst}\n[run]\nclaim = "0.5s"'
    manners: dict[str, Any] = {"budget": "40/s", "source": 'delay = "0.08s"', "more": more}

    async def work(*engines: Engine) -> None:
        await asyncio.gather(*(run_through(engine, for_s=2.5) for engine in engines))

    with (
        VirtualSite([5.0] * 8, hosts=4) as site,
        site.engine(tmp_path, **manners) as first,
        site.engine(tmp_path, seed=2, **manners) as second,
    ):
        first.add(site.urls())
        site.time.run(work(first, second))
        assert site.twice == []
        assert len(site.requests) > 50
        assert site.most_over_budget(40.0, jitter_s=0.003) <= burst - 1
        for host in range(4):
            times_s = [time_s for time_s, path in site.requests if site.host_of(path) == host]
            assert min(later - sooner for sooner, later in pairwise(times_s)) > 0.079


def test_what_another_engine_polled_a_moment_ago_is_not_polled_again(tmp_path: Path) -> None:
    async def work(first: Engine, second: Engine) -> int:
        run = await second.open_run()  # it knows of items never polled
        claiming = asyncio.create_task(run.context.member.claims.run(run.context.sources.inherit))
        await run_through(first, once=True)
        async with asyncio.timeout(60):
            while not (chosen := run.dispatcher.choose(1)):  # first its host is claimed
                await pass_time(0.01)
        await run.dispatcher.launch(chosen)
        claiming.cancel()
        await run.close()
        return len(chosen)

    with (
        VirtualSite([0.0] * 4) as site,
        site.engine(tmp_path, budget="1/s") as first,
        site.engine(tmp_path, budget="0.1/s") as second,
    ):
        first.add(site.urls())
        assert site.time.run(work(first, second)) == 1
        assert len(site.requests) == 4
        assert second.store.leases.open(site.time.now_s()) == []


def test_no_network_for_a_while(tmp_path: Path) -> None:
    """The site comes up late: until then failures are in words, then the copies come."""
    site = VirtualSite([0.0] * 3)
    site.down = Reply(trouble="connect", problem="cannot connect: refused")
    more = '[run]\nretry_first = "0.2s"\nretry_longest = "0.5s"'
    with site.engine(tmp_path, more=more, source='longest_rest = "0.5s"\nrespect_robots = false') as engine:
        engine.add(site.urls())
        engine.run(for_s=1.5)
        items = engine.store.items.page(ItemQuery(), 10).items
        assert all(item.problem for item in items)
        assert all(item.status == "active" and item.version == 0 for item in items)
        site.down = None
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
            engine.run(once=True)
            items = engine.store.items.page(ItemQuery(), 100).items
            for item in items:
                assert item.polls >= 1, item.key
                # Either it has a copy, or the store says in one line why not.
                assert item.version or (item.problem and "\n" not in item.problem), item
            assert engine.store.upkeep.check() == []

    on_a_site(routes, work)
