"""Carries a request to where it leads: turns, robots.txt and redirects, every hop checked like the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from afresh.sources.context import SourceContext
from afresh.sources.http.addresses import NEVER
from afresh.sources.http.fetcher import Fetcher, Reply, Request
from afresh.sources.http.robots import AGENT, RobotsRules, robots_limits
from afresh.sources.http.robots_cache import RobotsCache
from afresh.sources.http.statuses import (
    PERMANENT,
    REDIRECTS,
    classify_reply,
    host_condition,
    requested_delay_s,
)
from afresh.sources.http.throttle import HostThrottle
from afresh.sources.http.urls import display_url, host_group, resolve_link
from afresh.sources.remembering import Rest
from afresh.sources.settings import HttpSettings
from afresh.values.fetched import Fetched

HeadersFor: TypeAlias = Callable[[str], dict[str, str]]
"""The headers of a request to an address: each hop gets its own, since what is secret stays with its host."""

_REMEDY = " (allowed by --allow-private, or allow_private = true of its source)"


@dataclass(slots=True)
class RequestCost:
    """What one poll has spent so far, over all its requests."""

    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class FinalResponse:
    """Where the redirects ended: the reply and the headers it was asked with, or a bar before it.

    ``moved_to`` only if there were redirects and all were permanent.
    """

    url: str
    reply: Reply
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    moved_to: str | None = None
    barred: Fetched | None = None


class PoliteClient:
    """Sends the requests of one source; what is known of hosts and their robots.txt it shares with others.

    All methods that send may raise ``RestingError``, when a host may not be asked for longer than a poll
    waits, and ``UsageError`` for what is no address.
    """

    def __init__(self, settings: HttpSettings, context: SourceContext, fetcher: Fetcher) -> None:
        self._settings, self._context, self._fetcher = settings, context, fetcher
        self._limits = settings.limits
        self._turnstile = HostThrottle(
            settings.name, settings.manners, context, patience_s=settings.queue_time
        )
        # Who asks otherwise, or from elsewhere, may be told other rules.
        visitor = settings.user_agent, settings.allow_private, settings.proxy
        self._robots = context.hosts.books.setdefault(visitor, RobotsCache(context.clock))

    def wait_s(self, group: str) -> float:
        """How long until the next request to a host may start."""
        barred = self._robots.barred(group) if self._settings.respect_robots else None
        wait_s = self._turnstile.wait_s(group)
        return wait_s if barred is None else max(wait_s, barred.expires_s - self._context.clock.elapsed_s())

    def rests(self) -> tuple[Rest, ...]:
        """The hosts that are left alone, and why."""
        clock = self._context.clock
        found = {rest.group: rest for rest in self._turnstile.rests()}
        for group in self._robots.barred_groups() if self._settings.respect_robots else ():
            barred = self._robots.barred(group)
            if barred is not None and self._turnstile.asks(group):
                until_s = round(barred.expires_s - clock.elapsed_s() + clock.now_s(), 3)
                before = found.get(group)
                if before is None or before.until_s < until_s:
                    failures = before.failures if before else 0
                    found[group] = Rest(group, until_s, failures, barred.barred)
        return tuple(found.values())

    def notes(self) -> list[list[object]]:
        """What is known of robots.txt files."""
        return self._robots.notes()

    def recall(self, rests: Sequence[Rest], notes: Iterable[tuple[str, float, str, str, int]]) -> None:
        """What an earlier process knew."""
        self._turnstile.recall(rests)
        self._robots.recall(notes)

    async def deliver(self, url: str, headers_for: HeadersFor, trip: RequestCost) -> FinalResponse:
        """Ask, and ask again where a redirect leads."""
        seen: set[str] = set()
        moved = True
        while True:
            # Where a redirect leads nobody wrote down: what it is refused for is not to be allowed lightly.
            remedy = "" if seen else _REMEDY
            barred = await self._barred(url, trip, remedy)
            if barred is not None:
                return FinalResponse(url, Reply(), barred=barred)
            headers = headers_for(url)
            reply = await self._ask(Request(url, headers, self._limits), trip)
            if reply.trouble == "private":
                reply = replace(reply, problem=_with(remedy, reply.problem))
            location = reply.headers.get("location", "")
            if reply.status not in REDIRECTS or reply.trouble is not None or not location:
                return FinalResponse(url, reply, headers, url if moved and seen else None)
            seen.add(url)
            target = resolve_link(url, location)
            problem = self._wrong_turn(target, location, seen)
            if target is None or problem:
                return FinalResponse(url, replace(reply, trouble="protocol", problem=problem), headers)
            moved = moved and reply.status in PERMANENT
            url = target

    async def rules(self, url: str, trip: RequestCost) -> RobotsRules:
        """What the robots.txt for ``url`` says; its crawl delay holds from now on."""

        async def ask(place: str) -> Reply:
            limits = robots_limits(self._limits)
            return await self._ask(Request(place, default_headers(self._settings), limits, cut=True), trip)

        rules = await self._robots.rules(url, ask)
        self._turnstile.set_crawl_delay(host_group(url), rules.crawl_delay_s(AGENT))
        return rules

    async def close(self) -> None:
        """Close every connection."""
        self._turnstile.close()
        await self._fetcher.close()

    async def _barred(self, url: str, trip: RequestCost, remedy: str) -> Fetched | None:
        """What robots.txt makes of a poll of ``url``; None if it allows it."""
        if not self._settings.respect_robots:
            return None
        rules = await self.rules(url, trip)
        if rules.refused:
            return Fetched("refused", problem=_with(remedy, rules.refused))
        if rules.barred:
            wait_s = max(0.0, rules.expires_s - self._context.clock.elapsed_s())
            return Fetched("failed", retry_after_s=wait_s, problem=rules.barred)
        return None if rules.allows(url, AGENT) else Fetched("refused", problem="robots.txt forbids it")

    async def _ask(self, request: Request, trip: RequestCost) -> Reply:
        barred = await self._fetcher.barred(request.url)
        if barred is not None:  # nothing is sent: it takes no turn and costs nothing
            return barred
        async with self._turnstile.turn(host_group(request.url)) as turn:
            trip.requests += 1
            reply = await self._fetcher.fetch(request)
            turn.verdict = host_condition(reply)
            turn.retry_after_s = requested_delay_s(reply, self._context.clock.now_s())
            if turn.verdict != "fine" or turn.retry_after_s:
                turn.why = classify_reply(reply, conditional=False)[1]
        if reply.trouble == "private":  # its name leads elsewhere now: nothing was sent
            trip.requests -= 1
        else:
            self._context.cost(reply.wire_bytes, reply.seconds)
        trip.bytes += reply.wire_bytes
        trip.seconds += reply.seconds
        return reply

    def _wrong_turn(self, target: str | None, location: str, seen: set[str]) -> str:
        if target is None:
            return f"redirect to {display_url(location)!r}, which is no address to fetch"
        if target in seen:
            return f"redirects in a circle, back to {display_url(target)}"
        if len(seen) > self._settings.max_redirects:
            return f"more than {self._settings.max_redirects} redirects"
        return ""


def _with(remedy: str, problem: str) -> str:
    return problem if NEVER in problem else problem + remedy


def default_headers(settings: HttpSettings) -> dict[str, str]:
    """What every request says of itself, to whatever host.

    >>> sorted(default_headers(HttpSettings(name="web")))
    ['Accept', 'Accept-Encoding', 'User-Agent']
    """
    return {
        "User-Agent": settings.user_agent,
        "Accept": "*/*",
        "Accept-Encoding": settings.accept_encoding,
    }
