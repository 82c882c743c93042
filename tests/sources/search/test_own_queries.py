"""A search source without look-ups: a record that its own query does not show has an outcome."""

from __future__ import annotations

import asyncio
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
from afresh.values.fetched import Fetched

KEYS = ["a", "b", "x"]
TITLES = {"a": "beta epsilon", "b": "delta alpha", "x": "beta delta"}
OTHERS = {f"o{number}": "beta delta" for number in range(400)}  # records of the server alone
SHORT_PAGES, BY_TOTAL, BY_NEXT = "short pages", "total", "next"


def answer(titles: dict[str, str], request: web.Request, tells: str, lies: int) -> web.Response:
    """A page of ten results; ``tells``: how the server shows that it was the last one."""
    words, page = request.query["q"].split(), int(request.query["page"])
    keys = [key for key, title in titles.items() if set(words) <= set(title.split())]
    body: dict[str, Any] = {"results": [{"id": key} for key in keys[10 * page - 10 : 10 * page]]}
    if tells == BY_TOTAL:
        body["total"] = len(keys) + lies
    elif tells == BY_NEXT and len(keys) > 10 * page:
        body["next"] = str(request.rel_url.update_query(page=page + 1))
    return web.json_response(body)


def ask_for_all(
    folder: Path, titles: dict[str, str], tells: str, *, lies: int = 0, most: int = 60
) -> tuple[dict[str, Fetched], list[str]]:
    """Ask until every record has an outcome, but ``most`` times. Return the outcomes and the requests."""
    clock = SetClock(0.0)
    (folder / "r.csv").write_text("id,title\n" + "".join(f"{key},{TITLES[key]}\n" for key in KEYS))

    async def search(request: web.Request) -> web.Response:
        return answer(titles, request, tells, lies)

    async def run(site: ApiSite) -> dict[str, Fetched]:
        table = {
            "name": "papers",
            "kind": "search",
            "relation": str(folder / "r.csv"),
            "key": "id",
            "keywords": ["title"],
            "page_size": 10,
            "server": site.url + "/search?q={query}&page=" + ("1" if tells == BY_NEXT else "{page}"),
            "delay": 0,
            "respect_robots": False,
            "allow_private": True,
        } | ({"next": "next"} if tells == BY_NEXT else {})
        settings = read_settings(SearchSettings, table)
        source = SearchSource(settings, SourceContext(clock=clock, sleep=clock.sleep))
        desk = Desk(KEYS, clock)
        for _ in range(most):
            clock.time_s += 0.05
            await desk.ask(source, next(key for key in KEYS if key not in desk.fetched))
            if len(desk.fetched) == len(KEYS):
                break
        await source.close()
        return desk.fetched

    with served_api({"/search": search}) as site:
        return asyncio.run(run(site)), site.asked


@pytest.mark.parametrize("tells", [SHORT_PAGES, BY_TOTAL, BY_NEXT])
@pytest.mark.parametrize("others", [0, 4, 25])
def test_a_record_that_all_pages_of_its_own_query_lack_is_gone(
    tmp_path: Path, tells: str, others: int
) -> None:
    titles = {"a": TITLES["a"], "b": TITLES["b"]} | dict(list(OTHERS.items())[:others])
    found, asked = ask_for_all(tmp_path, titles, tells)
    assert {key: one.kind for key, one in found.items()} == {"a": "content", "b": "content", "x": "gone"}
    assert len(asked) <= 12, asked


@pytest.mark.parametrize("tells", [SHORT_PAGES, BY_TOTAL, BY_NEXT])
def test_a_record_on_a_later_page_of_its_own_query_is_found(tmp_path: Path, tells: str) -> None:
    titles = {"a": TITLES["a"], "b": TITLES["b"]} | dict(list(OTHERS.items())[:25]) | {"x": TITLES["x"]}
    found, asked = ask_for_all(tmp_path, titles, tells)
    assert found["x"].is_successful
    assert len(asked) <= 12, asked


@pytest.mark.parametrize(("others", "lies"), [(4, 3), (400, 0)])
def test_a_record_is_not_gone_while_results_are_unread(tmp_path: Path, others: int, lies: int) -> None:
    """The total speaks of more results than the pages have, or there are more pages than are read at once."""
    titles = {"a": TITLES["a"], "b": TITLES["b"]} | dict(list(OTHERS.items())[:others])
    found, _ = ask_for_all(tmp_path, titles, BY_TOTAL, lies=lies, most=200)
    assert found["x"].kind == "failed"
    assert "not on the pages read for its own keywords" in found["x"].problem
