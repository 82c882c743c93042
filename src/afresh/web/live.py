"""Live updates as server-sent events: the texts of the Now page whenever there is a new look.

``event: now`` carries ``{"fields": {…}, "course_s": time of the newest point of the course}``; ``event:
here`` says every few seconds that we are still there: a page that hears nothing tells, and asks anew.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from afresh.values.errors import StoreError
from afresh.web.context import Context
from afresh.web.now_view import fields
from afresh.web.watching import Look

TICK_S, HERE_S = 1.0, 3.0
MOST_LISTENERS = 64


class Live:
    """All who listen. ``is_closing`` says when the server stops: their streams must end before it can."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.is_closing: Callable[[], bool] = lambda: False
        self.listeners = 0

    def response(self) -> StreamingResponse:
        """One listener's stream."""
        return StreamingResponse(
            self._stream(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )

    async def _stream(self) -> AsyncIterator[str]:
        self.listeners += 1
        number, quiet_s = -1, 0.0
        try:
            yield "retry: 2000\n\n"
            while not self.is_closing():
                message, number = await self._message(number)
                quiet_s = 0.0 if message else quiet_s + TICK_S
                if message:
                    yield message
                elif quiet_s >= HERE_S:
                    quiet_s = 0.0
                    yield "event: here\ndata: {}\n\n"
                await asyncio.sleep(TICK_S)
        finally:
            self.listeners -= 1

    async def _message(self, number: int) -> tuple[str, int]:
        try:
            look = await run_in_threadpool(self._context.watcher.look)
        except StoreError as error:
            return f"event: problem\ndata: {json.dumps({'message': str(error)})}\n\n", -1
        if look.number == number:
            return "", number
        return f"event: now\ndata: {json.dumps(payload(look), ensure_ascii=False)}\n\n", look.number


def payload(look: Look) -> dict[str, object]:
    """What one event says."""
    return {"fields": fields(look), "course_s": float(look.course[-1, 0]) if look.course.size else None}
