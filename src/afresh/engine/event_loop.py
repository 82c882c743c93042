"""The event loop of an engine's work, and how the process asks this work to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

NewEventLoop: TypeAlias = Callable[[], asyncio.AbstractEventLoop]
StopRequest: TypeAlias = Callable[[], None]
StopContext: TypeAlias = Callable[[StopRequest, float], AbstractContextManager[object]]
"""Given how to ask for a stop and how many seconds that may take: a context, within which any thread or
signal handler may ask."""

CANCEL_S = 1.5
"""How many seconds cancelled work may take to end."""


def run_coroutine(work: Coroutine[Any, Any, T], new_loop: NewEventLoop) -> T:
    """Run ``work`` to its end on an event loop of its own."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work)


async def cancellable(work: Coroutine[Any, Any, T], on_stop: StopContext) -> T:
    """Await ``work``, and cancel it when a stop is requested."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)

    def ask() -> None:
        loop.call_soon_threadsafe(task.cancel)

    with on_stop(ask, CANCEL_S):
        return await task


def new_fast_loop() -> asyncio.AbstractEventLoop:
    """Return a loop of uvloop where it is installed: a third more polls per second."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
