"""Limits how many received requests are worked on at once, so that threads are left for the dashboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from afresh.web.error_responses import RequestError

Result = TypeVar("Result")

MOST_AT_ONCE, MOST_OF_ONE = 8, 2


class ReceivingSlots:
    """At most ``MOST_AT_ONCE`` requests, and ``MOST_OF_ONE`` of the same sender, are worked on in threads. It
    belongs to one event loop. Others are answered with 503: whoever sends webhooks sends them again."""

    def __init__(self) -> None:
        self._busy: Counter[str] = Counter()

    async def run(self, sender: str, function: Callable[..., Result], *arguments: object) -> Result:
        """Return ``function(*arguments)``, called in a thread; raise ``RequestError`` if no slot is free."""
        if self._busy.total() >= MOST_AT_ONCE or self._busy[sender] >= MOST_OF_ONE:
            raise RequestError(503, "too many requests are being received", "send it again in a while")
        self._busy[sender] += 1
        try:
            return await run_in_threadpool(function, *arguments)
        finally:
            self._busy[sender] -= 1
            if not self._busy[sender]:
                del self._busy[sender]
