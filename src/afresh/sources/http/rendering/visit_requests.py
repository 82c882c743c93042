"""The requests of one visit of a page: how many were sent, and whether the page still waits for one.

Most requests pass ``PageVisit``, which sends them and calls ``send``. Some do not pass it: those that follow
a redirect, WebSockets, and downloads. The browser tells of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Download, Page, Request

_LONGEST_WAIT_S = 10.0
# Connections that stay open for what the server may say later.
_UNAWAITED = frozenset({"eventsource", "websocket", "ping"})


class VisitRequests:
    """Counts the requests of a visit."""

    def __init__(self) -> None:
        self.count = 0
        self._addresses: set[str] = set()
        self._waited_s: dict[Request, float] = {}  # for each request that is under way

    def watch(self, context: BrowserContext, page: Page) -> None:
        """Notice what the browser tells of requests from now on."""
        context.on("request", self._begin)
        context.on("requestfinished", self._end)
        context.on("requestfailed", self._end)
        page.on("websocket", lambda socket: self.send(socket.url))
        page.on("download", self._download)

    def send(self, address: str) -> None:
        """Count a request."""
        self.count += 1
        self._addresses.add(address)

    def are_awaited(self, step_s: float) -> bool:
        """Return whether the page waits for a request; this is asked every ``step_s`` seconds. A request that
        has not ended after ``_LONGEST_WAIT_S`` is one that waits for news, which the page can do without."""
        self._waited_s = {request: waited_s + step_s for request, waited_s in self._waited_s.items()}
        return any(waited_s < _LONGEST_WAIT_S for waited_s in self._waited_s.values())

    def _begin(self, request: Request) -> None:
        if request.redirected_from is not None:
            self.send(request.url)
        if request.resource_type not in _UNAWAITED:
            self._waited_s[request] = 0.0

    def _end(self, request: Request) -> None:
        self._waited_s.pop(request, None)

    def _download(self, download: Download) -> None:
        if download.url not in self._addresses:
            self.send(download.url)
