"""A search source that can look up many keys at once: what is missing, cut short or untold."""

from __future__ import annotations

import asyncio
import csv
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.servers.api_site import ApiSite, served_api
from tests.sources.polling import SetClock
from tests.sources.searching import Desk

from afresh.sources.context import SourceContext
from afresh.sources.search.settings import SearchSettings
from afresh.sources.search.source import SearchSource
from afresh.sources.settings import read_settings

KEYS = [str(number) for number in range(60)]


def source_on(site: ApiSite, folder: Path, clock: SetClock, **changes: Any) -> SearchSource:
    with (folder / "r.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "title"), *((key, f"word{key}") for key in KEYS)])
    table: dict[str, Any] = {
        "name": "papers",
        "kind": "search",
        "relation": str(folder / "r.csv"),
        "key": "id",
        "keywords": ["title"],
        "server": site.url + "/search?q={query}&page={page}",
        "look_up": site.url + "/one/{key}",
        "bulk_look_up": site.url + "/many?ids={keys}",
        "bulk": 30,
        "delay": 0,
        "respect_robots": False,
        "allow_private": True,
    }
    settings = read_settings(SearchSettings, table | changes)
    return SearchSource(settings, SourceContext(clock=clock, sleep=clock.sleep))


@pytest.mark.parametrize(("says_total", "most"), [(True, 2), (False, 40)])
def test_what_an_answer_lacks_is_gone_asked_for_again_or_asked_for_alone(
    tmp_path: Path, says_total: bool, most: int
) -> None:
    """With totals, what is missing is gone; without them, two records are asked for alone."""
    clock, lost, hidden = SetClock(0.0), {"7"}, {"9"}

    async def many(request: web.Request) -> web.Response:
        wanted = [key for key in request.query["ids"].split("|") if key not in lost]
        given = [key for key in wanted if says_total or key not in hidden]
        body: dict[str, Any] = {"results": [{"id": key} for key in given]}
        if says_total:
            body["total"] = len(wanted)
        return web.json_response(body)

    async def one(request: web.Request) -> web.Response:
        key = request.match_info["key"]
        if key in lost:
            raise web.HTTPNotFound
        return web.json_response({"id": key})

    async def run(site: ApiSite) -> Desk:
        source = source_on(site, tmp_path, clock)
        desk = Desk(KEYS, clock)
        while len(desk.fetched) < len(KEYS) and len(site.asked) < most:
            clock.time_s += 1.0
            await desk.ask(source, next(key for key in KEYS if key not in desk.fetched))
        await source.close()
        return desk

    with served_api({"/many": many, "/one/{key}": one}) as site:
        desk = asyncio.run(run(site))
    assert {key for key, found in desk.fetched.items() if found.kind == "gone"} == lost
    assert sum(found.is_successful for found in desk.fetched.values()) == 59
    alone = [path for path in site.asked if path.startswith("/one")]
    assert sorted(alone) == ([] if says_total else ["/one/7", "/one/9"])


def test_a_server_that_gives_fewer_than_asked_for_is_asked_for_fewer_also_after_a_restart(
    tmp_path: Path,
) -> None:
    clock = SetClock(0.0)

    async def many(request: web.Request) -> web.Response:
        wanted = request.query["ids"].split("|")
        return web.json_response({"results": [{"id": key} for key in wanted[:20]], "total": len(wanted)})

    async def run(site: ApiSite) -> Desk:
        source = source_on(site, tmp_path, clock)
        desk = Desk(KEYS, clock)
        while len(desk.fetched) < len(KEYS) and len(site.asked) < 9:
            clock.time_s += 1.0
            await desk.ask(source)
        await source.close()
        for bulk in (30, 40):  # with another setting nothing is known
            later = source_on(site, tmp_path, clock, bulk=bulk)
            later.load_state(source.save_state())
            clock.time_s += 1e6
            await Desk(KEYS, clock).ask(later)
            await later.close()
        return desk

    with served_api({"/many": many}) as site:
        desk = asyncio.run(run(site))
    assert all(found.is_successful for found in desk.fetched.values())
    assert len(desk.fetched) == 60
    assert [path.count("%7C") + path.count("|") + 1 for path in site.asked] == [30, 20, 20, 20, 40]
