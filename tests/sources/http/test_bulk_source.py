"""Pages that are records of an API are polled many at a time, within the rules of their host."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web
from tests.servers.api_site import ApiSite, served_api
from tests.sources.polling import QUICK, lease_of, lease_with_copy, make_source

from afresh.sources.capabilities import find_capabilities
from afresh.sources.context import SourceContext
from afresh.sources.http.settings import HttpSettings
from afresh.sources.settings import read_settings
from afresh.values.errors import UsageError
from afresh.values.fetched import Fetched


class Papers:
    """Records that are served one by one and many at a time; the answer may be cut, or have no total."""

    def __init__(self, most: int = 1000, *, says_total: bool = True) -> None:
        self.cites = {str(number): number for number in range(30)}
        self.most, self.says_total = most, says_total
        self.keys: list[str | None] = []

    async def many(self, request: web.Request) -> web.Response:
        self.keys.append(request.headers.get("X-Key"))
        wanted = [key for key in request.query["ids"].split("|") if key in self.cites]
        rows = [{"id": int(key), "cites": self.cites[key]} for key in wanted[: self.most]]
        total = {"total": len(wanted)} if self.says_total else {}
        return web.json_response({"results": rows, **total})

    async def page(self, request: web.Request) -> web.Response:
        return web.Response(text=f"page {request.path}")


def poll(site: ApiSite, keys: list[str], before: dict[str, Fetched] | None = None) -> dict[str, Fetched]:
    async def run() -> dict[str, Fetched]:
        bulk = {"items": f"{site.url}/p/{{key}}", "request": f"{site.url}/p?ids={{keys}}"}
        table: dict[str, Any] = {
            **QUICK,
            "kind": "http",
            "respect_robots": False,
            "headers": {"X-Key": "k3y"},
        }
        source = make_source(table | {"bulk_look_up": bulk}, SourceContext())
        group = source.group(f"{site.url}/p/1")
        many = find_capabilities(source).bulk
        assert many is not None
        assert (many.bulk_limit(group), many.bulk_limit("elsewhere.test")) == (50, 1)
        leases = [lease_of(f"{site.url}/{key}", group=group) for key in keys]
        if before:
            pairs = zip(leases, keys, strict=True)
            leases = [lease_with_copy(lease, before[key]) for lease, key in pairs]
        try:
            return dict(zip(keys, await many.poll_many(leases), strict=True))
        finally:
            await source.close()

    return asyncio.run(run())


def test_one_request_polls_many_records_and_other_pages_are_polled_alone() -> None:
    papers = Papers()
    keys = [f"p/{number}" for number in range(30)]
    with served_api({"/p": papers.many, "/about": papers.page}) as site:
        found = poll(site, [*keys, "about", "p/99"])
        assert len(site.asked) == 2
        papers.cites["3"] = 77
        again = poll(site, keys, found)
    assert found["p/99"].kind == "gone"
    assert (found["about"].kind, found["about"].content) == ("content", b"page /about")
    assert all(found[key].kind == "content" for key in keys)
    assert json.loads(found["p/7"].content or b"") == {"id": 7, "cites": 7}
    assert [key for key, one in again.items() if one.kind == "content"] == ["p/3"]
    assert sum(one.requests for one in again.values()) == 1
    assert papers.keys == ["k3y", "k3y"]  # the settings name its host


@pytest.mark.parametrize(("says_total", "requests"), [(True, 3), (False, 22)])
def test_what_an_answer_lacks_is_asked_for_again(says_total: bool, requests: int) -> None:
    papers = Papers(most=10, says_total=says_total)
    keys = [f"p/{number}" for number in range(30)]
    with served_api({"/p": papers.many}) as site:
        found = poll(site, [*keys, *(["p/99"] if not says_total else [])])
        assert len(site.asked) == requests
    assert all(found[key].is_successful for key in keys)
    assert sum(one.requests for one in found.values()) == requests
    assert says_total or found["p/99"].kind == "gone"


def test_a_failure_is_that_of_all() -> None:
    async def broken(_: web.Request) -> web.Response:
        return web.Response(text="<html>", content_type="text/html")

    with served_api({"/p": broken}) as site:
        found = poll(site, ["p/1", "p/2"])
    assert {one.problem for one in found.values()} == {
        "HTML instead of JSON: a captcha, a log-in or an error page"
    }
    assert sum(one.requests for one in found.values()) == 1


@pytest.mark.parametrize(
    ("bulk", "words"),
    [
        ({"items": "https://a.test/p", "request": "https://a.test/?i={keys}"}, r"items: needs \{key\}"),
        ({"items": "nowhere/{key}", "request": "https://a.test/?i={keys}"}, "items: .* is not an http"),
        ({"items": "https://a.test/{key}", "request": "https://a.test/?i={key}"}, r"\{key\} is not known"),
        ({"items": "https://a.test/{key}", "request": "https://a.test/"}, r"request: needs \{keys\}"),
    ],
)
def test_bad_settings_are_refused(bulk: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_settings(HttpSettings, {"name": "web", "bulk_look_up": bulk})
