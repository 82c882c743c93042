"""What outlives the process: back-offs, robots.txt and the trust in validators are saved and loaded."""

from __future__ import annotations

import asyncio

from tests.servers.site import Answer, Seen, Site, page
from tests.sources.polling import SetClock, lease_of, lease_with_copy, quick_source

from afresh.sources.capabilities import GroupBackoff
from afresh.sources.context import SourceContext
from afresh.sources.http.urls import host_group


async def busy(_seen: Seen, answer: Answer) -> None:
    await answer.send(b"later", 503, Retry_After="120")


def test_a_host_that_asks_for_a_pause_is_left_alone_by_the_next_process() -> None:
    async def run() -> None:
        async with Site({"/p": busy}) as site:
            first = quick_source(longest_rest="1d")
            assert first.capabilities.state is first
            lease = lease_of(site.url + "/p")
            await first.poll(lease)
            rests, notes = first.backoffs(), first.save_state()
            await first.close()
            assert [(rest.group, rest.failures, rest.why) for rest in rests] == [
                (host_group(lease.key), 1, "503 Service Unavailable")
            ]
            second = quick_source(longest_rest="1d")
            second.load_state(notes, rests)
            asked = len(site.seen)
            fetched = await second.poll(lease)
            await second.close()
            assert len(site.seen) == asked
            assert fetched.kind == "failed"
            # Kept by the wall clock, waited for by the steady one: a rounding more may come back.
            assert 100 < (fetched.retry_after_s or 0) <= 120.1

    asyncio.run(run())


def test_robots_rules_and_trust_are_loaded_without_requests() -> None:
    async def run() -> None:
        rules = b"User-agent: *\nDisallow: /private"
        routes = {"/robots.txt": page(rules), "/p": page(b"x", ETag='"1"'), "/private": page(b"no")}
        async with Site(routes) as site:
            first = quick_source(respect_robots=True)
            lease = lease_of(site.url + "/p")
            fetched = await first.poll(lease)
            await first.poll(lease_with_copy(lease, fetched))
            notes, trust = first.save_state(), first.trust.save()
            await first.close()
            second = quick_source(respect_robots=True)
            second.load_state(notes)
            assert second.trust.save() == trust
            assert trust.hosts
            assert (await second.poll(lease_of(site.url + "/private"))).problem == "robots.txt forbids it"
            await second.close()
            assert [seen.path for seen in site.seen].count("/robots.txt") == 1

    asyncio.run(run())


def test_a_host_whose_robots_txt_cannot_be_read_is_left_alone_with_a_reason() -> None:
    async def broken(_seen: Seen, answer: Answer) -> None:
        await answer.send(b"", 500)

    async def run() -> None:
        async with Site({"/robots.txt": broken, "/p": page(b"x")}) as site:
            source, lease = quick_source(respect_robots=True), lease_of(site.url + "/p")
            first = await source.poll(lease)
            assert "robots.txt cannot be read (status 500)" in first.problem
            (rest,) = source.backoffs()
            assert (rest.group, rest.why) == (host_group(lease.key), "robots.txt cannot be read (status 500)")
            now_s = rest.until_s - 30.0
            assert source.ready_s(rest.group, now_s) > now_s + 20.0
            await source.close()

    asyncio.run(run())


def test_a_remembered_answer_says_that_it_is_remembered_and_until_when() -> None:
    async def broken(_seen: Seen, answer: Answer) -> None:
        await answer.send(b"", 500)

    async def run() -> None:
        clock = SetClock(1e9)
        async with Site({"/robots.txt": broken}) as site:
            lease, notes = lease_of(site.url + "/p"), b""
            for words in (
                "(status 500)",
                "; remembered since 2001-09-09 01:46:40 UTC, asked for again from ",
            ):
                source = quick_source(SourceContext(clock=clock), respect_robots=True)
                source.load_state(notes)
                assert words in (await source.poll(lease)).problem
                notes = source.save_state()
                await source.close()
            assert len(site.seen) == 1

    asyncio.run(run())


def test_a_server_that_gave_no_answer_is_asked_again_when_its_back_off_ends() -> None:
    async def silent(_seen: Seen, answer: Answer) -> None:
        answer.hang_up()

    async def run() -> None:
        clock = SetClock(1e9)
        context = SourceContext(clock=clock, sleep=clock.sleep)
        async with Site({"/robots.txt": silent, "/p": page(b"x")}) as site:
            first, lease = (
                quick_source(context, respect_robots=True, first_rest="10s", longest_rest="1d"),
                lease_of(site.url + "/p"),
            )
            failed = await first.poll(lease)
            assert "robots.txt cannot be read" in failed.problem
            assert failed.retry_after_s == 10.0
            rests, notes = first.backoffs(), first.save_state()
            await first.close()
            site.routes["/robots.txt"] = page(b"")
            context = SourceContext(clock=clock, sleep=clock.sleep)
            second = quick_source(context, respect_robots=True, first_rest="10s", longest_rest="1d")
            second.load_state(notes, rests)
            assert (await second.poll(lease)).kind == "content"
            assert clock.slept == [10.0]
            await second.close()

    asyncio.run(run())


def test_state_of_another_version_and_expired_back_offs_are_ignored() -> None:
    clock = SetClock()
    source = quick_source(SourceContext(clock=clock), longest_rest="1d", queue_time="0s")
    source.load_state(b'{"v": 99, "robots": 3}', [GroupBackoff("a.test", clock.now_s() - 1.0, 5, "busy")])
    assert source.ready_s("a.test", clock.now_s()) == clock.now_s()
    source.load_state(b"", [GroupBackoff("a.test", clock.now_s() + 1e9, 5, "busy")])
    assert source.ready_s("a.test", clock.now_s()) == clock.now_s() + 86400.0  # a clock that was set back
