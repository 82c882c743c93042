"""Politeness: whatever happens, requests to a host keep their distance; and the turnstile that waits."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources.polling import SetClock

from afresh.sources.context import SourceContext
from afresh.sources.http.hosts import HostRegistry
from afresh.sources.http.politeness import (
    HostCondition,
    HostState,
    Politeness,
    ready_s,
    record_end,
    record_start,
)
from afresh.sources.http.throttle import HostBackoffError, HostThrottle

VERDICTS: st.SearchStrategy[HostCondition] = st.sampled_from(["fine", "busy", "down"])
MANNERS = st.builds(
    Politeness,
    delay_s=st.floats(0, 100),
    concurrency=st.integers(1, 3),
    first_rest_s=st.floats(0.1, 100),
    longest_rest_s=st.floats(100, 1e5),
)
STEPS = st.lists(
    st.tuples(st.booleans(), VERDICTS, st.none() | st.floats(0, 1e7), st.floats(0, 300)), max_size=40
)


@given(MANNERS, st.floats(0, 50), STEPS)
@settings(deadline=None)
def test_starts_keep_the_delay_and_never_exceed_the_number_at_once(
    manners: Politeness, crawl_delay_s: float, steps: list[tuple[bool, HostCondition, float | None, float]]
) -> None:
    host, now_s = HostState(crawl_delay_s=crawl_delay_s), 0.0
    starts: list[float] = []
    for start, verdict, retry_after_s, wait_s in steps:
        if start and ready_s(host, manners) != float("inf"):
            now_s = max(now_s, ready_s(host, manners))
            host = record_start(host, now_s)
            starts.append(now_s)
        elif host.in_flight:
            host = record_end(host, manners, now_s, verdict, retry_after_s)
        assert 0 <= host.in_flight <= manners.concurrency
        now_s += wait_s
    delay_s = max(manners.delay_s, crawl_delay_s)
    assert all(later - earlier >= delay_s * (1 - 1e-12) - 1e-9 for earlier, later in pairwise(starts))


@given(MANNERS, st.integers(1, 200))
@settings(deadline=None)
def test_rests_double_up_to_the_longest_and_end_with_one_good_answer(
    manners: Politeness, failures: int
) -> None:
    host, now_s = HostState(), 0.0
    rests = []
    for _ in range(failures):
        host = record_end(record_start(host, now_s), manners, now_s, "down")
        rests.append(ready_s(host, manners) - now_s)
        now_s = ready_s(host, manners)
    firsts = [manners.first_rest_s * 2**k for k in range(min(failures, 30))]
    expected = [max(min(rest, manners.longest_rest_s), manners.delay_s) for rest in firsts]
    assert rests[:30] == pytest.approx(expected)
    assert rests[-1] <= max(manners.longest_rest_s, manners.delay_s) * (1 + 1e-9)
    well = record_end(record_start(HostState(failures=failures), 0.0), manners, 0.0, "fine")
    assert (well.failures, ready_s(well, manners)) == (0, manners.delay_s)


@given(MANNERS, st.floats(0, 1e9))
@settings(deadline=None)
def test_retry_after_is_kept_up_to_the_longest_rest(manners: Politeness, asked_s: float) -> None:
    host = record_end(record_start(HostState(), 0.0), manners, 0.0, "busy", asked_s)
    assert host.next_s >= min(asked_s, manners.longest_rest_s)
    assert host.next_s <= max(manners.longest_rest_s, manners.delay_s)


def turnstile(
    clock: SetClock, manners: Politeness, admitted: list[str], max_wait_s: float = 60.0
) -> HostThrottle:
    async def admit(group: str) -> None:
        admitted.append(group)

    around = SourceContext(clock=clock, sleep=clock.sleep, admit=admit)
    return HostThrottle("web", manners, around, max_wait_s=max_wait_s)


def test_turns_are_a_delay_apart_one_at_a_time_and_each_is_admitted_once() -> None:
    async def run() -> None:
        clock, admitted, starts, inside = SetClock(0.0), list[str](), list[float](), 0
        gate = turnstile(clock, Politeness(delay_s=2.0), admitted)

        async def visit() -> None:
            nonlocal inside
            async with gate.slot("a.test"):
                inside += 1
                assert inside == 1
                starts.append(clock.elapsed_s())
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(visit() for _ in range(5)))
        assert starts == [0.0, 2.0, 4.0, 6.0, 8.0]
        assert admitted == ["a.test"] * 5

    asyncio.run(run())


def test_hosts_do_not_wait_for_one_another() -> None:
    async def run() -> None:
        clock = SetClock(0.0)
        gate = turnstile(clock, Politeness(delay_s=100.0), [])
        for number in range(20):
            async with gate.slot(f"{number}.test"):
                pass
        assert clock.slept == []

    asyncio.run(run())


def test_a_busy_host_rests_as_a_whole_and_polls_do_not_sit_and_wait() -> None:
    async def run() -> None:
        clock, admitted = SetClock(0.0), list[str]()
        gate = turnstile(clock, Politeness(), admitted, max_wait_s=30.0)
        async with gate.slot("a.test") as turn:
            turn.condition, turn.retry_after_s = "busy", 600.0
        assert gate.wait_s("a.test") == 600.0
        with pytest.raises(HostBackoffError, match=r"a\.test rests for 10 m more"):
            async with gate.slot("a.test"):
                pass
        assert (clock.slept, admitted) == ([], ["a.test"])
        clock.time_s = 600.0
        async with gate.slot("a.test"):
            pass

    asyncio.run(run())


def test_a_cancelled_poll_gives_its_turn_back() -> None:
    async def run() -> None:
        gate = turnstile(SetClock(0.0), Politeness(delay_s=0.0), [])

        async def stuck() -> None:
            async with gate.slot("a.test"):
                await asyncio.Event().wait()

        holder, waiter = asyncio.create_task(stuck()), asyncio.create_task(stuck())
        await asyncio.sleep(0)
        assert gate.wait_s("a.test") == float("inf")
        waiter.cancel()
        holder.cancel()
        await asyncio.gather(holder, waiter, return_exceptions=True)
        assert gate.wait_s("a.test") == 0.0
        async with gate.slot("a.test"):
            pass

    asyncio.run(run())


def test_hosts_long_done_with_are_forgotten() -> None:
    async def run() -> None:
        clock = SetClock(0.0)
        hosts = HostRegistry()
        context = SourceContext(clock=clock, sleep=clock.sleep, hosts=hosts)
        gate = HostThrottle("web", Politeness(delay_s=1.0), context, max_wait_s=60.0)
        for number in range(30_000):
            clock.time_s += 1.0
            async with gate.slot(f"{number}.test"):
                pass
        assert len(hosts.states) <= 10_001
        assert hosts.queues == {}

    asyncio.run(run())
