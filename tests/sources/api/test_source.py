"""The api source on a site in the shape of GitHub: changes, births, deaths, restarts and failures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from tests.servers.api_site import ApiHandler, ApiSite, served_api
from tests.servers.shaped_apis import Shelf, datasette, github
from tests.sources.polling import SetClock, lease_of
from tests.sources.searching import Desk

from afresh.sources.api.saved_list import read_list_state
from afresh.sources.api.settings import ApiSettings
from afresh.sources.api.source import ApiSource
from afresh.sources.context import SourceContext
from afresh.sources.settings import read_settings
from afresh.values.errors import UsageError
from afresh.values.listing import Listing

ISSUES = "/repos/o/r/issues"


def table_on(site: ApiSite, **changes: Any) -> dict[str, Any]:
    return {
        "name": "issues",
        "kind": "api",
        "list": f"{site.url}{ISSUES}?state=all&per_page={{size}}&since={{cursor}}",
        "next": "header:Link",
        "cursor": "updated_at",
        "overlap": 0,
        "look_up": f"{site.url}{ISSUES}/{{key}}",
        "headers": {"Authorization": "Bearer gh-token"},
        "rows": "@",
        "key": "number",
        "fields": ["title", "comments"],
        "page_size": 30,
        "delay": 0,
        "first_rest": 0.001,
        "respect_robots": False,
        "allow_private": True,
        **changes,
    }


def source_on(site: ApiSite, clock: SetClock, **changes: Any) -> ApiSource:
    settings = read_settings(ApiSettings, table_on(site, **changes))
    return ApiSource(settings, SourceContext(clock=clock, sleep=clock.sleep))


async def list_once(source: ApiSource) -> Listing:
    (found,) = [listing async for listing in source.listings()]
    return found


Visit = Callable[[ApiSource, Desk, ApiSite], Awaitable[None]]


def visit_shelf(
    shelf: Shelf,
    clock: SetClock,
    visit: Visit,
    shape: Callable[[Shelf], dict[str, ApiHandler]] = github,
    **changes: Any,
) -> None:
    """Let a source list the shelf and store all contents, then visit it."""

    async def run(site: ApiSite) -> None:
        source = source_on(site, clock, **changes)
        listing = await list_once(source)
        desk = Desk([entry.key for entry in listing.entries], clock)
        await desk.ask(source)
        assert len(desk.fetched) == len(listing.entries)
        site.asked.clear()
        try:
            await visit(source, desk, site)
        finally:
            await source.close()

    with served_api(shape(shelf)) as site:
        asyncio.run(run(site))


def test_one_request_for_changes_refreshes_all_records() -> None:
    shelf, clock = Shelf.of(60), SetClock()

    async def visit(source: ApiSource, desk: Desk, site: ApiSite) -> None:
        for _ in range(3):
            clock.time_s += 60
            shelf.change(3, 40)
            found = await desk.ask(source)
            assert {key for key, one in found.items() if one.kind == "content"} == {"3", "40"}
            assert sum(one.kind == "unchanged" for one in found.values()) == 58
            assert sum(one.requests for one in found.values()) == 1
        assert len(site.asked) == 3
        assert all("since=" in path for path in site.asked)

    visit_shelf(shelf, clock, visit)


def test_a_copy_that_is_older_than_the_cursor_is_not_called_unchanged() -> None:
    shelf, clock = Shelf.of(20), SetClock()

    async def visit(source: ApiSource, desk: Desk, site: ApiSite) -> None:
        clock.time_s += 60
        await desk.ask(source)
        lost = lease_of("5", content_hash=b"x", polled_s=clock.time_s - 3600)
        desk.leases["5"] = lost  # its last polls were not committed
        clock.time_s += 60
        found = await desk.ask(source, "6")
        assert "5" not in found
        assert len(found) == 19
        for _ in range(12):  # the engine brings it again and again: by its page, or alone
            clock.time_s += 10
            found = await desk.ask(source, "5")
            if "5" in found:
                break
        assert found["5"].kind == "content"
        assert "since" not in site.asked[-1]

    visit_shelf(shelf, clock, visit)


def test_new_records_are_found_by_changes_and_listed_without_a_request() -> None:
    shelf, clock = Shelf.of(20), SetClock()

    async def visit(source: ApiSource, desk: Desk, site: ApiSite) -> None:
        shelf.rows[99] = {"title": "new", "author": "x", "cites": 0}
        shelf.change(99)
        clock.time_s += 30
        await desk.ask(source)
        listing = await list_once(source)
        assert [entry.key for entry in listing.entries] == ["99"]
        assert (listing.complete, listing.requests) == (False, 0)
        desk.leases["99"] = lease_of("99", source="issues")
        clock.time_s += 5
        found = await desk.ask(source, "99")
        assert found["99"].kind == "content"
        assert len(site.asked) == 1

    visit_shelf(shelf, clock, visit)


def test_without_polls_changes_are_read_by_the_listing() -> None:
    shelf, clock = Shelf.of(20), SetClock()

    async def visit(source: ApiSource, desk: Desk, site: ApiSite) -> None:
        shelf.change(4)
        clock.time_s += 61
        listing = await list_once(source)
        assert "4" in {entry.key for entry in listing.entries}
        assert listing.requests == len(site.asked) == 1
        found = await desk.ask(source, "4")
        assert found["4"].kind == "content"
        assert len(site.asked) == 1

    visit_shelf(shelf, clock, visit)


@pytest.mark.parametrize("look_up", [True, False])
def test_a_whole_list_now_and_then_finds_what_was_deleted(look_up: bool) -> None:
    shelf, clock = Shelf.of(50), SetClock()
    changes: dict[str, Any] = {} if look_up else {"look_up": ""}

    async def visit(source: ApiSource, desk: Desk, site: ApiSite) -> None:
        del shelf.rows[7]
        clock.time_s += 3601
        listing = await list_once(source)
        assert listing.complete
        assert listing.requests == 2
        assert "7" not in {entry.key for entry in listing.entries}
        assert (await source.poll(desk.leases["7"])).kind == "gone"
        assert len(site.asked) == (3 if look_up else 2)

    visit_shelf(shelf, clock, visit, **changes)


def test_a_record_that_no_longer_fulfils_the_condition_is_gone() -> None:
    shelf, clock = Shelf.of(20), SetClock()

    async def visit(source: ApiSource, desk: Desk, _: ApiSite) -> None:
        shelf.rows[3]["title"] = "closed"
        shelf.change(3)
        clock.time_s += 60
        found = await desk.ask(source)
        assert found["3"].kind == "gone"
        assert "does not fulfil where" in found["3"].problem
        assert (await source.poll(desk.leases["3"])).kind == "gone"

    visit_shelf(shelf, clock, visit, where="title != 'closed'")


def test_without_a_cursor_pages_and_bulk_look_ups_compete() -> None:
    """Pages of 20 show more than look-ups of 8; for 8 records of high weight a look-up is better."""
    shelf, clock = Shelf.of(60), SetClock()
    table = {"next": "next", "total": "filtered_table_rows_count", "rows": "rows", "key": "id", "cursor": ""}

    async def visit(source: ApiSource, desk: Desk, site: ApiSite) -> None:
        for _ in range(3):
            clock.time_s += 10
            await desk.ask(source)
        assert [path.partition("_next=")[2] for path in site.asked] == ["", "20", "40"]
        keys = list(source.keys())
        weights = [1000.0 if key in {"2", "25", "44"} else 1.0 for key in keys]
        clock.time_s += 10
        found = await desk.ask(source, weights=np.array(weights))
        assert "id__in" in site.asked[-1]
        assert {"2", "25", "44"} <= set(found)
        assert len(found) == 8
        del shelf.rows[2]
        clock.time_s += 10
        assert (await desk.ask(source))["2"].kind == "gone"

    async def run(site: ApiSite) -> None:
        path = f"{site.url}/data/papers.json"
        own = {"list": path + "?_size={size}&_next={next}", "page_size": 20, "fields": ["cites"], "bulk": 8}
        bulk = {"bulk_look_up": path + "?id__in={keys}&_size={size}", "keys_joined_by": ",", "look_up": ""}
        source = source_on(site, clock, **table, **own, **bulk)
        listing = await list_once(source)
        desk = Desk([entry.key for entry in listing.entries], clock)
        await desk.ask(source)
        assert len(desk.fetched) == 60
        site.asked.clear()
        await visit(source, desk, site)
        await source.close()

    with served_api(datasette(shelf)) as site:
        asyncio.run(run(site))


def test_the_next_process_goes_on_where_the_last_one_stopped() -> None:
    shelf, clock = Shelf.of(20), SetClock()

    async def visit(source: ApiSource, desk: Desk, site: ApiSite) -> None:
        clock.time_s += 60
        await desk.ask(source)
        later = source_on(site, clock)
        later.load_state(source.save_state())
        site.asked.clear()
        assert (await list_once(later)).requests == 0
        shelf.change(9)
        clock.time_s += 60
        found = await desk.ask(later)
        assert {key for key, one in found.items() if one.kind == "content"} == {"9"}
        assert len(found) == 20
        assert len(site.asked) == 1
        assert "since=" in site.asked[0]
        assert read_list_state(b'{"v": 0}') == read_list_state(b"")
        await later.close()

    visit_shelf(shelf, clock, visit)


def test_a_long_list_is_handed_out_in_parts() -> None:
    clock = SetClock()

    async def rows(_: web.Request) -> web.Response:
        return web.json_response({"results": [{"id": number} for number in range(7_000)]})

    async def run(site: ApiSite) -> None:
        own = {"list": site.url + "/rows", "next": "", "cursor": "", "look_up": ""}
        source = source_on(site, clock, **own, rows="results", key="id", fields=[])
        listing = await list_once(source)
        desk = Desk([entry.key for entry in listing.entries], clock)
        assert [len(await desk.ask(source)) for _ in range(2)] == [5_000, 2_000]
        assert len(site.asked) == 1
        await source.close()

    with served_api({"/rows": rows}) as site:
        asyncio.run(run(site))


def test_an_audit_always_asks() -> None:
    shelf, clock = Shelf.of(20), SetClock()

    async def visit(source: ApiSource, desk: Desk, site: ApiSite) -> None:
        shelf.rows[8]["cites"] = 999  # changed without a new time
        clock.time_s += 61
        await list_once(source)
        found = await source.poll(desk.leases["8"], conditional=False)
        assert found.kind == "content"
        assert site.asked[-1] == f"{ISSUES}/8"

    visit_shelf(shelf, clock, visit)


def test_a_server_that_fails_rests_and_nothing_is_lost() -> None:
    shelf, clock = Shelf.of(60), SetClock()
    fails = [False]

    def failing(kept: Shelf) -> dict[str, ApiHandler]:
        routes = github(kept)
        answer = routes[ISSUES]

        async def issues(request: web.Request) -> web.StreamResponse:
            if fails[0] and request.query.get("page") == "2":
                return web.Response(status=503, headers={"Retry-After": "120"})
            return await answer(request)

        return routes | {ISSUES: issues}

    async def visit(source: ApiSource, desk: Desk, _: ApiSite) -> None:
        fails[0] = True
        shelf.change(*range(1, 50))
        clock.time_s += 60
        found = await desk.ask(source)
        assert {one.kind for one in found.values()} == {"failed"}
        assert source.ready_s("issues", clock.time_s) >= clock.time_s + 119
        assert source.backoffs()[0].group == "issues"
        assert [listing async for listing in source.listings()] == []
        fails[0] = False
        clock.time_s += 130
        changed: set[str] = set()
        for _turn in range(4):
            clock.time_s += 10
            changed |= {key for key, one in (await desk.ask(source)).items() if one.kind == "content"}
        assert changed == {str(number) for number in range(1, 50)}

    visit_shelf(shelf, clock, visit, failing)


def test_a_list_that_moves_while_it_is_read_is_not_taken_for_whole() -> None:
    shelf, clock = Shelf.of(50), SetClock()

    def moving(kept: Shelf) -> dict[str, ApiHandler]:
        async def rows(request: web.Request) -> web.Response:
            page, numbers = int(request.query["page"]), list(kept.rows)
            if page > 1 and clock.time_s > 1e9:
                numbers = numbers[1:]  # a record of the first page was deleted: one slips through
            shown = numbers[(page - 1) * 20 : page * 20]
            return web.json_response({"results": [{"id": n} for n in shown], "total": 50})

        return {"/rows": rows}

    async def run(site: ApiSite) -> None:
        own = {"list": site.url + "/rows?page={page}", "next": "", "cursor": "", "look_up": ""}
        source = source_on(site, clock, **own, page_size=20, rows="results", key="id", fields=[])
        assert (await list_once(source)).complete
        clock.time_s += 3601
        listing = await list_once(source)
        assert len(listing.entries) == 49
        assert not listing.complete
        await source.close()

    with served_api(moving(shelf)) as site:
        asyncio.run(run(site))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weight": "stars"}, "weight, rate: 'stars' is not among fields = title, comments"),
        ({"rate": "comments"}, "is no rate"),
        ({"cursor": ""}, r"list: \{cursor\} needs cursor"),
        ({"list": "https://a.test/{page}/{query}"}, r"\{query\} is not known"),
        ({"where": "a ="}, "where: 'a =' is not a JSON path"),
        ({"paths": {"n": "m"}}, "paths: 'n' is none of the fields"),
        ({"look_up": "https://a.test/"}, r"look_up: needs \{key\}"),
        ({"bulk_look_up": "https://a.test/{key}"}, r"bulk_look_up: \{key\} is not known"),
    ],
)
def test_bad_settings_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_settings(ApiSettings, table_on(ApiSite("https://a.test")) | change)


def test_weight_and_rate_of_new_records_come_from_fields() -> None:
    async def run(source: ApiSource) -> None:
        entries = {entry.key: entry for entry in (await list_once(source)).entries}
        assert {entry.weight for entry in entries.values()} == {2.0 * 1}
        assert next(iter(entries.values())).prior_rate_per_s == pytest.approx(1 / 86400.0)
        await source.close()

    with served_api({ISSUES: one_page}) as site:
        asyncio.run(run(source_on(site, SetClock(), weight="comments * 2", rate="comments / d")))


async def one_page(_request: web.Request) -> web.Response:
    return web.json_response([{"number": 5, "title": "a", "comments": 1, "updated_at": "2026-01-01"}])


def test_the_page_size_that_the_server_gives_is_saved() -> None:
    """It gives 10 records where 30 are asked for: the next process knows."""

    async def tens(request: web.Request) -> web.Response:
        first = 10 * (int(request.query["page"]) - 1)
        rows = [{"number": number, "title": "a"} for number in range(25)[first : first + 10]]
        return web.json_response({"rows": rows, "total": 25})

    async def run(site: ApiSite) -> None:
        own = {
            "list": f"{site.url}/list?page={{page}}",
            "cursor": "",
            "rows": "rows",
            "total": "total",
            "next": "",
        }
        source, later = (source_on(site, SetClock(), **own) for _ in range(2))
        assert len((await list_once(source)).entries) == 25
        later.load_state(source.save_state())
        assert read_list_state(later.save_state()).page_sizes == (30, 10)
        other = source_on(site, SetClock(), **(own | {"page_size": 50}))
        other.load_state(source.save_state())
        assert read_list_state(other.save_state()).page_sizes == (50, 50)
        for each in (source, later, other):
            await each.close()

    with served_api({"/list": tens}) as site:
        asyncio.run(run(site))


@pytest.mark.parametrize("end", ["empty", "404", "400", "repeated"])
@pytest.mark.parametrize("paging", ["offset", "page"])
def test_a_list_without_a_total_that_gives_smaller_pages_is_read_to_its_end(paging: str, end: str) -> None:
    """A server gives at most 40 records where 100 are asked for, and does not say how many there are."""
    records = {number: {"id": number, "n": 0, "changed": 1000.5 + number} for number in range(95)}

    async def listed(request: web.Request) -> web.Response:
        asked = await request.json()
        since = asked.get("since", 0.0)
        assert isinstance(since, float)
        found = sorted(
            (one for one in records.values() if one["changed"] >= since), key=lambda one: one["id"]
        )
        begin = asked.get("offset", 40 * (asked.get("page", 1) - 1))
        if begin and begin >= len(found):
            if end in ("404", "400"):
                return web.Response(status=int(end))
            begin = 0 if end == "repeated" else begin
        return web.json_response(found[begin : begin + 40])

    async def run(site: ApiSite) -> None:
        body = {"since": "{cursor}", paging: f"{{{paging}}}"}
        request = {"list": {"url": f"{site.url}/list", "body": body}, "next": "", "look_up": None}
        clock = SetClock()
        source = source_on(
            site, clock, **request, cursor="changed", key="id", fields=["n"], page_size=100, full_every=9
        )
        listing = await list_once(source)
        assert len(listing.entries) == 95
        assert (listing.complete, listing.requests, listing.problem) == (True, 3, "")
        assert source.save_state() is not None
        desk = Desk([entry.key for entry in listing.entries], clock)
        await desk.ask(source)
        site.asked.clear()
        clock.time_s += 60
        for number in (3, 90):
            records[number] |= {"n": 1, "changed": 2000.5 + number}
        found = await desk.ask(source)
        assert {key for key, one in found.items() if one.kind == "content"} == {"3", "90"}
        assert len(site.asked) == 1  # fewer records than on earlier pages: no other page follows
        await source.close()

    with served_api({"/list": listed}) as site:
        asyncio.run(run(site))
