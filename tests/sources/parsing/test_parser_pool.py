"""Large inputs are parsed by processes that end when they take too much, and when nobody needs them."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.sources.parsing.costly import crash, describe, hoard, print_much, refuse, spin
from tests.waiting import LIMIT_S, until_async

from afresh.sources.parsing.parse_budget import SMALL_BYTES, ParseBudget, ParseBudgetError
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.values.leftovers import LEFTOVERS

LARGE = b"x" * (SMALL_BYTES + 1)


def little(_size: int) -> ParseBudget:
    return ParseBudget(processor_s=0.2, memory_bytes=50_000_000)


@contextmanager
def joined(workers: int = 1) -> Iterator[ParserPool]:
    with ParserPool(workers, little).joined() as pool:
        yield pool


def ends(pid: int) -> bool:
    """Wait until a process has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], LIMIT_S)[0])
    finally:
        os.close(handle)


def test_small_inputs_stay_and_large_ones_leave_the_process() -> None:
    before = set(LEFTOVERS.processes)
    with joined() as pool:
        assert pool.parse_here(describe, LARGE[1:], 7) == (SMALL_BYTES, False, (7,))
        assert LEFTOVERS.processes == before
        assert pool.parse_here(describe, LARGE, 7) == (SMALL_BYTES + 1, True, (7,))
        [worker] = LEFTOVERS.processes - before
        assert pool.parse_here(print_much, LARGE) == len(LARGE)
        assert LEFTOVERS.processes - before == {worker}  # it serves again
    assert LEFTOVERS.processes == before
    assert ends(worker)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (spin, "takes more than 0.2 s"),
        (hoard, "needs more than 50 MB of memory"),
        (crash, "breaks its parser"),
        (refuse, "failed with KeyError: 16385"),
    ],
)
def test_what_takes_too_much_is_ended_and_its_process_replaced(function: object, words: str) -> None:
    assert callable(function)
    with joined() as pool:
        with pytest.raises(ParseBudgetError, match=words):
            pool.parse_here(function, LARGE)
        assert pool.parse_here(describe, LARGE)[0] == len(LARGE)


def test_the_event_loop_goes_on_while_a_process_works() -> None:
    async def run() -> int:
        with joined() as pool:
            work = asyncio.create_task(pool.parse(spin, LARGE))
            turns = 0
            while not work.done():
                await asyncio.sleep(0.001)
                turns += 1
            with pytest.raises(ParseBudgetError):
                await work
            return turns

    assert asyncio.run(run()) > 10


def test_leaving_ends_what_is_being_parsed() -> None:
    async def run() -> None:
        pool = ParserPool(1, lambda _: ParseBudget(processor_s=1e6))
        pool.join()
        before = set(LEFTOVERS.processes)
        work = asyncio.create_task(pool.parse(spin, LARGE))
        await until_async(lambda: LEFTOVERS.processes != before, "a process has started")
        [worker] = LEFTOVERS.processes - before
        pool.leave()
        with pytest.raises(ParseBudgetError):
            await work
        assert ends(worker)
        with pytest.raises(ParseBudgetError, match="have been ended"):
            pool.parse_here(describe, LARGE)

    asyncio.run(run())


def test_a_process_that_ended_by_itself_is_replaced() -> None:
    before = set(LEFTOVERS.processes)
    with joined() as pool:
        pool.parse_here(describe, LARGE)
        [worker] = LEFTOVERS.processes - before
        os.kill(worker, signal.SIGKILL)
        assert ends(worker)
        assert pool.parse_here(describe, LARGE)[0] == len(LARGE)


def test_a_killed_program_leaves_no_parser_behind() -> None:
    program = """
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.values.leftovers import LEFTOVERS
pool = ParserPool()
pool.join()
pool.parse_here(len, bytes(100_000))
print(*LEFTOVERS.processes, flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        worker = int(running.stdout.readline())
        os.kill(worker, 0)  # it runs
        running.kill()
    assert ends(worker)


def test_heavy_inputs_of_one_party_do_not_delay_another() -> None:
    """Ten inputs of one host take all the time they may; those of another one pass between them."""

    async def run() -> tuple[int, int]:
        with joined(workers=2) as pool:
            await pool.parse(describe, LARGE, party="honest")
            heavy = [asyncio.create_task(pool.parse(spin, LARGE, party="heavy")) for _ in range(10)]
            await asyncio.sleep(0)
            for _ in range(4):
                assert (await pool.parse(describe, LARGE, party="honest"))[0] == len(LARGE)
            ended = sum(task.done() for task in heavy)
            heavy[-1].cancel()
            answers = await asyncio.gather(*heavy, return_exceptions=True)
            return ended, sum(isinstance(answer, ParseBudgetError) for answer in answers)

    ended, failed = asyncio.run(run())
    assert ended < 9  # the honest ones did not wait for all of them
    assert failed == 9


def test_cancelled_inputs_keep_no_process_busy() -> None:
    async def run() -> int:
        with joined() as pool:
            for _ in range(50):
                tasks = [asyncio.create_task(pool.parse(describe, LARGE)) for _ in range(3)]
                await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            return (await pool.parse(describe, LARGE))[0]

    assert asyncio.run(asyncio.wait_for(run(), LIMIT_S)) == len(LARGE)
