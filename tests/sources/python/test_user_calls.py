"""Calls of user functions are counted until they end, also if they never begin."""

from __future__ import annotations

import asyncio
import threading

import pytest

from afresh.sources.python.user_calls import UserCalls
from afresh.sources.python.user_function import RaisedError

LIMIT_S = 60.0


def test_a_coroutine_that_is_cancelled_while_another_one_blocks_is_no_longer_counted() -> None:
    begun, free = threading.Event(), threading.Event()

    async def block(_argument: object) -> None:
        begun.set()
        free.wait(LIMIT_S)

    async def answer(argument: object) -> object:
        return argument

    async def work() -> object:
        calls = UserCalls("test", limit=2)
        blocking = asyncio.create_task(calls.call(block, None, "a"))
        assert await asyncio.to_thread(begun.wait, LIMIT_S)
        waiting = asyncio.create_task(calls.call(answer, 1, "b"))
        await asyncio.sleep(0)  # it is now in the queue of the loop that is blocked
        assert calls.is_full
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        free.set()
        await blocking
        found = await calls.call(answer, 2, "c")  # the loop has come back to what was in its queue
        assert not calls.is_full
        found = found, await calls.call(answer, 3, "b")
        await calls.close()
        return found

    assert asyncio.run(work()) == (2, 3)


def test_a_thread_that_cannot_be_started_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def work() -> object:
        calls = UserCalls("test", limit=1)
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError):
                await calls.call(str, 1, "a")
        return await calls.call(str, 2, "a")

    assert asyncio.run(work()) == "2"


def test_functions_that_hang_take_no_more_threads_than_allowed() -> None:
    free = threading.Event()

    def hang(_argument: object) -> None:
        free.wait(LIMIT_S)

    async def work() -> None:
        calls = UserCalls("test", limit=2)
        hanging = [asyncio.create_task(calls.call(hang, None, tag)) for tag in "ab"]
        await asyncio.sleep(0)
        with pytest.raises(RaisedError, match="all 2 calls still run"):
            await calls.call(hang, None, "c")
        free.set()
        await asyncio.gather(*hanging)
        await calls.call(hang, None, "c")

    asyncio.run(work())


def test_an_item_whose_call_hangs_is_not_called_again() -> None:
    free = threading.Event()

    async def work() -> None:
        calls = UserCalls("test", limit=9)
        hanging = asyncio.create_task(calls.call(lambda _given: free.wait(LIMIT_S), None, "a"))
        await asyncio.sleep(0)
        with pytest.raises(RaisedError, match="the earlier call for this item still runs"):
            await calls.call(str, 1, "a")
        free.set()
        await hanging

    asyncio.run(work())
