"""Runs the work of an engine on an event loop, and cancels it when a stop is requested."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

NewEventLoop: TypeAlias = Callable[[], asyncio.AbstractEventLoop]
StopRequest: TypeAlias = Callable[[], None]
StopContext: TypeAlias = Callable[[StopRequest, float], AbstractContextManager[object]]
"""A function of two arguments: a function that requests a stop, and the seconds that the stop may take. It
returns a context manager: inside its ``with`` block any thread or signal handler may call the first one."""

CANCEL_S = 1.5
"""How many seconds cancelled work may take to end."""


def run_coroutine(work: Coroutine[Any, Any, T], new_loop: NewEventLoop) -> T:
    """Run ``work`` to its end on a new event loop, and return its result."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work)


async def cancel_on_stop(work: Coroutine[Any, Any, T], on_stop: StopContext) -> T:
    """Await ``work`` and return its result; cancel ``work`` if a stop is requested."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)

    def ask() -> None:
        loop.call_soon_threadsafe(task.cancel)

    with on_stop(ask, CANCEL_S):
        return await task


async def stop_after(work: Coroutine[Any, Any, T], limit_s: float) -> T | None:
    """Await ``work`` and return its result; after ``limit_s`` seconds cancel it, and return None."""
    try:
        async with asyncio.timeout(None if limit_s == math.inf else limit_s) as limit:
            return await work
    except TimeoutError:
        if limit.expired():
            return None
        raise


def new_fast_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop: one of uvloop if it is installed, because it allows a third more polls."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
