"""The python source: any function that gives an item's content for its key, for all that is not HTTP.

``call = "module:function"`` in the settings; the function takes the key and returns bytes, text, or None
where there is no such item; it may be a coroutine function. Others run on threads of their own.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from afresh.sources.change_detection import Comparison, compare_content
from afresh.sources.context import SourceContext
from afresh.sources.open_hours import OpenHours
from afresh.sources.python.user_function import (
    RaisedError,
    await_function,
    call_function,
    describe_error,
    find_function,
)
from afresh.sources.settings import PythonSettings
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing


class PythonSource:
    """See ``Source``. One group for all items; one call counts as one request.

    A function that does not come back in time is given up: its poll fails, but the thread that it holds is
    free again only when it returns. While all threads are held, polls fail without calling it.
    """

    def __init__(self, settings: PythonSettings, context: SourceContext) -> None:
        self._settings, self._context = settings, context
        self._function = find_function(settings.call)
        self._recipe = settings.recipe
        self._hours = OpenHours(settings.open_windows)
        self._threads = ThreadPoolExecutor(settings.concurrency, thread_name_prefix=f"afresh {settings.name}")
        self._held = 0

    @property
    def name(self) -> str:
        """The source's name in the settings."""
        return self._settings.name

    def group(self, key: str) -> str:
        """All items are one group."""
        del key
        return self._settings.call

    def ready_s(self, group: str, now_s: float) -> float:
        """Now or when a window opens; infinite while all threads are held."""
        del group
        return float("inf") if self._held >= self._settings.concurrency else self._hours.next_opening_s(now_s)

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        """Call the function once; see ``Source.poll``. There is nothing conditional about it."""
        del conditional
        if self._held >= self._settings.concurrency:
            return Fetched("failed", problem=f"{self._settings.call}: all {self._held} calls still run")
        await self._context.admit(lease.group)
        start_s = self._context.clock.elapsed_s()
        try:
            async with asyncio.timeout(self._settings.timeout):
                fetched = await self._judged(lease, await self._call(lease.key))
        except TimeoutError:
            fetched = Fetched("failed", problem=f"no answer within {self._settings.timeout:g} s")
        except Exception as error:  # noqa: BLE001  # whatever comes of the user's code is its answer
            words = str(error) if isinstance(error, RaisedError) else describe_error(error)
            fetched = Fetched("failed", problem=words)
        return replace(fetched, requests=1, seconds=self._context.clock.elapsed_s() - start_s)

    async def listings(self) -> AsyncIterator[Listing]:
        """A function lists nothing."""
        return
        yield

    async def close(self) -> None:
        """Take no more calls; those that run are left to end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _call(self, key: str) -> Any:
        self._held += 1
        if inspect.iscoroutinefunction(self._function):
            try:
                return await await_function(self._function, key)
            finally:
                self._held -= 1
        loop = asyncio.get_running_loop()
        try:
            call = self._threads.submit(call_function, self._function, key)
        except RuntimeError:
            self._held -= 1
            raise
        call.add_done_callback(lambda _: loop.is_closed() or loop.call_soon_threadsafe(self._released))
        return await asyncio.wrap_future(call)

    def _released(self) -> None:
        self._held -= 1

    async def _judged(self, lease: Lease, answer: object) -> Fetched:
        if answer is None:
            return Fetched("gone", problem="the function knows no such item")
        if not isinstance(answer, bytes | bytearray | memoryview | str):
            return Fetched("failed", problem=f"gave {type(answer).__name__}, not bytes or text")
        media_type = "text/plain; charset=utf-8" if isinstance(answer, str) else "application/octet-stream"
        content = answer.encode("utf-8", "replace") if isinstance(answer, str) else bytes(answer)
        if len(content) > self._settings.max_size:
            return Fetched(
                "failed", problem=f"gave {len(content)} bytes, more than {self._settings.max_size}"
            )
        found = await asyncio.to_thread(partial(self._compare, lease, content, media_type))
        return found.fetched(content, media_type)

    def _compare(self, lease: Lease, content: bytes, media_type: str) -> Comparison:
        return compare_content(
            content,
            media_type,
            self._recipe.for_item(lease.selector),
            held_hash=lease.content_hash,
            held_notes=lease.validators,
            near_duplicate=self._settings.near_duplicate,
        )
