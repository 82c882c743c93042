"""The search source on a real site: less lag than its rivals, and every problem is described."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import Response
from fastapi.responses import HTMLResponse, JSONResponse
from tests.servers.postgres import PostgresServer
from tests.servers.search_rivals import RIVALS
from tests.servers.search_site import PAGE, Finder, Fts5Finder, PostgresFinder, SearchSite
from tests.sources.polling import SetClock
from tests.sources.searching import Desk, World, make_world, search_source, with_source, write_relation

from afresh.sources.search.saved_records import read_state
from afresh.sources.search.source import SearchSource

RATE = 20.0  # requests per second of the site's time


@pytest.fixture
def clock() -> SetClock:
    return SetClock(0.0)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


@pytest.fixture
def site(world: World, clock: SetClock) -> Iterator[SearchSite]:
    with SearchSite(world.papers, clock.now_s) as running:
        yield running


def rival_lag(name: str, world: World, finder: Finder, requests: int) -> float:
    """The lag of a rival with so many requests, each at its moment."""
    site = SearchSite(world.papers, lambda: 0.0)
    site.searches(finder)
    asked = RIVALS[name](world.papers, world.own, RATE)
    for number in range(requests):
        query, page = next(asked)
        site.search(query, page, number / RATE) if page else site.paper(query, number / RATE)
    return site.lag(world.own, requests / RATE / 3, requests / RATE)


def ask_on(world: World, site: SearchSite, clock: SetClock, requests: int, **changes: Any) -> Desk:
    """So many requests, at the pace of the site's time."""

    async def work(source: SearchSource, desk: Desk) -> Desk:
        while len(site.requests) < requests:
            clock.time_s = len(site.requests) / RATE
            await desk.ask(source)
        return desk

    return with_source(world, site, clock, work, **changes)


@pytest.mark.parametrize("backend", ["fts5", "postgres"])
def test_content_lag_is_below_that_of_all_rivals_with_as_many_requests(
    tmp_path: Path, clock: SetClock, backend: str, request: pytest.FixtureRequest
) -> None:
    world = make_world(tmp_path, count=600, own=60, lasts_s=10.0)
    finder: Finder = Fts5Finder(world.papers)
    if backend == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        finder = PostgresFinder(world.papers, server.url(request.getfixturevalue("database")))
    with SearchSite(world.papers, clock.now_s, finder) as site:
        ask_on(world, site, clock, 200)
        ours = site.lag(world.own, 10.0 / 3, 10.0)
        rivals = {name: rival_lag(name, world, finder, 200) for name in RIVALS}
    assert ours < 0.7 * min(rivals.values()), (ours, rivals)


def test_every_record_is_refreshed_by_few_requests(world: World, site: SearchSite, clock: SetClock) -> None:
    async def cover(source: SearchSource, desk: Desk) -> Desk:
        while len(desk.fetched) < len(world.own):
            await desk.ask(source)
        return desk

    desk = with_source(world, site, clock, cover)
    assert desk.requests == len(site.requests)  # every one is paid for by somebody, or by the next
    assert len(site.requests) < 0.7 * len(world.own)
    for key, one in desk.fetched.items():
        assert one.is_successful
        if one.kind == "content":
            assert json.loads(one.content or b"") == {"cites": world.papers.citations(int(key[1:]), 0.0)}


def test_a_change_is_a_change_of_the_fields_alone(world: World, site: SearchSite, clock: SetClock) -> None:
    desk = ask_on(world, site, clock, 100)
    kinds = Counter(one.kind for one in desk.fetched.values())
    assert set(kinds) == {"content", "unchanged"}
    assert kinds["unchanged"] > 0


def test_a_lead_that_is_brought_again_and_again_is_asked_for(
    world: World, site: SearchSite, clock: SetClock
) -> None:
    lead = world.keys[-1]

    async def insist(source: SearchSource, desk: Desk) -> int:
        for _ in range(60):
            await desk.ask(source)
        for turn in range(1, 20):
            clock.time_s += 1e-6
            if lead in await desk.ask(source, lead):
                return turn
        return 99

    assert with_source(world, site, clock, insist) <= 9


