"""Pages follow each other by token, header or address; what has expired is read from the start."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web
from tests.servers.api_site import served_api
from tests.sources.web_api.asking import Asker, ask, settings_of

from afresh.sources.web_api.paging import next_in_headers
from afresh.sources.web_api.request_template import Endpoint
from afresh.values.errors import UsageError


async def walk(asker: Asker) -> list[str]:
    """The keys of all pages."""
    keys: list[str] = []
    number = 1
    while asker.pages.can_ask("all", number):
        found = await asker.page(number)
        assert not found.problem, found.problem
        keys += [record.key for record in found.records]
        if found.has_more is None and not found.records:
            break
        number += 1
    return keys


def rows_from(begin: int) -> list[dict[str, int]]:
    return [{"id": number} for number in range(begin, min(begin + 10, 25))]


@pytest.mark.parametrize("way", ["page", "offset", "token", "token header", "address", "relative", "link"])
def test_every_way_of_paging_reads_all(way: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        at = int(request.query.get("at", "0"))
        begin = {"page": 10 * (at - 1), "offset": at}.get(way, at)
        more = begin + 10 if begin + 10 < 25 else None
        body: dict[str, Any] = {"results": rows_from(begin), "meta": {}}
        headers = {}
        if more and way == "token":
            body["meta"]["next"] = more
        elif more and way == "token header":
            headers["X-Next"] = str(more)
        elif more and way in ("address", "relative"):
            start = str(request.url.origin()) if way == "address" else ""
            body["meta"]["next"] = f"{start}/list?at={more}"
        elif more:
            headers["Link"] = f'<{request.url.with_query(at=more)}>; rel="next last", <x>; rel="prev"'
        return web.json_response(body, headers=headers)

    paths = {"page": "/list?at={page}", "offset": "/list?at={offset}"}
    paths |= dict.fromkeys(("token", "token header"), "/list?at={next}")
    places = {"token": "meta.next", "token header": "header:X-Next", "link": "header:Link"}
    places |= dict.fromkeys(("address", "relative"), "meta.next")
    with served_api({"/list": answer}) as site:
        keys = ask(site, walk, path=paths.get(way, "/list"), next=places.get(way, ""))
    assert keys == [str(number) for number in range(25)]


def test_the_token_of_a_body_is_sent_in_the_body() -> None:
    async def answer(request: web.Request) -> web.Response:
        given = json.loads(await request.read())
        assert given["filter"] == {"size": 10, "all": [True, "size 10"]}
        begin = given.get("after", 0)
        more = begin + 10 if begin + 10 < 25 else None
        return web.json_response({"results": rows_from(int(begin)), "next": more and str(more)})

    body = {"after": "{next}", "filter": {"size": "{size}", "all": [True, "size {size}"]}}

    async def as_number(request: web.Request) -> web.Response:
        given = json.loads(await request.read())
        begin = int(given.get("after", "0"))
        return web.json_response(
            {"results": rows_from(begin), "next": str(begin + 10) if begin < 20 else None}
        )

    with served_api({"/list": as_number, "/strict": answer}) as site:
        assert len(ask(site, walk, path={"url": "/list", "body": body}, next="next")) == 25

        async def first(asker: Asker) -> str:
            return (await asker.page()).problem

        assert ask(site, first, path={"url": "/strict", "body": body}, next="next") == ""


def test_an_expired_token_is_forgotten() -> None:
    async def answer(request: web.Request) -> web.Response:
        if "at" in request.query:
            return web.json_response({"error": "scroll expired"}, status=404)
        return web.json_response({"results": rows_from(0), "next": "gone"})

    async def visit(asker: Asker) -> None:
        await asker.page()
        assert asker.pages.can_ask("all", 2)
        assert "404" in (await asker.page(2)).problem
        assert not asker.pages.can_ask("all", 2)

    with served_api({"/list": answer}) as site:
        ask(site, visit, path="/list?at={next}", next="next")


def test_a_post_request_is_not_redirected() -> None:
    async def redirect(_: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect("/other")

    async def first(asker: Asker) -> str:
        return (await asker.page()).problem

    with served_api({"/list": redirect}) as site:
        problem = ask(site, first, path={"url": "/list", "form": {"p": "{page}"}})
    assert problem == "redirects a POST request to '/other': ask there"


def test_a_link_header_without_next_ends_the_list() -> None:
    assert next_in_headers("header:Link", {"link": '<https://a.test/1>; rel="first"'}) == ""
    assert (
        next_in_headers("header:Link", {"link": "<https://a.test/2>; rel=next; title=x"})
        == "https://a.test/2"
    )
    assert next_in_headers("header:Link", {"link": "<" * 100_000}) == ""


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"url": "https://a.test/?n={next}"}, r"list: \{next\} needs next"),
        ({"url": "https://{query}.test/"}, "the host must not contain a placeholder"),
        (
            {"url": "https://a.test/", "form": {"a": "1"}, "body": {"a": 1}},
            "form and body exclude each other",
        ),
        ({"url": "https://a.test/", "variables": {"a": 1}}, "variables belong to graphql"),
        ({"url": "ftp://a.test/"}, "must be a web address"),
        ({"url": "https://a.test/", "body": {"a": ["{b}"]}}, r"\{b\} is not known"),
    ],
)
def test_wrong_requests_are_refused(table: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        settings_of().list_request("list", Endpoint(**table), ["query"])
