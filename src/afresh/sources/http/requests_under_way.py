"""The requests that wait for their replies: one that keeps a slot for too long can be cut short."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from afresh.sources.http.fetcher import Reply
from afresh.values.clock import Clock


@dataclass(frozen=True, slots=True)
class _UnderWay:
    begun_s: float
    limit: asyncio.Timeout


class RequestsUnderWay:
    """The request of each task that waits for a reply; a task has one at a time. A request that is cut has a
    reply with trouble ``slow``, so that its host rests as after a transfer that stalls."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._requests: dict[asyncio.Task[object], _UnderWay] = {}

    async def wait_for(self, reply: Awaitable[Reply]) -> Reply:
        """Return the reply, or one that says that the request was cut."""
        task, begun_s = asyncio.current_task(), self._clock.elapsed_s()
        assert task is not None
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._requests[task] = _UnderWay(begun_s, limit)
                return await reply
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            self._requests.pop(task, None)
        lasted_s = self._clock.elapsed_s() - begun_s
        problem = (
            f"ended after {lasted_s:.1f} s: it kept others waiting, and this host usually answers sooner"
        )
        return Reply(seconds=lasted_s, trouble="slow", problem=problem)

    def lasted_s(self, task: asyncio.Task[object]) -> float:
        """Return for how many seconds the request of a task has been under way; 0 if it has none."""
        found = self._requests.get(task)
        return 0.0 if found is None else self._clock.elapsed_s() - found.begun_s

    def cut(self, task: asyncio.Task[object]) -> None:
        """End the request of a task, if it has one."""
        found = self._requests.get(task)
        if found is not None and not found.limit.expired():
            found.limit.reschedule(asyncio.get_running_loop().time())
