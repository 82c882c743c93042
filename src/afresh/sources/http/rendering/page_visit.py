"""One visit of a page by the browser: what it requests, how long it is waited for, and what it shows.

The page itself is requested by the fetcher that sends plain requests, so that its answer is checked and
unpacked within the same limits, and the browser gets what came of it. Playwright could request it too, but
unpacks answers without a limit. A redirect is not followed here but reported, like any answer that is not
HTML. If a script goes to another address, that is reported as a redirect too. So robots.txt, addresses and
the number of redirects are checked in one place.
Windows that the page opens are closed at once, and what they ask for is not sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import urldefrag

from afresh.sources.http.fetcher import Reply, Request
from afresh.sources.http.rendering.loopback_proxy import OWN_NAME
from afresh.sources.http.rendering.rules import VisitRules
from afresh.sources.http.rendering.visit_requests import VisitRequests
from afresh.sources.http.urls import origin

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page, Route
    from playwright.async_api import Request as PlaywrightRequest

_QUIET_S = 0.5
_STEP_S = 0.05
_MOST_RELOADS = 2
MOST_REQUESTS = 500
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OWN_HEADERS = frozenset({"user-agent", "accept", "accept-encoding", "cookie"})  # set in other ways
# They are about the bytes of the connection, which the browser does not get.
_OF_CONNECTION = frozenset(
    {"connection", "content-encoding", "content-length", "keep-alive", "trailer", "transfer-encoding"}
)

FetchPage: TypeAlias = Callable[[Request], Awaitable[Reply]]
"""A function that sends the request for the page itself, within its limits."""

# Browsers of phones have none, so that pages do without. Nothing tells of what a shared worker asks for.
_WITHOUT_SHARED_WORKERS = "delete globalThis.SharedWorker"
# The browser cannot log in at the proxy in the first place for a WebSocket.
_LOG_IN = f"fetch('http://{OWN_NAME}/', {{mode: 'no-cors'}}).catch(() => 0)"


@dataclass
class Answered:
    """What came of a visit. ``html`` is the page as the browser shows it, None if it was not rendered;
    ``plain`` is what the server sent."""

    plain: Reply = field(default_factory=Reply)
    html: str | None = None


class PageVisit:
    """Visits one page in a browser context of its own. ``fetch_page`` requests the page itself."""

    def __init__(self, request: Request, rules: VisitRules, fetch_page: FetchPage) -> None:
        self._request, self._rules, self._fetch_page = request, rules, fetch_page
        self._fetches: set[asyncio.Task[Reply]] = set()
        self.answered, self.requests = Answered(), VisitRequests()
        self._over = asyncio.Event()  # there is nothing more to render
        self._broken = ""  # why it is over, if the page or its browser has crashed
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
        await context.add_init_script(_WITHOUT_SHARED_WORKERS)
        page = await context.new_page()
        await page.evaluate(_LOG_IN)
        self.requests.watch(context, page)
        context.on("page", _close)
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
            tasks = (visit, over, *self._fetches)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

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
            quiet_s = 0.0 if self.requests.are_awaited(_STEP_S) else quiet_s + _STEP_S

    def _break(self, problem: str) -> None:
        self._broken = self._broken or problem
        self._over.set()

    async def _handle(self, page: Page, route: Route) -> None:
        from playwright.async_api import Error

        request = route.request
        try:
            if not _is_of(page, request):
                await route.abort()
            elif request.is_navigation_request() and request.frame == page.main_frame:
                await self._handle_page(route)
            elif request.resource_type in self._rules.blocked:
                await route.abort()
            elif self._may_send(request.url):
                await route.continue_(headers=self._headers(request.url, request.headers))
            else:
                await route.abort()
        except Error:
            pass  # the page was closed meanwhile

    async def _handle_page(self, route: Route) -> None:
        url = route.request.url
        if urldefrag(url).url != urldefrag(self._request.url).url:
            self.answered = Answered(Reply(302, {"location": url}))
            await self._end(route)
            return
        self._reloads += 1
        if self._reloads > 1 + _MOST_RELOADS or not self._may_send(url):
            await route.abort()
            return
        plain = await self._fetch(route)
        if plain is None:
            return
        self.answered.plain = plain
        if plain.trouble is not None or plain.status in _REDIRECTS or not _is_html(plain):
            await self._end(route)
        else:
            headers = {name: text for name, text in plain.headers.items() if name not in _OF_CONNECTION}
            await route.fulfill(status=plain.status, headers=headers, body=plain.body)

    async def _fetch(self, route: Route) -> Reply | None:
        """Return the answer to the request for the page; None if the visit ended meanwhile."""
        headers = self._headers(route.request.url, route.request.headers)
        if "accept-encoding" in self._sent:  # what the fetcher can unpack, and not what the browser can
            headers["accept-encoding"] = self._sent["accept-encoding"]
        cookies = await route.request.frame.page.context.cookies(self._request.url)
        if cookies:
            headers["cookie"] = "; ".join(f"{one['name']}={one['value']}" for one in cookies)
        request = replace(self._request, headers=headers, render=False)
        fetch = asyncio.ensure_future(self._fetch_page(request))
        self._fetches.add(fetch)
        await asyncio.wait([fetch])
        self._fetches.discard(fetch)
        return None if fetch.cancelled() else fetch.result()

    def _may_send(self, url: str) -> bool:
        """Count a request, unless there were too many, which ends the visit."""
        if self.requests.count >= MOST_REQUESTS:
            self._break(f"the page sends more than {MOST_REQUESTS} requests")
            return False
        self.requests.send(url)
        return True

    async def _end(self, route: Route) -> None:
        self._over.set()
        await route.abort()

    def _headers(self, url: str, sent: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a request: secret ones of the source go only to the origin of the page."""
        is_own = origin(url) == origin(self._request.url) if url.startswith("http") else False
        return {**sent, **(self._extra if is_own else {})}


def _is_html(plain: Reply) -> bool:
    is_html = "html" in plain.headers.get("content-type", "text/html")
    is_file = plain.headers.get("content-disposition", "").lower().lstrip().startswith("attachment")
    return is_html and not is_file and plain.status == 200


def _is_of(page: Page, request: PlaywrightRequest) -> bool:
    """Return whether a request belongs to a page, and not to a window that it opens."""
    from playwright.async_api import Error

    try:
        return request.frame.page is page
    except Error:  # the window is not there yet
        return False


async def _close(window: Page) -> None:
    from playwright.async_api import Error

    with suppress(Error):  # it is closed already
        await window.close()
