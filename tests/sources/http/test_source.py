"""The HTTP source on a site that behaves: conditional requests, politeness, counted requests, secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from tests.servers.site import Answer, Handler, Seen, Site, page, redirect
from tests.sources.polling import SetClock, lease_of, lease_with_copy, quick_source
from tests.waiting import until_async

from afresh.sources.context import SourceContext
from afresh.sources.http.pacing.pace import Pace
from afresh.sources.http.source import HttpSource
from afresh.sources.http.trust import HostTrust
from afresh.values.fetched import Fetched


def on_site(
    routes: dict[str, Handler],
    visit: Callable[[Site, HttpSource], Awaitable[None]],
    context: SourceContext | None = None,
    **changes: Any,
) -> Site:
    """Run ``visit`` with a site and a source for it."""

    async def run() -> Site:
        async with Site(routes) as site:
            source = quick_source(context, **changes)
            await visit(site, source)
            await source.close()
            return site

    return asyncio.run(run())


def versions(*bodies: bytes, status: int = 200, **headers: str) -> Handler:
    """A page that answers with each body in turn, and with the last for ever."""
    left: Iterator[bytes] = iter(bodies)
    last = bodies[-1]

    async def handler(_seen: Seen, answer: Answer) -> None:
        await answer.send(next(left, last), status, **headers)

    return handler


def test_a_conditional_get_sends_the_validators_back_verbatim_and_asks_for_the_same_encoding() -> None:
    etag = 'W/"a,b \\"c"'

    async def visit(site: Site, source: HttpSource) -> None:
        lease = lease_of(site.url + "/p")
        first = await source.poll(lease)
        assert (first.kind, first.content, first.media_type) == ("content", b"hello", "text/html")
        assert first.validators == {"etag": etag, "accept-encoding": "gzip, deflate"}
        other = lease_with_copy(lease, first)
        second = await source.poll(other)
        assert (second.kind, second.status, second.content) == ("unchanged", 304, None)
        assert second.validators == {**first.validators, "looked": f"{other.polled_s:.6f}"}
        assert second.bytes < first.bytes
        third = await source.poll(other, conditional=False)
        assert (third.kind, third.status, third.normal_hash) == ("unchanged", 200, first.normal_hash)

    site = on_site({"/p": page(b"hello", ETag=etag)}, visit, respect_robots=False)
    assert [seen.headers.get("if-none-match") for seen in site.seen] == [None, etag, None]


def test_the_encoding_pinned_with_the_validators_outlives_a_change_of_settings() -> None:
    async def visit(site: Site, source: HttpSource) -> None:
        validators = {"etag": '"1"', "accept-encoding": "gzip, deflate"}
        await source.poll(lease_of(site.url + "/p", validators=validators, content_hash=b"x" * 16))

    site = on_site({"/p": page(b"x")}, visit, respect_robots=False, accept_encoding="identity")
    assert site.seen[0].headers["accept-encoding"] == "gzip, deflate"


def test_requests_carry_the_expected_headers_and_no_others() -> None:
    async def visit(site: Site, source: HttpSource) -> None:
        await source.poll(lease_of(site.url + "/p"))

    site = on_site({"/p": page(b"x")}, visit, respect_robots=False)
    assert set(site.seen[0].headers) == {"host", "user-agent", "accept", "accept-encoding"}
    assert site.seen[0].headers["user-agent"].startswith("afresh/")
    assert "+http" in site.seen[0].headers["user-agent"]


def test_the_hash_decides_whatever_the_validators_say() -> None:
    async def visit(site: Site, source: HttpSource) -> None:
        lease = lease_of(site.url + "/p")
        kinds = []
        for _ in range(4):
            fetched = await source.poll(lease)
            kinds.append(fetched.kind)
            lease = lease_with_copy(lease, fetched)
        assert kinds == ["content", "unchanged", "content", "content"]

    on_site({"/p": versions(b"a", b"a", b"b", b"a")}, visit)


def test_every_request_is_admitted_and_counted() -> None:
    admitted: list[str] = []

    async def admit(group: str) -> None:
        admitted.append(group)

    async def visit(site: Site, source: HttpSource) -> None:
        first = await source.poll(lease_of(site.url + "/moved"))
        second = await source.poll(lease_of(site.url + "/p"))
        assert (first.requests, second.requests) == (3, 1)  # robots.txt, the redirect, the page · the page
        assert admitted == [source.group(site.url)] * len(site.seen)

    site = on_site({"/moved": redirect("/p"), "/p": page(b"x")}, visit, SourceContext(admit=admit))
    assert site.paths() == ["/robots.txt", "/moved", "/p", "/p"]


@pytest.mark.parametrize(
    ("statuses", "moved"),
    [
        ((301, 308), True),
        ((302,), False),
        ((301, 302), False),
        ((307, 301), False),
        ((303,), False),
        ((), None),
    ],
)
def test_only_permanent_redirects_are_reported(statuses: tuple[int, ...], moved: bool | None) -> None:
    routes = {f"/{i}": redirect(f"/{i + 1}", status) for i, status in enumerate(statuses)}
    end = f"/{len(statuses)}"

    async def visit(site: Site, source: HttpSource) -> None:
        fetched = await source.poll(lease_of(site.url + "/0"))
        assert fetched.content == b"here"
        assert fetched.moved_to == (site.url + end if moved else None)
        if statuses:
            assert fetched.validators["url"] == site.url + end

    on_site(routes | {end: page(b"here")}, visit)


def test_validators_go_only_to_the_address_that_they_came_from() -> None:
    async def visit(site: Site, source: HttpSource) -> None:
        lease = lease_of(site.url + "/old")
        again = await source.poll(lease_with_copy(lease, await source.poll(lease)))
        assert (again.kind, again.status) == ("unchanged", 304)

    routes = {"/old": redirect("/new"), "/new": page(b"x", ETag='"1"')}
    site = on_site(routes, visit, respect_robots=False)
    assert [seen.headers.get("if-none-match") for seen in site.seen] == [None, None, None, '"1"']


def test_secrets_reach_their_host_and_no_other_and_no_message() -> None:
    async def run() -> None:
        async with Site({"/p": page(b"stolen?")}) as other:
            away = f"http://localhost:{other.port}/p"
            routes = {"/p": redirect(away), "/wrong": redirect("gopher://t0kent0ken/")}
            async with Site(routes) as site:
                source = quick_source(
                    SourceContext(resolver={"TOKEN": "t0kent0ken"}.get),
                    headers={"Authorization": "Bearer env:TOKEN"},
                    cookies={"session": "env:TOKEN"},
                )
                fetched = await source.poll(lease_of(site.url + "/p"))
                wrong = await source.poll(lease_of(site.url + "/wrong"))
                await source.close()
            asked = [seen for seen in site.seen if seen.path == "/p"]
            assert asked[0].headers["authorization"] == "Bearer t0kent0ken"
            assert asked[0].headers["cookie"] == "session=t0kent0ken"
            assert fetched.content == b"stolen?"
            told = [repr(seen.headers) for seen in other.seen]
            told += [repr(seen.headers) for seen in site.seen if seen.path == "/robots.txt"]
            assert "•••" in wrong.problem
            assert not any("t0kent0ken" in text for text in (*told, repr(fetched), repr(wrong), repr(source)))

    asyncio.run(run())


def test_robots_txt_is_obeyed_at_every_hop() -> None:
    robots = versions(b"User-agent: *\nDisallow: /no\nCrawl-delay: 7", Content_Type="text/plain")

    async def visit(site: Site, source: HttpSource) -> None:
        for path in ("/no/1", "/sly"):
            fetched = await source.poll(lease_of(site.url + path))
            assert (fetched.kind, fetched.problem) == ("refused", "robots.txt forbids it")

    clock = SetClock()
    routes = {"/robots.txt": robots, "/sly": redirect("/no/2"), "/no/1": page(b"x"), "/no/2": page(b"x")}
    context = SourceContext(clock=clock, sleep=clock.sleep)
    site = on_site(routes, visit, context, longest_rest="1d")
    assert site.paths() == ["/robots.txt", "/sly"]


def test_crawl_delay_and_own_delay_are_kept_between_all_requests() -> None:
    clock = SetClock()
    times: list[float] = []

    async def noted(_seen: Seen, answer: Answer) -> None:
        times.append(clock.time_s)
        await answer.send(b"x")

    async def robots(_seen: Seen, answer: Answer) -> None:
        times.append(clock.time_s)
        await answer.send(b"User-agent: *\nCrawl-delay: 7", Content_Type="text/plain")

    async def visit(site: Site, source: HttpSource) -> None:
        leases = [lease_of(f"{site.url}/p?{i}") for i in range(4)]
        await asyncio.gather(*(source.poll(lease) for lease in leases))
        assert source.ready_s(source.group(site.url), clock.now_s()) == clock.now_s() + 7.0
        assert source.ready_s("elsewhere.test", clock.now_s()) == clock.now_s()

    context = SourceContext(clock=clock, sleep=clock.sleep)
    site = on_site({"/robots.txt": robots, "/p": noted}, visit, context, delay="1s", longest_rest="1d")
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert gaps == [7.0] * 4  # from the very first page on: robots.txt was a request too
    assert site.most_at_once == 1


def test_a_busy_host_is_left_alone_by_all_polls() -> None:
    clock = SetClock()

    async def visit(site: Site, source: HttpSource) -> None:
        busy = await source.poll(lease_of(site.url + "/busy"))
        assert (busy.kind, busy.retry_after_s, busy.status) == ("failed", 120.0, 429)
        assert busy.problem == "429 Too Many Requests"
        other = await source.poll(lease_of(site.url + "/p"))
        assert (other.kind, other.requests, other.retry_after_s) == ("failed", 0, 120.0)
        assert "rests for 2 m more" in other.problem
        assert source.ready_s(source.group(site.url), clock.now_s()) == clock.now_s() + 120.0
        clock.time_s += 120.0
        assert (await source.poll(lease_of(site.url + "/p"))).kind == "content"

    routes = {"/busy": versions(b"", status=429, Retry_After="120"), "/p": page(b"x")}
    on_site(
        routes, visit, SourceContext(clock=clock, sleep=clock.sleep), respect_robots=False, longest_rest="1d"
    )


def test_a_host_that_cannot_be_reached_backs_off_longer_each_time() -> None:
    clock = SetClock()
    context = SourceContext(clock=clock, sleep=clock.sleep)

    async def run() -> list[float]:
        async with Site() as site:
            dead = site.url
        source = quick_source(context, respect_robots=False, first_rest="60s", longest_rest="1d")
        rests = []
        for _ in range(3):
            fetched = await source.poll(lease_of(dead + "/p"))
            assert fetched.kind == "failed"
            assert fetched.problem.startswith("cannot connect: ")
            rests.append(source.ready_s(source.group(dead), clock.now_s()) - clock.now_s())
            clock.time_s += rests[-1]
        await source.close()
        return rests

    assert asyncio.run(run()) == [60.0, 120.0, 240.0]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "refused"), (403, "refused"), (404, "gone"), (410, "gone"), (451, "refused"), (400, "failed"),
     (500, "failed"), (503, "failed"), (206, "failed"), (304, "failed"), (300, "failed"), (599, "failed")],
)  # fmt: skip
def test_statuses_have_kinds_and_descriptions(status: int, kind: str) -> None:
    async def visit(site: Site, source: HttpSource) -> None:
        fetched = await source.poll(lease_of(site.url + "/p"))
        assert (fetched.kind, fetched.status) == (kind, status)
        assert str(status) in fetched.problem

    on_site({"/p": versions(b"x", status=status)}, visit, respect_robots=False)


def test_own_error_pages_and_near_duplicates_are_no_changes() -> None:
    words = " ".join(f"word{i}" for i in range(300)).encode()

    async def visit(site: Site, source: HttpSource) -> None:
        lease = lease_of(site.url + "/p")
        results = []
        for _ in range(4):
            fetched = await source.poll(lease)
            results.append((fetched.kind, fetched.problem))
            lease = lease_with_copy(lease, fetched)
        assert results == [
            ("content", ""),
            ("failed", "error page: matches 'Oops'"),
            ("unchanged", ""),
            ("content", ""),
        ]

    pages = (
        words,
        b"Oops, try again",
        words.replace(b"word7 ", b"seven "),
        b"something else altogether, really",
    )
    on_site({"/p": versions(*pages)}, visit, near_duplicate=0.9, soft_errors="Oops")


def test_another_recipe_makes_a_new_baseline_and_asks_for_the_content() -> None:
    async def visit(site: Site, source: HttpSource) -> None:
        lease = lease_of(site.url + "/p")
        first = await source.poll(lease)
        stricter = quick_source(text_only=True)
        second = await stricter.poll(lease_with_copy(lease, first))
        assert (second.kind, second.status, second.comparable) == ("content", 200, False)
        third = await stricter.poll(lease_with_copy(lease, second))
        assert (third.kind, third.status, third.comparable) == ("unchanged", 304, True)
        await stricter.close()

    on_site({"/p": page(b"<p>x</p>", ETag='"1"')}, visit)


def test_some_polls_drawn_at_random_are_sent_without_validators() -> None:
    async def visit(site: Site, source: HttpSource) -> None:
        source.trust = HostTrust()
        lease = lease_of(site.url + "/p")
        lease = lease_with_copy(lease, await source.poll(lease))
        for token in range(200):
            await source.poll(replace(lease, token=token))

    site = on_site({"/p": page(b"x", ETag='"1"')}, visit, respect_robots=False)
    plain = ["if-none-match" not in seen.headers for seen in site.seen]
    assert len(plain) == 201
    assert sum(plain[:20]) > 10  # most polls at first, and fewer as nothing is found
    assert 2 <= sum(plain[-50:]) <= 25


def test_a_page_that_kept_its_etag_over_new_content_is_asked_without_it_from_then_on() -> None:
    async def visit(site: Site, source: HttpSource) -> None:
        lease = lease_of(site.url + "/p")
        first = replace(lease_with_copy(lease, await source.poll(lease)), polled_s=100.0)
        unchanged = await source.poll(first)
        assert (unchanged.status, unchanged.validators["looked"]) == (304, "100.000000")
        held = replace(first, validators=unchanged.validators, polled_s=200.0)
        found = await source.poll(held, conditional=False)
        assert (found.kind, found.content, found.verified_s) == ("content", b"new", 100.0)
        assert found.validators == {"accept-encoding": "gzip, deflate", "lied": "etag"}
        again = await source.poll(replace(lease_with_copy(held, found), polled_s=300.0))
        assert (again.kind, again.status, again.verified_s) == ("unchanged", 200, None)
        assert again.validators == found.validators

    async def lying(seen: Seen, answer: Answer) -> None:
        looks.append(seen.headers.get("if-none-match"))
        body = b"old" if len(looks) == 1 else b"new"
        await (answer.send(b"", 304, ETag='"1"') if looks[-1] else answer.send(body, ETag='"1"'))

    looks: list[str | None] = []
    on_site({"/p": lying}, visit, respect_robots=False)
    assert looks == [None, '"1"', None, None]


def test_last_modified_is_reported_while_it_is_trusted() -> None:
    async def visit(site: Site, source: HttpSource) -> None:
        fetched = await source.poll(lease_of(site.url + "/p"))
        assert fetched.modified_s == 86400.0

    on_site({"/p": page(b"x", Last_Modified="Fri, 02 Jan 1970 00:00:00 GMT")}, visit)


def test_windows_are_part_of_when_a_host_is_ready() -> None:
    source = quick_source(SourceContext(clock=SetClock(0.0)), windows="02:00-03:00")
    assert source.ready_s("a.test", 0.0) == 7200.0
    assert source.ready_s("a.test", 7300.0) == 7300.0


def test_a_poll_of_what_is_no_address_is_refused_without_a_request() -> None:
    async def visit(_site: Site, source: HttpSource) -> None:
        fetched = await source.poll(lease_of("ftp://a.test/"))
        assert (fetched.kind, fetched.requests) == ("refused", 0)
        assert "is not an http or https address" in fetched.problem

    on_site({}, visit)


def test_a_cancelled_poll_and_a_closed_source_leave_nothing_behind() -> None:
    async def stall(_seen: Seen, answer: Answer) -> None:
        await answer.hang()

    async def visit(site: Site, source: HttpSource) -> None:
        task = asyncio.create_task(source.poll(lease_of(site.url + "/stall")))
        await until_async(lambda: site.seen, "the request arrives")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (await source.poll(lease_of(site.url + "/p"))).kind == "content"
        await source.close()
        closed: Fetched = await source.poll(lease_of(site.url + "/p"))
        assert (closed.kind, closed.problem) == ("failed", "connection broke: the source is closed")

    on_site({"/stall": stall, "/p": page(b"x")}, visit, respect_robots=False)


def test_an_item_that_moved_permanently_is_requested_there_until_that_fails() -> None:
    async def visit(site: Site, source: HttpSource) -> None:
        lease = lease_of(site.url + "/old")
        lease = lease_with_copy(lease, await source.poll(lease))
        again = await source.poll(lease)
        assert (again.kind, again.requests, again.moved_to) == ("unchanged", 1, site.url + "/new")
        lease = lease_with_copy(lease, again)  # as the store would give it to another process
        site.routes["/old"] = page(b"back again")
        assert (await source.poll(lease, conditional=False)).content == b"back again"  # an audit
        del site.routes["/new"]
        back = await source.poll(lease)
        assert (back.content, back.requests, back.moved_to) == (b"back again", 2, None)
        assert "moved" not in back.validators
        await source.poll(replace(lease, failures=1))

    routes = {"/old": redirect("/new", 308), "/new": page(b"x", ETag='"1"')}
    site = on_site(routes, visit, respect_robots=False)
    assert site.paths() == ["/old", "/new", "/new", "/old", "/new", "/old", "/old"]
    assert site.seen[2].headers["if-none-match"] == '"1"'


def test_a_remembered_target_is_checked_like_a_redirect_to_it() -> None:
    async def visit(site: Site, source: HttpSource) -> None:
        lease = lease_of(site.url + "/old")
        lease = lease_with_copy(lease, await source.poll(lease))
        for moved in ("http://169.254.169.254/", site.url + "/closed"):
            again = await source.poll(replace(lease, validators={"moved": moved}))
            assert (again.kind, again.moved_to) == ("unchanged", site.url + "/new")

    robots = page(b"User-agent: *\nDisallow: /closed", Content_Type="text/plain")
    routes = {"/robots.txt": robots, "/old": redirect("/new", 301), "/new": page(b"x"), "/closed": page(b"y")}
    site = on_site(routes, visit)
    assert site.paths() == ["/robots.txt", "/old", "/new", "/old", "/new", "/old", "/new"]


def test_sources_with_pages_on_one_host_are_one_visitor() -> None:
    clock = SetClock()
    times: list[float] = []

    async def noted(_seen: Seen, answer: Answer) -> None:
        times.append(clock.time_s)
        await answer.send(b"x")

    async def run() -> Site:
        async with Site({"/p": noted, "/busy": versions(b"", status=503, Retry_After="120")}) as site:
            context = SourceContext(clock=clock, sleep=clock.sleep)
            careful = {"longest_rest": "1d", "queue_time": "30s"}
            sources = [
                quick_source(context, name=str(delay), delay=f"{delay}s", **careful) for delay in (1, 4, 2)
            ]
            polls = [source.poll(lease_of(f"{site.url}/p?{n}")) for n in range(2) for source in sources]
            await asyncio.gather(*polls)
            gaps = [later - earlier for earlier, later in pairwise(times)]
            assert gaps == [4.0] * 5
            await sources[0].poll(lease_of(site.url + "/busy"))
            others = [await source.poll(lease_of(site.url + "/p")) for source in sources[1:]]
            assert [other.requests for other in others] == [0, 0]
            assert {source.ready_s(source.group(site.url), clock.now_s()) for source in sources} == {
                clock.now_s() + 120.0
            }
            stranger = quick_source(context, name="elsewhere")
            assert [len(source.backoffs()) for source in (*sources, stranger)] == [1, 1, 1, 0]
            await stranger.close()
            await sources[1].close()
            clock.time_s += 120.0
            (busy,) = sources[0].backoffs()
            assert busy.pace == Pace(0.85 / 4, 1 / 4)
            context.hosts.states[busy.group] = replace(context.hosts.states[busy.group], pace=None)
            for _ in range(2):
                await sources[0].poll(lease_of(site.url + "/p"))
            assert times[-1] - times[-2] == 2.0  # the most careful one is gone
            for source in sources:
                await source.close()
            return site

    site = asyncio.run(run())
    assert site.paths().count("/robots.txt") == 1
    assert site.most_at_once == 1


def test_a_poll_is_put_off_for_a_long_crawl_delay_after_robots_txt() -> None:
    clock = SetClock()

    async def visit(site: Site, source: HttpSource) -> None:
        lease = lease_of(site.url + "/page")
        first = await source.poll(lease)
        assert (first.put_off, first.requests, first.retry_after_s) == (True, 1, 90.0)
        clock.time_s += 90.0
        assert (await source.poll(lease)).content == b"x"

    robots = page(b"User-agent: *\nCrawl-delay: 90", Content_Type="text/plain")
    context = SourceContext(clock=clock, sleep=clock.sleep)
    on_site({"/robots.txt": robots, "/page": page(b"x")}, visit, context, longest_rest="1d")


def test_a_document_waits_for_a_long_crawl_delay_after_robots_txt() -> None:
    clock = SetClock()

    async def visit(site: Site, source: HttpSource) -> None:
        assert (await source.document(site.url + "/feed")).body == b"x"
        assert clock.slept == [90.0]

    robots = page(b"User-agent: *\nCrawl-delay: 90", Content_Type="text/plain")
    context = SourceContext(clock=clock, sleep=clock.sleep)
    on_site({"/robots.txt": robots, "/feed": page(b"x")}, visit, context, longest_rest="1d")
