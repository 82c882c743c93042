"""Sends live updates as server-sent events: the texts of the Now page whenever there is a new snapshot.

``event: now`` has ``{"fields": {…}, "series": {…} or null}``. ``fields`` are the texts by name. ``series`` is
what the charts draw, from the same snapshot; only pages with charts get it, when there is a new point.
``event: here`` is sent every few seconds if there is nothing else to send. A page that receives no event says
so, and connects again. ``event: problem`` has the reason why the store cannot be read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from afresh.values.errors import StoreError
from afresh.web.dashboard_data import ProjectData
from afresh.web.reports.chart_series import compute_series
from afresh.web.reports.dashboard_figures import page_texts
from afresh.web.snapshot_cache import StatusSnapshot

TICK_S, KEEPALIVE_S = 1.0, 3.0
MOST_LISTENERS = 64


class LiveUpdates:
    """The streams of all open pages. They end when ``is_closing`` returns true, so the server can stop."""

    def __init__(self, data: ProjectData) -> None:
        self._data = data
        self.is_closing: Callable[[], bool] = lambda: False
        self.listeners = 0

    def stream_response(self, *, charts: bool = False) -> StreamingResponse:
        """Return the stream for one page. With ``charts`` it also has the series that the page draws."""
        return StreamingResponse(
            self._stream(charts), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )

    async def _stream(self, charts: bool) -> AsyncIterator[str]:
        self.listeners += 1
        sent: StatusSnapshot | None = None
        quiet_s = 0.0
        try:
            yield "retry: 2000\n\n"
            while not self.is_closing():
                message, sent = await self._next_message(sent, charts)
                quiet_s = 0.0 if message else quiet_s + TICK_S
                if message:
                    yield message
                elif quiet_s >= KEEPALIVE_S:
                    quiet_s = 0.0
                    yield "event: here\ndata: {}\n\n"
                await asyncio.sleep(TICK_S)
        finally:
            self.listeners -= 1

    async def _next_message(
        self, sent: StatusSnapshot | None, charts: bool
    ) -> tuple[str, StatusSnapshot | None]:
        """Return a tuple (next message, its snapshot). The message is empty if ``sent``, the last snapshot
        that was sent, is still the newest."""
        try:
            snapshot = await run_in_threadpool(self._data.snapshots.get)
        except StoreError as error:
            return f"event: problem\ndata: {json.dumps({'message': str(error)})}\n\n", None
        if sent is not None and snapshot.number == sent.number:
            return "", sent
        redraw = charts and (sent is None or _newest_point_s(snapshot) != _newest_point_s(sent))
        series = compute_series(snapshot).model_dump() if redraw else None
        data = json.dumps({"fields": page_texts(snapshot), "series": series}, ensure_ascii=False)
        return f"event: now\ndata: {data}\n\n", snapshot


def _newest_point_s(snapshot: StatusSnapshot) -> float | None:
    return float(snapshot.course[-1, 0]) if snapshot.course.size else None
