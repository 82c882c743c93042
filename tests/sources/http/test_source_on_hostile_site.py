"""A site that does everything wrong: no poll hangs, memory stays bounded, each problem is described."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import pytest
from tests.servers.hostile import hostile_routes
from tests.servers.site import Site, page
from tests.sources.polling import lease_of, lease_with_copy, quick_source

from afresh.sources.context import SourceContext
from afresh.sources.http.source import HttpSource
from afresh.sources.parsing.parse_budget import ParseBudget
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.values.fetched import Fetched
from afresh.values.listing import Listing

# Only where a limit of time is what ends the poll is it short.
IMPATIENT: dict[str, Any] = {"idle_timeout": "0.5s", "timeout": "1.5s"}
SILENT = {"/stall", "/stall-in-headers", "/stall-in-body", "/drip", "/endless-hints"}
TROUBLES = {
    "/stall": ("failed", "silent for 0.5 s"),
    "/stall-in-headers": ("failed", "silent for 0.5 s"),
    "/stall-in-body": ("failed", "silent for 0.5 s"),
    "/drip": ("failed", "answer not finished within 1.5 s"),
    "/drop": ("failed", "connection dropped before an answer"),
    "/half": ("failed", "body ends early"),
    "/half-chunked": ("failed", "body ends early"),
    "/half-gzip": ("failed", "gzip body breaks off"),
    "/bad-length": ("failed", "not HTTP"),
    "/not-http": ("failed", "not HTTP"),
    "/circle": ("failed", "redirects in a circle"),
    "/endless": ("failed", "more than 5 redirects"),
    "/endless-hints": ("failed", "within 1.5 s"),
    "/to-file": ("failed", "redirect to 'file:///etc/passwd', which is no address to fetch"),
    "/to-nowhere": ("failed", "which is no address to fetch"),
    "/bomb": ("failed", "a decompression bomb"),
    "/nested-bomb": ("failed", "content encoding 'gzip, gzip' was not asked for"),
    "/bad-gzip": ("failed", "body is not gzip"),
    "/gigabyte": ("failed", "larger than 4000000 bytes"),
    "/gigabyte-announced": ("failed", "body is 1073741824 bytes, more than the 4000000 allowed"),
    "/huge-header": ("failed", "a header of more than 8190 bytes"),
    "/many-headers": ("failed", "more than 128 headers"),
    "/endless-headers": ("failed", "more than 128 headers"),
    "/unasked-304": ("failed", "304 Not Modified to a request that asked for the content"),
    "/captcha": ("refused", "asks whether we are human"),
    "/login-wall": ("refused", "leads to a login page"),
    "/nothing": ("gone", "404 Not Found"),
}
CONTENT = {
    "/longer": b"hello",
    "/odd-etag": b"ok",
    "/charset": b"caf\xe9 \xff\xfe\x00",
    "/future": b"from the future",
    "/fine": b"<p>all is well</p>",
}


async def poll_once(path: str, source: HttpSource, site: Site) -> Fetched:
    return await source.poll(lease_of(site.url + path))


def poll_path(path: str) -> tuple[Fetched, int]:
    """One poll of a hostile path: its result, and the most memory that Python held."""
    limits = IMPATIENT if path in SILENT else {}

    async def run() -> tuple[Fetched, int]:
        async with Site(hostile_routes()) as site:
            source = quick_source(**limits)
            await poll_once("/fine", source, site)  # the first poll loads what loads lazily
            tracemalloc.start()
            fetched = await poll_once(path, source, site)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            again = await poll_once("/fine", source, site)  # and the source is as good as new
            await source.close()
            assert again.content == b"<p>all is well</p>"
            return fetched, peak

    return asyncio.run(run())


@pytest.mark.parametrize("path", TROUBLES)
def test_every_problem_is_described_within_bounds(path: str) -> None:
    fetched, peak = poll_path(path)
    kind, words = TROUBLES[path]
    assert fetched.kind == kind, fetched
    assert words in fetched.problem
    assert "\n" not in fetched.problem
    assert len(fetched.problem) < 300
    assert fetched.content is None
    assert peak < 15e6  # the site's own blocks of a megabyte included


@pytest.mark.parametrize("path", CONTENT)
def test_odd_but_complete_answers_are_content(path: str) -> None:
    fetched, _ = poll_path(path)
    assert (fetched.kind, fetched.content, fetched.problem) == ("content", CONTENT[path], "")
    fetched.media_type.encode("utf-8")  # can be stored
    assert all(value.isascii() for value in fetched.validators.values())


def test_every_hostile_path_is_tested() -> None:
    tested = {*TROUBLES, *CONTENT, "/cookies", "/clock", "/noisy-etag", "/lying-etag", "/laughs.xml"}
    helpers = {"/robots.txt", "/circle-back", "/login"}
    assert tested | helpers == {*hostile_routes(), "/nothing"}


def test_what_is_sent_beyond_the_length_never_becomes_an_answer() -> None:
    async def run() -> None:
        async with Site(hostile_routes()) as site:
            source = quick_source()
            for _ in range(5):
                assert (await poll_once("/longer", source, site)).content == b"hello"
                assert (await poll_once("/fine", source, site)).content == b"<p>all is well</p>"
            await source.close()

    asyncio.run(run())


def test_cookies_are_not_kept() -> None:
    async def run() -> None:
        async with Site(hostile_routes()) as site:
            source = quick_source()
            for _ in range(2):
                assert (await poll_once("/cookies", source, site)).content == b"cookies: none"
            await source.close()

    asyncio.run(run())


def test_a_robots_txt_that_is_an_image_forbids_nothing() -> None:
    async def run() -> None:
        async with Site(hostile_routes()) as site:
            source = quick_source()
            first, second = [await poll_once("/fine", source, site) for _ in range(2)]
            assert (first.kind, first.requests, second.requests) == ("content", 2, 1)
            assert site.paths() == ["/robots.txt", "/fine", "/fine"]
            await source.close()

    asyncio.run(run())


def test_a_clock_in_the_page_is_no_change_once_it_is_dropped() -> None:
    async def run(drop: tuple[str, ...]) -> str:
        async with Site(hostile_routes()) as site:
            source = quick_source(drop=drop)
            lease = lease_of(site.url + "/clock")
            again = await source.poll(lease_with_copy(lease, await source.poll(lease)))
            await source.close()
            return again.kind

    assert asyncio.run(run(())) == "content"
    assert asyncio.run(run(("footer",))) == "unchanged"


def test_an_etag_that_changes_every_time_is_replaced_by_the_date() -> None:
    async def run() -> None:
        async with Site(hostile_routes()) as site:
            source = quick_source(respect_robots=False)
            lease = lease_of(site.url + "/noisy-etag")
            kinds = []
            for _ in range(6):
                fetched = await source.poll(lease)
                kinds.append(fetched.kind)
                lease = lease_with_copy(lease, fetched)
            assert kinds == ["content"] + ["unchanged"] * 5
            assert "if-none-match" in site.seen[1].headers
            assert "if-none-match" not in site.seen[-1].headers
            assert fetched.status == 304
            await source.close()

    asyncio.run(run())


def test_a_304_over_changed_content_ends_the_use_of_the_validator() -> None:
    async def run() -> None:
        async with Site(hostile_routes()) as site:
            source = quick_source(respect_robots=False)
            lease = lease_of(site.url + "/lying-etag")
            results = []
            for number in range(9):
                fetched = await source.poll(lease, conditional=number != 5)
                results.append((fetched.kind, fetched.status))
                lease = lease_with_copy(lease, fetched)
            assert results[:5] == [("content", 200)] + [("unchanged", 304)] * 4
            assert results[5:] == [("content", 200)] * 4  # noticed by the check, and never asked so again
            await source.close()

    asyncio.run(run())


def test_a_date_in_the_future_is_no_evidence() -> None:
    fetched, _ = poll_path("/future")
    assert fetched.modified_s is None


def test_a_sitemap_full_of_entities_is_refused() -> None:
    async def run() -> None:
        async with Site(hostile_routes()) as site:
            source = quick_source(sitemaps=(site.url + "/laughs.xml",))
            listings = [listing async for listing in source.listings()]
            assert [listing.problem for listing in listings] == ["refused: XML with a DTD or entities"]
            assert listings[0].entries == ()
            assert not listings[0].complete
            await source.close()

    asyncio.run(run())


NESTED = {
    "selectors": {"selectors": ["main"]},
    "drop": {"drop": ["main"], "text_only": True},
    "near duplicates": {"near_duplicate": 0.9, "text_only": True},
}


def hasty(_size: int) -> ParseBudget:
    """Return a budget that deep pages exceed at once; ordinary ones take a hundredth of it."""
    return ParseBudget(processor_s=0.3, memory_bytes=100_000_000)


@pytest.mark.parametrize("settings", NESTED.values(), ids=NESTED)
def test_a_page_that_is_costly_to_parse_is_given_up(settings: dict[str, Any]) -> None:
    async def run() -> tuple[Fetched, Fetched]:
        deep = page(b"<main>" * 160_000)
        async with Site({**hostile_routes(), "/deep": deep}) as site:
            source = quick_source(SourceContext(parsers=ParserPool(1, hasty)), **settings)
            found = await poll_once("/deep", source, site), await poll_once("/fine", source, site)
            await source.close()
            return found

    deep, fine = asyncio.run(run())
    assert (deep.kind, deep.problem) == ("failed", "parsing it takes more than 0.3 s")
    assert fine.content == b"<p>all is well</p>"


def test_parts_that_contain_each_other_are_refused() -> None:
    async def run() -> Fetched:
        async with Site({"/deep": page(b"<main>" * 2_000)}) as site:
            source = quick_source(selectors=["main"])
            found = await poll_once("/deep", source, site)
            await source.close()
            return found

    assert "64 times as long as the page" in asyncio.run(run()).problem


def test_a_start_page_that_is_costly_to_parse_is_given_up() -> None:
    async def run() -> list[Listing]:
        async with Site({"/": page(b"<div>" * 200_000)}) as site:
            context = SourceContext(parsers=ParserPool(1, hasty))
            source = quick_source(context, discover=[site.url + "/"])
            found = [listing async for listing in source.listings()]
            await source.close()
            return found

    [listing] = asyncio.run(run())
    assert listing.problem == "parsing it takes more than 0.3 s"
