"""Calls of user functions are counted until they end, also if they never begin."""

from __future__ import annotations

import asyncio
import threading

import pytest

from afresh.sources.python.user_calls import UserCalls

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
