"""Limits the connections to the web server: idle ones end, and the longest idle one makes room for a new one.

uvicorn counts connections without a request as load, and answers 503 when there are many. Here, a connection
must send the head of a request within ten seconds, and of more than 256 connections the one that has been
idle longest is closed. So whoever opens connections and sends nothing keeps nobody out."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 256
HEAD_S = 10.0


class BoundedConnection(H11Protocol):
    """One connection of the web server."""

    _head_timer: asyncio.TimerHandle | None = None
    _active_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._active_s = self.loop.time()
        others = (
            each for each in self.connections if isinstance(each, BoundedConnection) and each is not self
        )
        idle = [each for each in others if each.is_idle]
        if len(self.connections) > MOST_CONNECTIONS and idle:
            min(idle, key=lambda each: each._active_s).transport.close()  # noqa: SLF001  # of this class
        self._limit_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._active_s = self.loop.time()
        if not self.is_idle:
            self._stop_timer()
        elif self._head_timer is None:
            self._limit_head()

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        cycle = getattr(self, "cycle", None)  # it is None before the first request
        return cycle is None or bool(cycle.response_complete)

    def _limit_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_S, self._close_if_idle)

    def _close_if_idle(self) -> None:
        self._head_timer = None
        if self.is_idle:
            self.transport.close()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
