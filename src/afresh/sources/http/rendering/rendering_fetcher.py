"""A fetcher that lets a browser render pages; for everything else it uses the plain fetcher."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from afresh.sources.http.fetcher import Fetcher, Reply, Request
from afresh.sources.http.rendering.browser import BrowserGoneError, BrowserHost, first_line
from afresh.sources.http.rendering.loopback_proxy import LoopbackProxy, Visit
from afresh.sources.http.rendering.page_visit import Answered, PageVisit
from afresh.sources.http.rendering.rules import RenderRules
from afresh.values.clock import Clock

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, ProxySettings

_AT_ONCE = 2  # pages that one browser renders at the same time
_TYPE = "text/html; charset=utf-8"


class RenderingFetcher:
    """A ``Fetcher``. Requests with ``render`` are sent by a browser, all others by ``plain``."""

    def __init__(self, plain: Fetcher, rules: RenderRules, clock: Clock) -> None:
        self._plain, self._rules, self._clock = plain, rules, clock
        self.host = BrowserHost(rules.browser)
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def check_url(self, url: str) -> Reply | None:
        return await self._plain.check_url(url)

    async def fetch(self, request: Request) -> Reply:
        if not request.render:
            return await self._plain.fetch(request)
        refused = await self._plain.check_url(request.url)
        if refused is not None:
            return refused
        async with self._turns:
            return await self._render(request)

    async def close(self) -> None:
        await self.host.close()
        await self._plain.close()

    async def _render(self, request: Request) -> Reply:
        from playwright.async_api import Error

        start_s, trouble, begun = self._clock.elapsed_s(), Reply(), None
        try:
            async with self.host.using() as (browser, proxy):
                visit = proxy.open_visit(request.limits.max_bytes)
                page_visit = PageVisit(request, self._rules.visit, partial(self._fetch_plain, visit))
                begun = visit, page_visit
                async with asyncio.timeout(request.limits.total_s):
                    await self._visit(browser, proxy, visit, page_visit)
        except BrowserGoneError as error:
            trouble = Reply(trouble="local", problem=str(error))
        except TimeoutError:
            trouble = Reply(trouble="timeout", problem=f"not rendered within {request.limits.total_s:g} s")
        except Error as error:
            trouble = Reply(trouble="connect", problem=f"not rendered: {first_line(error)}")
        seconds = self._clock.elapsed_s() - start_s
        if begun is None:
            return replace(trouble, seconds=seconds)
        visit, page_visit = begun
        reply = _reply(page_visit.answered, request) if trouble.trouble is None else trouble
        return replace(
            _refused(visit, request) or reply,
            # Of what passes the proxy in a tunnel, only the browser tells; the proxy knows all the others.
            requests=max(page_visit.requests.count, visit.requests, 1),
            wire_bytes=visit.received,
            seconds=seconds,
        )

    async def _fetch_plain(self, visit: Visit, request: Request) -> Reply:
        """Send the request for a page itself; it counts as if the proxy had passed it on."""
        found = await self._plain.fetch(request)
        visit.requests += 1
        visit.received += found.wire_bytes
        return found

    async def _visit(
        self, browser: Browser, proxy: LoopbackProxy, visit: Visit, page_visit: PageVisit
    ) -> None:
        context = None
        try:
            context = await browser.new_context(
                user_agent=page_visit.user_agent,
                storage_state=self._rules.state_file or None,
                proxy=browser_proxy(proxy, visit),
                service_workers="block",
                accept_downloads=False,
                viewport={"width": 1280, "height": 1600},
            )
            await page_visit.run(context)
        finally:
            # First, because a browser sends the requests that it held back when nobody handles them any more.
            proxy.close_visit(visit)
            if context is not None:
                await asyncio.shield(_close(context))


async def _close(context: BrowserContext) -> None:
    from playwright.async_api import Error

    with suppress(Error):  # the browser has ended, which the next call reports
        await context.unroute_all(behavior="ignoreErrors")
    await context.close()


def browser_proxy(proxy: LoopbackProxy, visit: Visit) -> ProxySettings:
    """Return the proxy settings of a browser context for one visit. Loopback addresses are no exception."""
    return {
        "server": f"http://127.0.0.1:{proxy.port}",
        "bypass": "<-loopback>",
        "username": visit.name,
        "password": visit.password,
    }


def _reply(answered: Answered, request: Request) -> Reply:
    """Return the reply for a visit that ended well."""
    if answered.html is None:
        return answered.plain
    limit, body = request.limits.max_bytes, answered.html.encode("utf-8", "replace")
    if len(body) > limit:
        return Reply(trouble="size", problem=f"body is {len(body)} bytes, more than the {limit} allowed")
    headers = {**answered.plain.headers, "content-type": _TYPE}
    return Reply(answered.plain.status, headers, body, plain=answered.plain)


def _refused(visit: Visit, request: Request) -> Reply | None:
    """Return the reply to a request whose own host the proxy refused, or whose page is too large."""
    reason = visit.refused.get(urlsplit(request.url).hostname or "")
    if reason is not None:
        return Reply(trouble="private", problem=f"refused: {reason}")
    if visit.is_too_large:
        limit = request.limits.max_bytes
        return Reply(trouble="size", problem=f"the page and what it loads have more than {limit} bytes")
    return None