def test_a_record_leased_elsewhere_is_not_chosen_again_at_once(
    world: World, site: SearchSite, clock: SetClock
) -> None:
    async def nobody_has_them(source: SearchSource, _desk: Desk) -> list[set[str]]:
        chosen = []
        for _ in range(3):
            batch = await source.choose(world.keys[0])
            chosen.append(set(batch.keys))
            assert await source.poll_batch(batch, []) == []
        return chosen

    first, second, _ = with_source(world, site, clock, nobody_has_them)
    assert first
    assert not first & second
    assert not site.requests


def test_records_that_came_with_others_are_handed_out_without_a_request(
    world: World, site: SearchSite, clock: SetClock
) -> None:
    async def only_one_leased(source: SearchSource, desk: Desk) -> set[str]:
        for _ in range(20):
            batch = await source.choose(world.keys[0])
            await source.poll_batch(batch, [desk.leases[batch.keys[0]]])
            asked = len(site.requests)
            came = await desk.ask(source)
            if len(site.requests) == asked:
                return set(came)
        return set()

    came = with_source(world, site, clock, only_one_leased)
    assert came
    assert came <= set(world.keys)


def test_a_record_that_is_gone_is_reported_and_put_off(
    world: World, site: SearchSite, clock: SetClock
) -> None:
    key = world.keys[3]
    site.hidden.add(key)
    desk = ask_on(world, site, clock, 120)
    assert desk.fetched[key].kind == "gone"
    assert desk.fetched[key].problem == "the server no longer has a record with this key"
    assert sum(asked == key for _, asked in site.requests) <= 3
    assert all(desk.fetched[other].is_successful for other in world.keys if other != key)


