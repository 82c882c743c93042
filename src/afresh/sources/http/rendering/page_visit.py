"""One visit of a page by the browser: what it requests, how long it is waited for, and what it shows.

The answer to the request for the page itself is looked at before the browser gets it, so that a redirect is
not followed here but reported, like any answer that is not HTML. If a script goes to another address, that
is reported as a redirect too. So robots.txt, addresses and the number of redirects are checked in one place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urldefrag

from afresh.sources.http.fetcher import Request
from afresh.sources.http.rendering.rules import VisitRules
from afresh.sources.http.urls import origin

if TYPE_CHECKING:
    from playwright.async_api import APIResponse, BrowserContext, Page, Route

_QUIET_S = 0.5
_STEP_S = 0.05
_MOST_RELOADS = 2
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OWN_HEADERS = frozenset({"user-agent", "accept", "accept-encoding", "cookie"})  # set in other ways


@dataclass
class Answered:
    """What came of a visit. ``html`` is the page as the browser shows it, None if it was not rendered;
    ``body`` is the plain answer. ``requests`` counts those that were sent."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    html: str | None = None
    requests: int = 0


class PageVisit:
    """Visits one page in a browser context of its own."""

    def __init__(self, request: Request, rules: VisitRules) -> None:
        self._request, self._rules = request, rules
        self.answered = Answered()
        self._over = asyncio.Event()  # there is nothing more to render
        self._broken = ""  # why it is over, if the page or its browser has crashed
        self._under_way = 0
        self._reloads = 0
        self._sent = {name.lower(): value for name, value in request.headers.items()}
        self._extra = {name: value for name, value in self._sent.items() if name not in _OWN_HEADERS}

    @property
    def user_agent(self) -> str | None:
        return self._sent.get("user-agent")

    @property
    def cookies(self) -> list[dict[str, str]]:
        """The cookies of the settings, which belong to the host of the page."""
        pairs = (part.strip().partition("=") for part in self._sent.get("cookie", "").split(";"))
        return [{"name": name, "value": value, "url": self._request.url} for name, is_, value in pairs if is_]

    async def run(self, context: BrowserContext) -> None:
        """Visit the page; ``answered`` then says what came of it. Playwright's errors are raised."""
        from playwright.async_api import Error

        if self.cookies:
            await context.add_cookies(cast(Any, self.cookies))
        page = await context.new_page()
        page.on("request", lambda _: self._count(1))
        page.on("requestfinished", lambda _: self._count(-1))
        page.on("requestfailed", lambda _: self._count(-1))
        # Nothing tells of the requests of a page that has crashed, so the wait for them would not end.
        page.on("crash", lambda _: self._break("the page crashed"))
        if context.browser is not None:
            context.browser.once("disconnected", lambda _: self._break("the browser ended"))
        await context.route("**/*", lambda route: self._handle(page, route))
        visit = asyncio.create_task(self._show(page))
        over = asyncio.create_task(self._over.wait())
        try:
            await asyncio.wait((visit, over), return_when=asyncio.FIRST_COMPLETED)
            if self._broken:
                raise Error(self._broken)
            if not self._over.is_set():
                visit.result()
        finally:
            for task in (visit, over):
                task.cancel()
            await asyncio.gather(visit, over, return_exceptions=True)
            with suppress(Error):  # the browser has ended, which the next call reports
                await context.unroute_all(behavior="ignoreErrors")

    async def _show(self, page: Page) -> None:
        await page.goto(self._request.url, wait_until="domcontentloaded", timeout=0)
        if self._rules.wait:
            await page.wait_for_selector(self._rules.wait, state="attached", timeout=0)
        await self._wait_until_quiet()
        for _ in range(self._rules.scrolls):
            before = await page.evaluate("document.documentElement.scrollHeight")
            await page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
            await asyncio.sleep(2 * _STEP_S)
            await self._wait_until_quiet()
            if await page.evaluate("document.documentElement.scrollHeight") <= before:
                break
        self.answered.html = await page.content()

    async def _wait_until_quiet(self) -> None:
        quiet_s = 0.0
        while quiet_s < _QUIET_S:
            await asyncio.sleep(_STEP_S)
            quiet_s = quiet_s + _STEP_S if self._under_way <= 0 else 0.0

    def _count(self, step: int) -> None:
        self._under_way += step

    def _break(self, problem: str) -> None:
        self._broken = self._broken or problem
        self._over.set()

    async def _handle(self, page: Page, route: Route) -> None:
        from playwright.async_api import Error

        request = route.request
        try:
            if request.is_navigation_request() and request.frame == page.main_frame:
                await self._handle_page(route)
            elif request.resource_type in self._rules.blocked:
                await route.abort()
            else:
                self.answered.requests += 1
                await route.continue_(headers=self._headers(request.url, request.headers))
        except Error:
            pass  # the page was closed meanwhile

    async def _handle_page(self, route: Route) -> None:
        url = route.request.url
        if urldefrag(url).url != urldefrag(self._request.url).url:
            self.answered.status, self.answered.headers = 302, {"location": url}
            self.answered.body, self.answered.html = b"", None
            await self._end(route)
            return
        self._reloads += 1
        if self._reloads > 1 + _MOST_RELOADS:
            await route.abort()
            return
        self.answered.requests += 1
        headers = self._headers(url, route.request.headers)
        response = await route.fetch(headers=headers, max_redirects=0, timeout=0)
        await self._take(response)
        if self.answered.status in _REDIRECTS or not self._is_html():
            await self._end(route)
        else:
            await route.fulfill(response=response)

    async def _take(self, response: APIResponse) -> None:
        self.answered.status = response.status
        self.answered.headers = {name.lower(): value for name, value in response.headers.items()}
        self.answered.body = await response.body()

    def _is_html(self) -> bool:
        is_html = "html" in self.answered.headers.get("content-type", "text/html")
        return is_html and self.answered.status == 200

    async def _end(self, route: Route) -> None:
        self._over.set()
        await route.abort()

    def _headers(self, url: str, sent: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a request: secret ones of the source go only to the origin of the page."""
        is_own = origin(url) == origin(self._request.url) if url.startswith("http") else False
        return {**sent, **(self._extra if is_own else {})}
