"""Send requests within the limits of hosts and follow redirects, which are checked like the first address."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from afresh.sources.capabilities import GroupBackoff
from afresh.sources.context import SourceContext
from afresh.sources.http.fetcher import Fetcher, Reply, Request, ResponseLimits
from afresh.sources.http.ip_addresses import with_remedy
from afresh.sources.http.pacing.quota_headers import has_quota, remaining_quota
from afresh.sources.http.robots import AGENT, MAX_BYTES, RobotsCache, RobotsNote, RobotsRules
from afresh.sources.http.settings import HttpSettings, all_secrets, secret_headers
from afresh.sources.http.statuses import (
    PERMANENT,
    REDIRECTS,
    SAME_METHOD,
    classify_reply,
    host_condition,
    http_date_s,
    requested_delay_s,
)
from afresh.sources.http.throttle import HostThrottle
from afresh.sources.http.urls import display_url, host_group, origin, resolve_link
from afresh.sources.secrets import Secret, redactor
from afresh.values.fetched import Fetched, FetchedKind

HeadersFor: TypeAlias = Callable[[str], dict[str, str]]
"""A function that returns the headers for a request to a URL, besides those that every request has."""


@dataclass(slots=True)
class RequestCost:
    """The cost of all requests of one poll so far: their number, the bytes received and the seconds."""

    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class FinalResponse:
    """The reply after all redirects, its URL, and the headers of its request. ``moved_to`` is set only if
    there were redirects and all of them were permanent. If robots.txt forbids the request, no request was
    sent, and ``blocked`` is the result of the poll. ``withheld`` is True if the source has secret headers,
    and the request was sent without them."""

    url: str
    reply: Reply
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    moved_to: str | None = None
    blocked: Fetched | None = None
    withheld: bool = False


SendRequest: TypeAlias = Callable[[Request, RequestCost], Awaitable[Reply]]
"""A function that sends one request, within the limits of its host, and adds what it costs."""


class AccessError(Exception):
    """A request cannot be authorised; the message says why. ``refused`` is True if a repetition would not
    help. Code in ``sources`` catches this error."""

    def __init__(self, problem: str, *, refused: bool = False) -> None:
        super().__init__(problem)
        self.refused = refused


class Access(Protocol):
    """Adds to requests what a server demands besides fixed headers, such as a token or a signature."""

    def secrets(self) -> Iterable[Secret]:
        """Return all secrets, which messages must not show. There may be others after each request."""

    async def authorise(self, request: Request, cost: RequestCost, send: SendRequest) -> Request:
        """Return the request with what the server demands. Raise ``AccessError`` if that fails."""

    def renews_after(self, reply: Reply) -> bool:
        """Return whether the request should be authorised and sent again, once, after this reply."""

    async def close(self) -> None:
        """End what was started."""


@dataclass(frozen=True, slots=True)
class RequestBody:
    """What a POST request sends. With ``follows``, it is sent again where a redirect says so that keeps the
    method (307 or 308)."""

    content: bytes = field(repr=False)
    media_type: str = "application/json"
    follows: bool = False


class PoliteClient:
    """Sends the requests of one source. All sources share what is known about hosts and their robots.txt.
    Methods that send requests raise ``HostBackoffError`` if the wait for a host would be longer than a poll
    may wait, and ``UsageError`` if an address is malformed."""

    def __init__(
        self,
        settings: HttpSettings,
        context: SourceContext,
        fetcher: Fetcher,
        access: Access | None = None,
    ) -> None:
        self._settings, self._context, self._fetcher = settings, context, fetcher
        self._access = access
        self._limits = settings.limits
        self._secret_headers = secret_headers(settings, context.resolver)
        self._secret_origins = settings.secret_origins
        self._hide_fixed = redactor(all_secrets(settings, context.resolver))
        self._throttle = HostThrottle(
            settings.name, settings.politeness, context, max_wait_s=settings.queue_time
        )
        context.parsers.join()
        self._is_open = True
        self._debts: set[asyncio.Task[None]] = set()
        # A host may serve other rules to another user agent, or to a visitor from another address.
        visitor = settings.user_agent, settings.allow_private, settings.proxy
        self._robots = context.hosts.robots.setdefault(visitor, RobotsCache(context.clock, context.parsers))

    def hide(self, text: str) -> str:
        """Return a text without the secrets of the source."""
        hidden = self._hide_fixed(text)
        return hidden if self._access is None or not text else redactor(self._access.secrets())(hidden)

    def wait_s(self, group: str) -> float:
        rules = self._robots.unreadable_rules(group) if self._settings.respect_robots else None
        wait_s = self._throttle.wait_s(group)
        return wait_s if rules is None else max(wait_s, rules.expires_s - self._context.clock.elapsed_s())

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        """Return the hosts that back off, after failures or because their robots.txt cannot be read."""
        clock = self._context.clock
        found = {backoff.group: backoff for backoff in self._throttle.backoffs()}
        for group in self._robots.unreadable_groups() if self._settings.respect_robots else ():
            rules = self._robots.unreadable_rules(group)
            if rules is not None and self._throttle.has_asked(group):
                until_s = round(rules.expires_s - clock.elapsed_s() + clock.now_s(), 3)
                before = found.get(group)
                if before is None or before.until_s < until_s:
                    kept = before or GroupBackoff(group, until_s)
                    found[group] = replace(kept, until_s=until_s, why=rules.unreadable)
        return tuple(replace(one, why=self.hide(one.why)) for one in found.values())

    def save_robots(self) -> list[RobotsNote]:
        return self._robots.save()

    def load_state(self, backoffs: Sequence[GroupBackoff], robots: Iterable[RobotsNote]) -> None:
        """Load the back-offs and the robots.txt files that an earlier process saved."""
        self._throttle.load_backoffs(backoffs)
        self._robots.load(robots)

    async def fetch(
        self,
        url: str,
        home: str,
        headers_for: HeadersFor,
        cost: RequestCost,
        *,
        listed: bool = False,
        body: RequestBody | None = None,
        render: bool = False,
    ) -> FinalResponse:
        """Request ``url`` and follow redirects. The cost of all requests is added to ``cost``. Secret headers
        are sent only to the origin of ``home``, and so not after a redirect to another host; and if
        ``listed`` (only a listing names ``home``), only if the settings name that origin too. With a
        ``body``, it is a POST request; which of its redirects are followed, the body says. With ``render``,
        the fetcher may use a browser."""
        seen: set[str] = set()
        moved = True
        while True:
            # The user did not choose the target of a redirect, so the message does not say how to allow it.
            is_chosen = not seen
            blocked = await self._check_robots(url, cost, is_chosen=is_chosen)
            if blocked is not None:
                return FinalResponse(url, Reply(), blocked=blocked)
            headers = default_headers(self._settings) | headers_for(url)
            may_have = self._may_have_secrets(url, home, listed=listed)
            withheld = (bool(self._secret_headers) or self._access is not None) and not may_have
            if may_have:
                headers |= {name: secret.reveal() for name, secret in self._secret_headers.items()}
            try:
                reply = await self._send_authorised(
                    replace(_make_request(url, headers, self._limits, body), render=render),
                    cost,
                    may_have=may_have,
                )
            except AccessError as error:
                kind: FetchedKind = "refused" if error.refused else "failed"
                return FinalResponse(url, Reply(), blocked=Fetched(kind, problem=str(error)))
            if reply.trouble == "private" and is_chosen:
                reply = replace(reply, problem=with_remedy(reply.problem, self._settings.name))
            location = reply.headers.get("location", "")
            if reply.status not in REDIRECTS or reply.trouble is not None or not location:
                return FinalResponse(url, reply, headers, url if moved and seen else None, withheld=withheld)
            seen.add(url)
            target = resolve_link(url, location)
            problem = self._redirect_problem(target, location, seen)
            if body is not None and not problem:
                problem = _post_redirect_problem(body, reply.status, url, location)
            if target is None or problem:
                return FinalResponse(url, replace(reply, trouble="protocol", problem=problem), headers)
            moved = moved and reply.status in PERMANENT
            url = target

    async def robots_rules(self, url: str, cost: RequestCost) -> RobotsRules:
        """Return the rules of the robots.txt for ``url``. Its crawl delay now applies to the host."""

        async def fetch(place: str) -> Reply:
            limits = replace(self._limits, max_bytes=MAX_BYTES)
            return await self._send(Request(place, default_headers(self._settings), limits, cut=True), cost)

        group = host_group(url)
        rules = await self._robots.rules(url, fetch, lambda: self._throttle.backoff_s(group))
        self._throttle.set_crawl_delay(group, rules.crawl_delay_s(AGENT))
        return rules

    async def close(self) -> None:
        self._throttle.close()
        for task in self._debts:
            task.cancel()
        if self._access is not None:
            await self._access.close()
        if self._is_open:
            self._is_open = False
            self._context.parsers.leave()
        await self._fetcher.close()

    def _may_have_secrets(self, url: str, home: str, *, listed: bool) -> bool:
        place = origin(url)
        return place == origin(home) and (not listed or place in self._secret_origins)

    async def _check_robots(self, url: str, cost: RequestCost, *, is_chosen: bool) -> Fetched | None:
        """Return the result of the poll if robots.txt forbids ``url``, or None if it allows ``url``. If the
        user has chosen the address, the problem says how to allow it."""
        if not self._settings.respect_robots:
            return None
        rules = await self.robots_rules(url, cost)
        if rules.refused:
            words = with_remedy(rules.refused, self._settings.name) if is_chosen else rules.refused
            return Fetched("refused", problem=words)
        if rules.unreadable:
            clock = self._context.clock
            wait_s = max(0.0, rules.expires_s - clock.elapsed_s())
            problem = rules.problem(clock.elapsed_s(), clock.now_s())
            return Fetched("failed", retry_after_s=wait_s, problem=problem)
        return None if rules.allows(url, AGENT) else Fetched("refused", problem="robots.txt forbids it")

    async def _send_authorised(self, request: Request, cost: RequestCost, *, may_have: bool) -> Reply:
        """Send a request with what the server demands, if it may have the secrets of the source. If a token
        was not accepted, send it once more with a new one."""
        access = self._access
        if access is None or not may_have:
            return await self._send(request, cost)
        reply = await self._send(await access.authorise(request, cost, self._send), cost)
        if not access.renews_after(reply):
            return reply
        return await self._send(await access.authorise(request, cost, self._send), cost)

    async def _send(self, request: Request, cost: RequestCost) -> Reply:
        refused = await self._fetcher.check_url(request.url)
        if refused is not None:  # no request is sent, so it needs no slot and has no cost
            return refused
        async with self._throttle.slot(host_group(request.url)) as slot:
            cost.requests += 1
            reply = await self._context.under_way.wait_for(self._fetcher.fetch(request))
            slot.condition = host_condition(reply)
            slot.retry_after_s = requested_delay_s(reply, self._context.clock.now_s())
            if has_quota(reply.headers):
                now_s = http_date_s(reply.headers.get("date")) or self._context.clock.now_s()
                slot.quota = remaining_quota(reply.headers, now_s)
            if slot.condition != "fine" or slot.retry_after_s:
                slot.why = classify_reply(reply, conditional=False)[1]
        if reply.trouble == "private":  # the name has a private address now, so nothing was sent
            cost.requests -= 1
        else:
            self._context.cost(reply.wire_bytes, reply.seconds)
            cost.requests += reply.requests - 1
            self._pay_later(host_group(request.url), reply.requests - 1)
        cost.bytes += reply.wire_bytes
        cost.seconds += reply.seconds
        return reply

    def _pay_later(self, group: str, requests: int) -> None:
        """Use as many slots of the budget as a browser sent requests beside the first; others wait for it."""

        async def pay() -> None:
            for _ in range(requests):
                await self._context.admit(group)

        if requests > 0:
            task = asyncio.create_task(pay())
            self._debts.add(task)
            task.add_done_callback(self._debts.discard)

    def _redirect_problem(self, target: str | None, location: str, seen: set[str]) -> str:
        if target is None:
            return f"redirect to {display_url(location)!r}, which is no address to fetch"
        if target in seen:
            return f"redirects in a circle, back to {display_url(target)}"
        if len(seen) > self._settings.max_redirects:
            return f"more than {self._settings.max_redirects} redirects"
        return ""


def _post_redirect_problem(body: RequestBody, status: int | None, url: str, location: str) -> str:
    """Return why a POST request to ``url`` is not sent again to ``location``, or an empty string.

    >>> body = RequestBody(b"a=1", follows=True)
    >>> [_post_redirect_problem(body, status, "https://a.test/", "/b") for status in (307, 302)]
    ['', "redirects a POST request to '/b': ask there"]
    >>> _post_redirect_problem(body, 308, "https://a.test/", "http://a.test/")
    "redirects a POST request to 'http://a.test/', which has no TLS"
    """
    if not body.follows or status not in SAME_METHOD:
        return f"redirects a POST request to {display_url(location)!r}: ask there"
    if url.startswith("https:") and not str(resolve_link(url, location)).startswith("https:"):
        # The body may hold a secret, as the requests to hubs do.
        return f"redirects a POST request to {display_url(location)!r}, which has no TLS"
    return ""


def _make_request(
    url: str, headers: Mapping[str, str], limits: ResponseLimits, body: RequestBody | None
) -> Request:
    if body is None:
        return Request(url, headers, limits)
    headers = {**headers, "Content-Type": body.media_type}
    return Request(url, headers, limits, method="POST", body=body.content)


def default_headers(settings: HttpSettings) -> dict[str, str]:
    """Return the headers that every request has, to any host.

    >>> sorted(default_headers(HttpSettings(name="web")))
    ['Accept', 'Accept-Encoding', 'User-Agent']
    """
    return {
        "User-Agent": settings.user_agent,
        "Accept": "*/*",
        "Accept-Encoding": settings.accept_encoding,
    }