TROUBLES = {
    "captcha": (HTMLResponse("<html>Are you a robot?</html>"), "HTML instead of JSON: a captcha"),
    "500": (JSONResponse({"error": "oops"}, 500), "500 Internal Server Error"),
    "429": (JSONResponse({}, 429, {"Retry-After": "77"}), "429 Too Many Requests"),
    "not JSON": (Response(b'{"count": 3', media_type="application/json"), "not JSON: it begins with"),
    "wrong rows": (JSONResponse({"hits": []}), "rows: 'data' is no list in the answer, which has hits"),
    "wrong key": (
        JSONResponse({"count": 1, "data": [{"uid": 7}]}),
        'key_path: "id" is no text or number in a row, which has uid',
    ),
    "odd total": (JSONResponse({"count": "many", "data": {}}), "rows: 'data' is no list in the answer"),
    "403": (JSONResponse({}, 403), "403 Forbidden"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_server_with_a_problem_backs_off_with_a_reason_and_is_asked_again_later(
    world: World, site: SearchSite, clock: SetClock, trouble: str
) -> None:
    answer, words = TROUBLES[trouble]
    site.trouble = lambda _path, _values: answer

    async def fall_and_rise(source: SearchSource, desk: Desk) -> None:
        came = await desk.ask(source)
        assert {one.kind for one in came.values()} == {"refused" if trouble == "403" else "failed"}
        assert all(words in one.problem for one in came.values())
        assert sum(one.requests for one in came.values()) == 1
        rest = source.backoffs()[0]
        assert words in rest.why
        ready_s = source.ready_s("papers", clock.time_s)
        assert ready_s >= clock.time_s + (77.0 if trouble == "429" else 10.0)
        later = search_source(world, site, clock)
        later.load_state(source.save_state(), source.backoffs())
        assert later.ready_s("papers", clock.time_s) >= ready_s - 0.01
        site.trouble = None
        clock.time_s = ready_s
        assert all(one.kind == "content" for one in (await desk.ask(source)).values())
        assert source.ready_s("papers", clock.time_s) == clock.time_s
        await later.close()

    with_source(world, site, clock, fall_and_rise)


def test_back_offs_grow_while_the_server_stays_down(world: World, site: SearchSite, clock: SetClock) -> None:
    site.trouble = lambda _path, _values: JSONResponse({}, 500)

    async def down(source: SearchSource, desk: Desk) -> list[float]:
        waits = []
        for _ in range(4):
            await desk.ask(source)
            waits.append(source.ready_s("papers", clock.time_s) - clock.time_s)
            clock.time_s += waits[-1]
        return waits

    assert with_source(world, site, clock, down) == [10.0, 20.0, 40.0, 80.0]


def test_endless_pages_and_wrong_totals_waste_few_requests(
    world: World, site: SearchSite, clock: SetClock
) -> None:
    """Every page is the first, and each claims a million results."""

    def endless(path: str, values: dict[str, str]) -> Response | None:
        if path != "/search":
            return None
        return JSONResponse(site.search(values["q"], 1) | {"count": 1_000_000})

    site.trouble = endless
    desk = ask_on(world, site, clock, 150)
    assert all(key in desk.fetched and desk.fetched[key].is_successful for key in world.keys)


def test_totals_that_are_too_small_or_missing_still_reach_every_record(
    world: World, site: SearchSite, clock: SetClock
) -> None:
    site.trouble = lambda path, values: (
        JSONResponse({"data": site.search(values["q"], int(values["page"]))["data"]})
        if path == "/search"
        else None
    )
    desk = ask_on(world, site, clock, 120)
    assert all(key in desk.fetched and desk.fetched[key].is_successful for key in world.keys)


def test_two_different_records_of_one_key_are_refused(
    world: World, site: SearchSite, clock: SetClock
) -> None:
    key = world.keys[0]

    def twice(_path: str, _values: dict[str, str]) -> Response:
        rows = [{"id": key, "metrics": {"cites": number}} for number in (1, 2)]
        return JSONResponse({"count": 2, "data": rows})

    site.trouble = twice
    found = with_source(world, site, clock, lambda source, desk: source.poll(desk.leases[key]))
    assert found.kind == "failed"
    assert found.problem == "2 different records have this key in one answer: it must be unique"


def test_a_field_that_is_no_number_or_missing_is_reported(
    world: World, site: SearchSite, clock: SetClock
) -> None:
    async def poll(source: SearchSource, desk: Desk) -> str:
        await source.poll(desk.leases[world.keys[0]])
        clock.time_s += 1.0
        found = await source.poll(desk.leases[world.keys[0]])
        assert found.kind == "failed"
        return found.problem

    words = with_source(world, site, clock, poll, fields={"title": "absolute"}, paths={})
    assert "is not a number: use the dissimilarity unequal for texts" in words
    words = with_source(world, site, clock, poll, fields={"price": "absolute"}, paths={})
    assert words == "the server's record has none of price"


def test_without_look_ups_a_record_is_found_by_its_own_keywords(
    world: World, site: SearchSite, clock: SetClock
) -> None:
    desk = ask_on(world, site, clock, 150, look_up="")
    assert all(path.startswith(("authors:", "title:")) for _, path in site.requests)
    tells = sum(key in desk.fetched and desk.fetched[key].is_successful for key in world.keys)
    assert tells >= 0.95 * len(world.keys)


def test_what_was_learned_outlives_the_process(world: World, site: SearchSite, clock: SetClock) -> None:
    async def learn(source: SearchSource, desk: Desk) -> bytes:
        while len(site.requests) < 150:
            clock.time_s = len(site.requests) / RATE
            await desk.ask(source)
        return source.save_state()

    notes = with_source(world, site, clock, learn)
    again = search_source(world, site, clock)
    again.load_state(notes)
    assert json.loads(again.save_state()) == json.loads(notes)
    again.load_state(b'{"v": 99, "records": [1]}')  # of another version: passed over
    assert json.loads(again.save_state()) == json.loads(notes)


def test_workers_learn_from_each_other(world: World, site: SearchSite, clock: SetClock) -> None:
    async def learn(source: SearchSource, desk: Desk) -> bytes:
        first = len(site.requests)
        while len(site.requests) < first + 60:
            clock.time_s = len(site.requests) / RATE
            await desk.ask(source)
        return source.save_state()

    one, other = (read_state(with_source(world, site, clock, learn)) for _ in range(2))
    both = search_source(world, site, clock)
    for notes in (other, one, other):  # in any order, and twice: what is newer stays
        both.load_state(notes.pack())
    found = read_state(both.save_state())
    newest = {query.words: query for query in (*one.queries, *other.queries)}
    assert {query.words: query for query in found.queries} == newest
    seen = {note.key: note for note in (*one.records, *other.records)}
    assert {note.key: note for note in found.records} == seen
    assert sum(scale.totals for scale in found.scales) >= max(
        sum(scale.totals for scale in notes.scales) for notes in (one, other)
    )


def test_heavier_records_are_refreshed_more_often_and_those_of_weight_0_never(
    world: World, site: SearchSite, clock: SetClock
) -> None:
    heavy, nothing = world.keys[7], world.keys[9]
    weights = np.array([{heavy: 1e4, nothing: 0.0}.get(key, 1.0) for key in world.keys])

    async def work(source: SearchSource, desk: Desk) -> Counter[str]:
        asked: Counter[str] = Counter()
        while len(site.requests) < 150:
            clock.time_s = len(site.requests) / RATE
            assert list(source.keys()) == world.keys
            asked.update(list(await desk.ask(source, world.keys[0], weights)))
        return asked

    asked = with_source(world, site, clock, work, fields={"cites": "unequal"})
    assert asked[heavy] > 2 * max(count for key, count in asked.items() if key != heavy)
    looked_up = [what for _, what in site.requests if " " not in what]
    assert nothing not in looked_up


def test_the_relation_is_read_again_when_it_was_written(
    world: World, site: SearchSite, clock: SetClock
) -> None:
    async def keys_listed(source: SearchSource) -> tuple[set[str], bool, str]:
        found = [listing async for listing in source.listings()]
        return {entry.key for entry in found[0].entries}, found[0].complete, found[0].problem

    async def rewrite(source: SearchSource, desk: Desk) -> None:
        assert (await keys_listed(source))[0] == set(world.keys)
        await desk.ask(source)
        write_relation(world, [*world.own[1:], 0])
        keys, complete, _ = await keys_listed(source)
        assert keys == {*world.keys[1:], "p0"}
        assert complete
        assert read_state(source.save_state()).queries  # what was learned of queries is kept
        gone = await source.poll(desk.leases[world.keys[0]])
        assert (gone.kind, gone.requests) == ("gone", 0)
        world.relation.write_text("id,title\np1,no authors\n")
        listed, complete, problem = await keys_listed(source)
        assert not listed  # so that status says it; the records read before are kept
        assert not complete
        assert set(source.keys()) == keys
        assert "has no column authors" in problem

    with_source(world, site, clock, rewrite)


def test_no_more_than_the_limit_of_a_query_is_read(world: World, site: SearchSite, clock: SetClock) -> None:
    ask_on(world, site, clock, 100, limit=2 * PAGE)
    pages = [int(asked.rpartition(" ")[2]) for _, asked in site.requests if " " in asked]
    assert max(pages) <= 2


def test_a_relation_written_between_choice_and_request_costs_one_request_at_most(
    world: World, site: SearchSite, clock: SetClock
) -> None:
    async def overtaken(source: SearchSource, desk: Desk) -> int:
        batch = await source.choose(world.keys[0])
        while len(batch.keys) < 3:
            batch = await source.choose(world.keys[0])
        write_relation(world, world.own[::-1])
        assert [listing.problem async for listing in source.listings()] == [""]
        found = await source.poll_batch(batch, [desk.leases[key] for key in batch.keys])
        assert sum(one is not None for one in found) == 1
        return len(site.requests)

    assert with_source(world, site, clock, overtaken) == 1
