"""Live updates as server-sent events: the texts of the Now page whenever there is a new look.

``event: now`` carries ``{"fields": {…}, "series": {…} or null}``. ``series`` is what the charts draw, from
the same look as the texts; it is sent to pages that have charts, and only when the course has a new point.
``event: here`` says every few seconds that we are still there: a page that hears nothing tells, and asks
anew.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from afresh.values.errors import StoreError
from afresh.web.context import Context
from afresh.web.now_view import fields, series
from afresh.web.watching import Look

TICK_S, HERE_S = 1.0, 3.0
MOST_LISTENERS = 64


class Live:
    """All who listen. ``is_closing`` says when the server stops: their streams must end before it can."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.is_closing: Callable[[], bool] = lambda: False
        self.listeners = 0

    def response(self, *, charts: bool = False) -> StreamingResponse:
        """One listener's stream; ``charts`` says whether its page draws the series."""
        return StreamingResponse(
            self._stream(charts), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )

    async def _stream(self, charts: bool) -> AsyncIterator[str]:
        self.listeners += 1
        told: Look | None = None
        quiet_s = 0.0
        try:
            yield "retry: 2000\n\n"
            while not self.is_closing():
                message, told = await self._message(told, charts)
                quiet_s = 0.0 if message else quiet_s + TICK_S
                if message:
                    yield message
                elif quiet_s >= HERE_S:
                    quiet_s = 0.0
                    yield "event: here\ndata: {}\n\n"
                await asyncio.sleep(TICK_S)
        finally:
            self.listeners -= 1

    async def _message(self, told: Look | None, charts: bool) -> tuple[str, Look | None]:
        """What is new since the look that was ``told`` last, and the look that is told now."""
        try:
            look = await run_in_threadpool(self._context.watcher.look)
        except StoreError as error:
            return f"event: problem\ndata: {json.dumps({'message': str(error)})}\n\n", None
        if told is not None and look.number == told.number:
            return "", told
        redraw = charts and (told is None or newest_point_s(look) != newest_point_s(told))
        data = json.dumps(payload(look, redraw=redraw), ensure_ascii=False)
        return f"event: now\ndata: {data}\n\n", look


def payload(look: Look, *, redraw: bool) -> dict[str, object]:
    """What one event says; ``redraw``: with the series that the charts draw."""
    return {"fields": fields(look), "series": series(look) if redraw else None}


def newest_point_s(look: Look) -> float | None:
    """The time of the newest point of the course."""
    return float(look.course[-1, 0]) if look.course.size else None
