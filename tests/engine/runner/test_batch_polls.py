"""A relation behind a search box kept fresh by the whole engine, as the site itself counts it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import Response
from fastapi.responses import HTMLResponse
from tests.engine.run_through import run_through
from tests.engine.virtual_search import VirtualSearchSite
from tests.servers.search_rivals import RIVALS
from tests.servers.search_site import Fts5Finder, SearchSite, search_source
from tests.sources.searching import World, make_world, write_relation
from tests.virtual_time import VirtualTime

from afresh.cli.engine.status_commands import status_rows
from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.runner.engine_run import RunProgress
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.state_names import SOURCE_STATE
from afresh.sources.search.saved_records import read_state
from afresh.values.items import Item, ItemChange, ItemQuery

RATE = 60.0


def living_world(folder: Path, **given: Any) -> tuple[World, VirtualSearchSite]:
    """A relation and the site that has its records, in a time of their own."""
    time = VirtualTime()
    world = make_world(folder, **{"count": 300, "own": 30, "lasts_s": 60.0, "begin_s": time.now_s()} | given)
    return world, VirtualSearchSite(world.papers, time.now_s, time=time)


def engine_on(
    world: World, site: VirtualSearchSite, folder: Path, more: str = "", *, look_ups: bool = True
) -> Engine:
    """An engine with the relation as its only source."""
    own = f'first_rest = "0.3s"\nlistings_every = "0.5s"\n{more}'
    source = search_source(site.url, world.relation, own)
    if not look_ups:
        source = "\n".join(line for line in source.splitlines() if not line.startswith("look_up"))
    settings = parse_settings(f'[budget]\nrequests = "{RATE}/s"' + source)
    return make_engine(
        settings,
        folder,
        seed=1,
        clock=site.time,
        new_loop=site.time.new_loop,
        new_fetcher=lambda *_given: site,
    )


def items_of(engine: Engine) -> dict[str, Item]:
    return {item.key: item for item in engine.store.items.page(ItemQuery(), 1000).items}


def copied_of(engine: Engine, world: World) -> set[str]:
    return {key for key, item in items_of(engine).items() if key in world.keys and item.version > 0}


def run_until(engine: Engine, done: Callable[[], bool]) -> None:
    """Run in slices until something is so."""
    for _ in range(20):
        engine.run(for_s=1.2)
        if done():
            return
    raise AssertionError("waited in vain")


def rival_lag(name: str, world: World, times_s: list[float], begin_s: float, end_s: float) -> float:
    """The lag of a rival that sends its requests at the very same times."""
    site = SearchSite(world.papers, VirtualTime().now_s)
    site.searches(Fts5Finder(world.papers))
    asked = RIVALS[name](world.papers, world.own, RATE)
    for at_s, (query, page) in zip(times_s, asked, strict=False):
        site.search(query, page, at_s) if page else site.paper(query, at_s)
    return site.lag(world.own, begin_s, end_s)


def test_content_lag_is_below_that_of_all_rivals_at_the_same_budget(tmp_path: Path) -> None:
    world, made = living_world(tmp_path, count=900, own=90, lasts_s=30.0, mean_rate=0.5)
    with made as site:
        with engine_on(world, site, tmp_path) as engine:
            started_s = site.time.now_s()
            engine.run(for_s=4.0)
            items = items_of(engine)
            assert set(items) == set(world.keys)
            assert all(item.polled_s is not None for item in items.values())
            assert engine.store.upkeep.check() == []
        window = started_s + 2.2, started_s + 4.0
        ours = site.lag(world.own, *window)
        times_s = [time_s for time_s, _ in site.requests]
        assert len(times_s) <= RATE * 4.2 + RATE
    rivals = {name: rival_lag(name, world, times_s, *window) for name in RIVALS}
    assert ours < min(rivals.values()), (ours, rivals)


def test_status_tells_what_was_reached_and_how_large_the_server_is(tmp_path: Path) -> None:
    world, made = living_world(tmp_path)
    with made as site, engine_on(world, site, tmp_path) as engine:
        assert engine.status().searches == ()
        run_until(engine, lambda: len(copied_of(engine, world)) > 0.8 * len(world.keys))
        (found,) = engine.status().searches
        assert (found.source, found.records) == ("papers", len(world.keys))
        assert 0.8 * len(world.keys) < found.seen <= found.records
        assert 0 < found.by_queries <= found.seen
        assert 0 < found.queries <= found.sent
        assert found.sent + found.look_ups == len(site.requests)
        assert {scale.attribute for scale in found.scales} <= {"authors", "title"}
        words = dict(status_rows(engine.status(), RATE))["  papers"]
        assert f"{found.seen} of {found.records} records reached, {found.by_queries} by queries" in words


def test_a_captcha_rests_the_source_in_words_and_loses_nothing(tmp_path: Path) -> None:
    world, made = living_world(tmp_path)
    with made as site:
        with engine_on(world, site, tmp_path) as engine:
            run_until(engine, lambda: len(copied_of(engine, world)) > 0.8 * len(world.keys))
            copied = copied_of(engine, world)
        site.trouble = lambda _path, _values: HTMLResponse("<html>Are you a robot?</html>")
        asked = len(site.requests)
        with engine_on(world, site, tmp_path, 'longest_rest = "0.6s"') as engine:
            engine.run(for_s=1.5)
            assert all(engine.get(key) is not None for key in copied)
            items = items_of(engine)
            assert {item.status for item in items.values()} == {"active"}
            words = {item.problem for item in items.values() if item.problem}
            assert words == {"HTML instead of JSON: a captcha, a log-in or an error page"}
        assert len(site.requests) == asked  # the odd answers are not among them
        site.trouble = None
        with engine_on(world, site, tmp_path) as engine:
            run_until(engine, lambda: len(site.requests) > asked + 20)
            assert engine.store.upkeep.check() == []


def test_records_that_leave_the_server_or_the_relation_are_gone(tmp_path: Path) -> None:
    world, made = living_world(tmp_path)
    patience = 'missing_polls = 1\nmissing_time = "0s"'
    with made as site:
        site.hidden.add(world.keys[2])
        with engine_on(world, site, tmp_path, patience) as engine:
            run_until(engine, lambda: items_of(engine)[world.keys[2]].status == "gone")
            items = items_of(engine)
            assert "the server no longer has a record with this key" in items[world.keys[2]].problem
            assert items[world.keys[0]].status == "active"
        other = next(paper for paper in range(len(world.papers)) if paper not in world.own)
        write_relation(world, [*world.own[1:], other])
        with engine_on(world, site, tmp_path, patience) as engine:
            run_until(engine, lambda: items_of(engine)[world.keys[0]].status == "gone")
            assert "the relation has no record with this key" in items_of(engine)[world.keys[0]].problem
            run_until(engine, lambda: engine.get(f"p{other}") is not None)
            assert items_of(engine)[f"p{other}"].status == "active"


def test_a_run_once_without_look_ups_ends_with_a_record_that_the_server_lacks(tmp_path: Path) -> None:
    world, made = living_world(tmp_path)
    with world.relation.open("a") as file:
        file.write("lost,unwritten paper,Nobody\n")
    with made as site, engine_on(world, site, tmp_path, look_ups=False) as engine:
        started_s = site.time.now_s()
        engine.run(once=True, for_s=60.0)
        assert site.time.now_s() < started_s + 30.0
        lost = items_of(engine)["lost"]
        assert (lost.status, lost.polls, lost.failures) == ("active", 1, 1)
        assert "the server no longer has a record with this key" in lost.problem
        asked = len(site.requests)
        engine.run(for_s=3.0)
        again = [what for _, what in site.requests[asked:] if "Nobody" in what]
        assert len(again) <= 1 < len(site.requests) - asked


def test_the_weights_of_items_reach_the_source(tmp_path: Path) -> None:
    world, made = living_world(tmp_path)
    heavy, paused = world.keys[7], world.keys[9]
    with made as site, engine_on(world, site, tmp_path) as engine:
        engine.run(for_s=1.0)
        engine.set([heavy], ItemChange(weight=1e5))
        engine.set([paused], ItemChange(status="paused"))
        before, asked = items_of(engine), len(site.requests)
        engine.run(for_s=3.0)
        polls = {key: item.polls - before[key].polls for key, item in items_of(engine).items()}
        # Queries that show the heavy item show its neighbours too, so that these are polled often as well.
        assert polls.pop(heavy) > 1.5 * max(polls.values())
        assert polls[paused] == 0
        assert paused not in [what for _, what in site.requests[asked:]]


def test_two_workers_share_what_they_learned_of_queries(tmp_path: Path) -> None:
    world, made = living_world(tmp_path)
    more = '[run]\nclaim = "0.3s"'
    with (
        made as site,
        engine_on(world, site, tmp_path, more) as one,
        engine_on(world, site, tmp_path, more) as other,
    ):
        # One after the other: of two that end in the same instant the later one goes over the earlier one's.
        async def run() -> None:
            await asyncio.gather(run_through(one, for_s=3.0), run_through(other, for_s=4.0))

        site.time.run(run())
        notes = read_state(one.store.state.get(SOURCE_STATE + "papers") or b"")
        polled = {key for key, item in items_of(one).items() if item.polled_s is not None}
        assert one.store.upkeep.check() == []
    asked = {what.rpartition(" ")[0] for _, what in site.requests if " " in what}
    assert len(notes.queries) == len(asked)
    assert {note.key for note in notes.records} == polled


@pytest.mark.parametrize("bad", ["", "id,title\n", "key,title,authors\n1,a,b\n"])
def test_a_bad_relation_is_refused_in_words(tmp_path: Path, bad: str) -> None:
    world, made = living_world(tmp_path)
    world.relation.write_text(bad)
    with made as site, engine_on(world, site, tmp_path) as engine:
        with pytest.raises(ValueError, match=r"relation\.csv: (is empty|has no column)"):
            engine.run(for_s=1.0)
        assert not site.requests


def test_a_relation_that_breaks_under_a_running_engine_is_said_and_nothing_lost(tmp_path: Path) -> None:
    world, made = living_world(tmp_path)
    with made as site, engine_on(world, site, tmp_path) as engine:
        engine.run(for_s=1.2)
        whole = world.relation.read_text()

        def breaks(_: RunProgress) -> None:
            world.relation.write_text("id,title,authors\np1,a,b\np1,c,d\n")

        engine.run(for_s=3.0, report=breaks)
        (trouble,) = engine.status().troubles
        assert "'p1' occurs twice" in trouble.problem
        assert "the records read before are kept" in trouble.problem
        assert all(item.status == "active" for item in items_of(engine).values())
        reasons = " ".join(engine.why(next(iter(world.keys))).reasons)
        assert "the highest total poll value" in reasons
        assert "dropped" not in reasons
        world.relation.write_text(whole)
        run_until(engine, lambda: engine.status().troubles == ())


def test_one_item_can_be_refreshed_at_once(tmp_path: Path) -> None:
    world, made = living_world(tmp_path)
    with made as site:
        odd: list[str] = []

        def watched(path: str, values: dict[str, str]) -> Response | None:
            odd.append(values.get("key", path))
            return None

        site.trouble = watched
        with engine_on(world, site, tmp_path) as engine:
            engine.run(for_s=1.0)
            odd.clear()
            copy = engine.get(world.keys[5], max_age_s=0.0)
            assert copy is not None
            assert odd == [world.keys[5]]
