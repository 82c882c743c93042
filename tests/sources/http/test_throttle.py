"""The throttle starts requests as politeness allows, and polls wait for it only a short time."""

from __future__ import annotations

import asyncio

import pytest
from tests.sources.polling import SetClock

from afresh.sources.context import SourceContext
from afresh.sources.http.politeness import (
    HostRegistry,
    Politeness,
)
from afresh.sources.http.throttle import HostBackoffError, HostThrottle


def make_throttle(
    clock: SetClock, rules: Politeness, admitted: list[str], max_wait_s: float = 60.0
) -> HostThrottle:
    async def admit(group: str) -> None:
        admitted.append(group)

    context = SourceContext(clock=clock, sleep=clock.sleep, admit=admit)
    return HostThrottle("web", rules, context, max_wait_s=max_wait_s)


def test_requests_are_a_delay_apart_one_at_a_time_and_each_is_admitted_once() -> None:
    async def run() -> None:
        clock, admitted, starts, inside = SetClock(0.0), list[str](), list[float](), 0
        gate = make_throttle(clock, Politeness(delay_s=2.0), admitted)

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
        gate = make_throttle(clock, Politeness(delay_s=100.0), [])
        for number in range(20):
            async with gate.slot(f"{number}.test"):
                pass
        assert clock.slept == []

    asyncio.run(run())


def test_a_busy_host_backs_off_as_a_whole_and_polls_do_not_wait_for_it() -> None:
    async def run() -> None:
        clock, admitted = SetClock(0.0), list[str]()
        gate = make_throttle(clock, Politeness(), admitted, max_wait_s=30.0)
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


def test_a_cancelled_poll_gives_its_slot_back() -> None:
    async def run() -> None:
        gate = make_throttle(SetClock(0.0), Politeness(delay_s=0.0), [])

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


def test_hosts_that_need_not_be_remembered_are_forgotten() -> None:
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
