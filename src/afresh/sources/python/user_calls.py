"""Calls functions of the user in threads of their own, so that one that hangs delays nothing else.

A thread cannot be ended. So each call has its own daemon thread, for which nobody waits when the program
ends, and the number of calls that run at the same time is limited. Coroutine functions run on an event loop
of their own, in one such thread: one that blocks it delays only other coroutine functions of the same caller.
A call whose caller was cancelled or timed out counts as running until the function returns."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

from afresh.sources.python.user_function import RaisedError, await_function, call_function

_END_S = 0.5  # how long ``close`` waits for the thread of the event loop
P = ParamSpec("P")
T = TypeVar("T")


class DaemonThreads(Executor):
    """An executor with one daemon thread for each call. Unlike those of ``ThreadPoolExecutor``, its threads
    do not keep the program from ending."""

    def __init__(self, name: str) -> None:
        self._name = name

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        call: Future[T] = Future()
        # From here on it cannot be cancelled: a function that never starts could not count its end.
        call.set_running_or_notify_cancel()

        def work() -> None:
            try:
                call.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001  # whoever waits for the result gets it
                call.set_exception(error)

        threading.Thread(target=work, daemon=True, name=self._name).start()
        return call


class UserCalls:
    """Calls functions of the user, at most ``limit`` at the same time. ``name`` names the threads."""

    def __init__(self, name: str, limit: int) -> None:
        self._name, self._limit = name, limit
        self._threads = DaemonThreads(name)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_ended: Future[None] = Future()
        self._lock, self._running, self._tags = threading.Lock(), 0, set[Hashable]()
        self._closed = False

    @property
    def is_full(self) -> bool:
        """Whether as many calls as allowed are running."""
        return self._running >= self._limit

    async def call(self, function: Callable[[Any], Any], argument: object, tag: Hashable) -> Any:
        """Call ``function`` with ``argument`` and return its result. Raise ``RaisedError`` if it raises an
        exception, if too many calls are running, or if an earlier call with the same ``tag`` still runs."""
        self._begin(tag)
        if inspect.iscoroutinefunction(function):
            work = self._await_and_count(function, argument, tag)
            try:
                under_way = asyncio.run_coroutine_threadsafe(work, self._user_loop())
            except RuntimeError:  # the thread cannot be started
                work.close()
                self._end(tag)
                raise
            return await asyncio.wrap_future(under_way)
        try:
            call = self._threads.submit(self._call_and_count, function, argument, tag)
        except RuntimeError:
            self._end(tag)
            raise
        return await asyncio.wrap_future(call)

    async def close(self) -> None:
        """Accept no more calls, and end the event loop. Calls that run are not waited for."""
        self._closed = True
        if self._loop is not None:
            loop, self._loop = self._loop, None
            loop.call_soon_threadsafe(loop.stop)
            await asyncio.wait({asyncio.wrap_future(self._loop_ended)}, timeout=_END_S)

    def _begin(self, tag: Hashable) -> None:
        with self._lock:
            if self._closed:
                raise RaisedError("the source is closed")
            if self._running >= self._limit:
                raise RaisedError(f"all {self._running} calls still run")
            if tag in self._tags:
                raise RaisedError("the earlier call for this item still runs")
            self._running += 1
            self._tags.add(tag)

    def _end(self, tag: Hashable) -> None:
        with self._lock:
            self._running -= 1
            self._tags.discard(tag)

    def _call_and_count(self, function: Callable[[Any], Any], argument: object, tag: Hashable) -> Any:
        try:
            return call_function(function, argument)
        finally:
            self._end(tag)

    async def _await_and_count(self, function: Callable[[Any], Any], argument: object, tag: Hashable) -> Any:
        try:
            return await await_function(function, argument)
        finally:
            self._end(tag)

    def _user_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop = asyncio.new_event_loop()
            threading.Thread(target=self._run_loop, args=(loop,), daemon=True, name=self._name).start()
            self._loop = loop
        return self._loop

    def _run_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        finally:
            loop.close()
            self._loop_ended.set_result(None)
