"""Rules of robots.txt: files that exist, files that are missing, files that cannot be read."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources.polling import SetClock

from afresh.sources.http.fetcher import Reply
from afresh.sources.http.robots import (
    DAY_S,
    HOUR_S,
    MAX_BYTES,
    RobotsCache,
    RobotsRules,
    read_file,
    rules_without_file,
)
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.values.leftovers import LEFTOVERS

PAGE = "http://a.test/private/page"


def read_robots(reply: Reply, now_s: float, before: RobotsRules | None = None) -> RobotsRules:
    return rules_without_file(reply, now_s, before) or read_file(reply.body, reply.headers, now_s)


def reply(text: str, status: int = 200, **headers: str) -> Reply:
    return Reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, text.encode())


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("User-agent: *\nDisallow: /", False),
        ("User-agent: *\nDisallow:", True),
        ("User-agent: *\nDisallow: /priv*e", False),
        ("User-agent: *\nDisallow: /\nAllow: /private/", True),
        ("User-agent: other\nDisallow: /", True),
        ("User-agent: afresh\nDisallow: /private\n\nUser-agent: *\nDisallow:", False),
        ("<html>not found</html>", True),
        ("", True),
    ],
)
def test_rules(text: str, allowed: bool) -> None:
    assert read_robots(reply(text), 0.0).allows(PAGE, "afresh") is allowed


def test_crawl_delay_request_rate_and_sitemaps() -> None:
    text = "User-agent: *\nCrawl-delay: 2.5\nRequest-rate: 1/10s\nSitemap: http://a.test/s.xml"
    robots = read_robots(reply(text), 0.0)
    assert (robots.crawl_delay_s("afresh"), robots.sitemaps) == (10.0, ("http://a.test/s.xml",))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_missing_file_forbids_nothing(status: int) -> None:
    assert read_robots(reply("User-agent: *\nDisallow: /", status), 0.0).allows(PAGE, "afresh")


@pytest.mark.parametrize("bad", [Reply(503), Reply(429), Reply(trouble="timeout", problem="no answer")])
def test_a_file_that_cannot_be_read_forbids_everything_longer_each_time(bad: Reply) -> None:
    first = read_robots(bad, 0.0)
    second = read_robots(bad, 0.0, first)
    assert not first.allows(PAGE, "afresh")
    assert "robots.txt cannot be read" in first.unreadable
    assert (first.expires_s, second.expires_s) == (60.0, 120.0)


def test_known_rules_stay_in_force_while_a_host_fails() -> None:
    held = read_robots(reply("User-agent: *\nDisallow: /private"), 0.0)
    later = read_robots(Reply(503), 2 * DAY_S, held)
    assert not later.allows(PAGE, "afresh")
    assert later.allows("http://a.test/", "afresh")


@pytest.mark.parametrize(
    ("cache", "lifetime_s"),
    [("max-age=7200", 7200.0), ("max-age=5", HOUR_S), ("max-age=99999999", DAY_S), ("no-store", DAY_S)],
)
def test_lifetime_is_what_the_host_says_between_an_hour_and_a_day(cache: str, lifetime_s: float) -> None:
    assert read_robots(reply("", cache_control=cache), 100.0).expires_s == 100.0 + lifetime_s


def test_rules_beyond_the_limit_are_not_read() -> None:
    text = "# " + "x" * MAX_BYTES + "\nUser-agent: *\nDisallow: /"
    assert read_robots(reply(text), 0.0).allows(PAGE, "afresh")


@given(
    st.binary(max_size=300), st.sampled_from(["", "text/plain", "image/png", "text/plain; charset=utf-16"])
)
@settings(deadline=None)
def test_no_bytes_make_it_fail(body: bytes, kind: str) -> None:
    robots = read_robots(Reply(200, {"content-type": kind}, body), 0.0)
    assert robots.allows(PAGE, "afresh") in (True, False)
    assert robots.crawl_delay_s("afresh") >= 0


def test_many_agents_do_not_multiply_with_many_rules() -> None:
    agents = "".join(f"User-agent: bot{number}\n" for number in range(10_000))
    rules = "".join(f"Disallow: /{number}\n" for number in range(10_000))
    tracemalloc.start()
    robots = read_robots(reply(f"{agents}User-agent: *\n{rules}"), 0.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert not robots.allows("http://a.test/77", "afresh")
    assert robots.allows("http://a.test/x", "afresh")
    assert peak < 50_000_000  # a list of rules for each agent took 100 MB for a tenth of these


def test_more_wildcards_than_can_be_followed_forbid_everything() -> None:
    robots = read_robots(reply("User-agent: *\n" + "Allow: /*a*b\n" * 2_501), 0.0)
    assert not robots.allows(PAGE, "afresh")
    assert robots.unreadable == "robots.txt has more than 5,000 wildcards: too many to follow"


def test_a_long_file_is_parsed_in_a_process_of_its_own() -> None:
    async def run() -> RobotsRules:
        before = set(LEFTOVERS.processes)
        with ParserPool().joined() as parsers:
            book = RobotsCache(SetClock(0.0), parsers)

            async def ask(place: str) -> Reply:
                del place
                return Reply(200, {}, b"User-agent: *\nDisallow: /x\n" + b"# much\n" * 5_000)

            rules = await book.rules("http://a.test/1", ask)
            assert len(LEFTOVERS.processes - before) == 1
            return rules

    rules = asyncio.run(run())
    assert not rules.allows("http://a.test/x", "afresh")
    assert rules.allows("http://a.test/y", "afresh")


def cache_clock_and_requests() -> tuple[RobotsCache, SetClock, list[str]]:
    clock = SetClock(0.0)
    return RobotsCache(clock, ParserPool()), clock, []


def test_it_is_fetched_once_for_many_and_again_when_it_expires() -> None:
    async def run() -> None:
        book, clock, asked = cache_clock_and_requests()

        async def ask(place: str) -> Reply:
            asked.append(place)
            await asyncio.sleep(0)
            return Reply(200, {}, b"User-agent: *\nDisallow: /x")

        await asyncio.gather(*(book.rules("http://a.test/1", ask) for _ in range(10)))
        assert asked == ["http://a.test/robots.txt"]
        await book.rules("https://a.test/1", ask)
        clock.time_s = DAY_S + 1
        rules = await book.rules("http://a.test/1", ask)
        assert asked[1:] == ["https://a.test/robots.txt", "http://a.test/robots.txt"]
        assert not rules.allows("http://a.test/x", "afresh")
        assert book.fetching == {}

    asyncio.run(run())


def test_redirects_are_followed_five_times() -> None:
    async def fetched(hops: int) -> tuple[RobotsRules, int]:
        book, _, asked = cache_clock_and_requests()

        async def ask(place: str) -> Reply:
            asked.append(place)
            if len(asked) <= hops:
                return Reply(301, {"location": f"http://b.test/{len(asked)}"})
            return Reply(200, {}, b"User-agent: *\nDisallow: /")

        return await book.rules("http://a.test/", ask), len(asked)

    robots, asked = asyncio.run(fetched(5))
    assert (robots.allows(PAGE, "afresh"), asked) == (False, 6)
    robots, asked = asyncio.run(fetched(99))
    assert (robots.allows(PAGE, "afresh"), asked) == (True, 6)
