"""The virtual time that other tests rely on: it jumps, keeps order, and never waits for ever."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.virtual_time import StuckError, VirtualTime


def test_hours_of_timers_pass_in_their_order() -> None:
    virtual, ended = VirtualTime(), list[tuple[str, float]]()

    async def wait(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        ended.append((name, virtual.now_s() - begun_s))

    async def work() -> None:
        await asyncio.gather(wait("late", 7200.0), wait("soon", 60.0))

    begun_s, really_s = virtual.now_s(), time.monotonic()
    virtual.run(work())
    assert [name for name, _ in ended] == ["soon", "late"]
    assert [after_s for _, after_s in ended] == pytest.approx([60.0, 7200.0], abs=0.01)
    assert time.monotonic() - really_s < 3600.0  # nobody waited


def test_who_waits_awake_sees_the_time_go_on() -> None:
    virtual = VirtualTime()

    async def work() -> None:
        end_s = virtual.elapsed_s() + 0.01
        while virtual.elapsed_s() < end_s:
            await asyncio.sleep(0)

    virtual.run(work())


def test_no_time_passes_while_threads_would_work() -> None:
    virtual, pool = VirtualTime(), ThreadPoolExecutor(1)

    async def work() -> float:
        begun_s = virtual.elapsed_s()
        found = await asyncio.to_thread(sum, range(10))
        found += await asyncio.wrap_future(pool.submit(sum, range(10)))
        assert await asyncio.wrap_future(pool.submit(threading.get_ident)) == threading.get_ident()
        assert found == 90
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        return virtual.elapsed_s() - begun_s

    assert virtual.run(work()) < 0.01
    pool.shutdown()


def test_waiting_for_what_never_comes_is_an_error() -> None:
    async def work() -> None:
        await asyncio.Event().wait()

    with pytest.raises(StuckError):
        VirtualTime().run(work())


def test_two_runs_are_the_same() -> None:
    def seen() -> list[float]:
        virtual, times = VirtualTime(), list[float]()

        async def work() -> None:
            for number in range(20):
                await asyncio.sleep(0.1 * (number % 3))
                times.append(await asyncio.to_thread(virtual.now_s))

        virtual.run(work())
        return times

    assert seen() == seen()
