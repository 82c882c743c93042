"""Servers that give smaller pages than asked for are read to the end, and asked in the record's spelling."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.servers.api_site import ApiSite, served_api
from tests.sources.polling import SetClock
from tests.sources.searching import Desk

from afresh.sources.context import SourceContext
from afresh.sources.search.page_sizes import LearnedPageSize
from afresh.sources.search.saved_records import read_state
from afresh.sources.search.settings import SearchSettings
from afresh.sources.search.source import SearchSource
from afresh.sources.settings import read_settings

KEYS = [f"p{number}" for number in range(60)]
AUTHOR = "Sina Zarrieß"


@contextmanager
def small_pages(most: int) -> Iterator[ApiSite]:
    """A server in the shape of Crossref (``rows``, ``offset``) that gives at most ``most`` rows, and finds
    authors only by their exact spelling."""

    async def search(request: web.Request) -> web.Response:
        found = KEYS if request.query["query"] == f'"{AUTHOR}"' else []
        size = min(most, int(request.query["rows"]))
        begin = int(request.query.get("offset", "0") or 0)
        if "page" in request.query:
            begin = (int(request.query["page"]) - 1) * size
        rows = [{"DOI": key, "cited": 1} for key in found[begin : begin + size]]
        return web.json_response({"message": {"total-results": len(found), "items": rows}})

    with served_api({"/works": search}) as site:
        yield site


def source_on(site: ApiSite, folder: Path, clock: SetClock, **changes: Any) -> SearchSource:
    with (folder / "r.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "authors"), *((key, AUTHOR) for key in KEYS)])
    table: dict[str, Any] = {
        "name": "papers",
        "kind": "search",
        "relation": str(folder / "r.csv"),
        "key": "id",
        "keywords": ["authors:;"],
        "fields": {"cited": "absolute"},
        "server": site.url + "/works?query={query}&rows={size}&offset={offset}",
        "total": 'message."total-results"',
        "rows": "message.items",
        "key_path": "DOI",
        "page_size": 50,
        "delay": 0,
        "respect_robots": False,
        "allow_private": True,
    }
    settings = read_settings(SearchSettings, table | changes)
    return SearchSource(settings, SourceContext(clock=clock, sleep=clock.sleep))


async def cover(source: SearchSource, site: ApiSite, clock: SetClock, requests: int) -> Desk:
    desk = Desk(KEYS, clock)
    while len(desk.fetched) < len(KEYS) and len(site.asked) < requests:
        clock.time_s += 1.0
        await desk.ask(source)
    return desk


@pytest.mark.parametrize("paging", ["offset={offset}", "page={page}"])
def test_a_server_that_gives_ten_rows_where_fifty_were_asked_for_is_read_to_the_end(
    tmp_path: Path, paging: str
) -> None:
    clock = SetClock(0.0)

    async def run(site: ApiSite) -> None:
        server = f"{site.url}/works?query={{query}}&rows={{size}}&{paging}"
        source = source_on(site, tmp_path, clock, server=server)
        desk = await cover(source, site, clock, requests=10)
        assert set(desk.fetched) == set(KEYS)
        assert all(one.is_successful for one in desk.fetched.values())
        assert len(site.asked) == 6  # 60 records on pages of 10, each asked for once
        state = source.save_state()
        await source.close()
        later = source_on(site, tmp_path, clock, server=server)  # the next process knows the size
        later.load_state(state)
        assert read_state(later.save_state()).page_sizes == (50, 10)
        other = source_on(site, tmp_path, clock, server=server, page_size=5)
        other.load_state(state)
        assert read_state(other.save_state()).page_sizes == (5, 5)  # of another setting nothing is known
        await later.close()
        await other.close()

    with small_pages(10) as site:
        asyncio.run(run(site))


@pytest.mark.parametrize("paging", ["offset={offset}", "page={page}"])
def test_without_totals_a_smaller_page_than_asked_for_ends_no_query(tmp_path: Path, paging: str) -> None:
    """No record is called missing because pages are smaller and nothing says how many follow."""
    clock = SetClock(0.0)

    async def run(site: ApiSite) -> None:
        server = f"{site.url}/works?query={{query}}&rows={{size}}&{paging}"
        source = source_on(site, tmp_path, clock, server=server, total="unknown")
        desk = await cover(source, site, clock, requests=12)
        assert set(desk.fetched) == set(KEYS)
        assert all(one.is_successful for one in desk.fetched.values())
        assert read_state(source.save_state()).page_sizes == (50, 10)
        await source.close()

    with small_pages(10) as site:
        asyncio.run(run(site))


def test_a_keyword_is_asked_for_as_the_record_spells_it(tmp_path: Path) -> None:
    clock = SetClock(0.0)

    async def run(site: ApiSite) -> None:
        source = source_on(site, tmp_path, clock)
        await cover(source, site, clock, requests=1)
        await source.close()
        assert "Sina%20Zarrie%C3%9F" in site.asked[0]

    with small_pages(50) as site:
        asyncio.run(run(site))


def test_a_page_that_leaves_out_a_result_does_not_end_its_query() -> None:
    learned = LearnedPageSize(10)
    learned.observe(1, 10, 35)
    learned.observe(2, 9, 35)  # one result is hidden: the largest page still counts
    assert learned.size == 10


def test_the_last_results_within_the_limit_are_no_contradiction() -> None:
    learned = LearnedPageSize(10, limit=15)
    learned.observe(2, 5, 200)
    assert learned.size == 10
