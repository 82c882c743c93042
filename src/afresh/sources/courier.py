"""Carries a request to where it leads: turns, robots.txt and redirects, every hop checked like the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from afresh.sources.addresses import NEVER
from afresh.sources.fetcher import Fetcher, Reply, Request
from afresh.sources.remembering import Rest
from afresh.sources.robots import AGENT, Robots, robots_limits
from afresh.sources.robots_book import RobotsBook
from afresh.sources.settings import HttpSettings
from afresh.sources.statuses import PERMANENT, REDIRECTS, asked_to_wait_s, host_verdict, without_content
from afresh.sources.surroundings import Surroundings
from afresh.sources.turnstile import Turnstile
from afresh.sources.urls import followed, host_group, shown
from afresh.values.fetched import Fetched

HeadersFor: TypeAlias = Callable[[str], dict[str, str]]
"""The headers of a request to an address: each hop gets its own, since what is secret stays with its host."""

_REMEDY = " (allowed by --allow-private, or allow_private = true of its source)"


@dataclass(slots=True)
class Trip:
    """What one poll has spent so far, over all its requests."""

    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Arrival:
    """Where the redirects ended: the reply and the headers it was asked with, or a bar before it.

    ``moved_to`` only if there were redirects and all were permanent.
    """

    url: str
    reply: Reply
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    moved_to: str | None = None
    barred: Fetched | None = None


class Courier:
    """Sends the requests of one source; what is known of hosts and their robots.txt it shares with others.

    All methods that send may raise ``RestingError``, when a host may not be asked for longer than a poll
    waits, and ``UsageError`` for what is no address.
    """

    def __init__(self, settings: HttpSettings, around: Surroundings, fetcher: Fetcher) -> None:
        self._settings, self._around, self._fetcher = settings, around, fetcher
        self._limits = settings.limits
        self._turnstile = Turnstile(settings.name, settings.manners, around, patience_s=settings.queue_time)
        # Who asks otherwise, or from elsewhere, may be told other rules.
        visitor = settings.user_agent, settings.allow_private, settings.proxy
        self._robots = around.hosts.books.setdefault(visitor, RobotsBook(around.clock))

    def wait_s(self, group: str) -> float:
        """How long until the next request to a host may start."""
        barred = self._robots.barred(group) if self._settings.respect_robots else None
        wait_s = self._turnstile.wait_s(group)
        return wait_s if barred is None else max(wait_s, barred.expires_s - self._around.clock.elapsed_s())

    def rests(self) -> tuple[Rest, ...]:
        """The hosts that are left alone, and why."""
        clock = self._around.clock
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

    async def deliver(self, url: str, headers_for: HeadersFor, trip: Trip) -> Arrival:
        """Ask, and ask again where a redirect leads."""
        seen: set[str] = set()
        moved = True
        while True:
            # Where a redirect leads nobody wrote down: what it is refused for is not to be allowed lightly.
            remedy = "" if seen else _REMEDY
            barred = await self._barred(url, trip, remedy)
            if barred is not None:
                return Arrival(url, Reply(), barred=barred)
            headers = headers_for(url)
            reply = await self._ask(Request(url, headers, self._limits), trip)
            if reply.trouble == "private":
                reply = replace(reply, problem=_with(remedy, reply.problem))
            location = reply.headers.get("location", "")
            if reply.status not in REDIRECTS or reply.trouble is not None or not location:
                return Arrival(url, reply, headers, url if moved and seen else None)
            seen.add(url)
            target = followed(url, location)
            problem = self._wrong_turn(target, location, seen)
            if target is None or problem:
                return Arrival(url, replace(reply, trouble="protocol", problem=problem), headers)
            moved = moved and reply.status in PERMANENT
            url = target

    async def rules(self, url: str, trip: Trip) -> Robots:
        """What the robots.txt for ``url`` says; its crawl delay holds from now on."""

        async def ask(place: str) -> Reply:
            limits = robots_limits(self._limits)
            return await self._ask(Request(place, plain_headers(self._settings), limits, cut=True), trip)

        rules = await self._robots.rules(url, ask)
        self._turnstile.set_crawl_delay(host_group(url), rules.crawl_delay_s(AGENT))
        return rules

    async def close(self) -> None:
        """Close every connection."""
        self._turnstile.close()
        await self._fetcher.close()

    async def _barred(self, url: str, trip: Trip, remedy: str) -> Fetched | None:
        """What robots.txt makes of a poll of ``url``; None if it allows it."""
        if not self._settings.respect_robots:
            return None
        rules = await self.rules(url, trip)
        if rules.refused:
            return Fetched("refused", problem=_with(remedy, rules.refused))
        if rules.barred:
            wait_s = max(0.0, rules.expires_s - self._around.clock.elapsed_s())
            return Fetched("failed", retry_after_s=wait_s, problem=rules.barred)
        return None if rules.allows(url, AGENT) else Fetched("refused", problem="robots.txt forbids it")

    async def _ask(self, request: Request, trip: Trip) -> Reply:
        barred = await self._fetcher.barred(request.url)
        if barred is not None:  # nothing is sent: it takes no turn and costs nothing
            return barred
        async with self._turnstile.turn(host_group(request.url)) as turn:
            trip.requests += 1
            reply = await self._fetcher.fetch(request)
            turn.verdict = host_verdict(reply)
            turn.retry_after_s = asked_to_wait_s(reply, self._around.clock.now_s())
            if turn.verdict != "fine" or turn.retry_after_s:
                turn.why = without_content(reply, conditional=False)[1]
        if reply.trouble == "private":  # its name leads elsewhere now: nothing was sent
            trip.requests -= 1
        else:
            self._around.cost(reply.wire_bytes, reply.seconds)
        trip.bytes += reply.wire_bytes
        trip.seconds += reply.seconds
        return reply

    def _wrong_turn(self, target: str | None, location: str, seen: set[str]) -> str:
        if target is None:
            return f"redirect to {shown(location)!r}, which is no address to fetch"
        if target in seen:
            return f"redirects in a circle, back to {shown(target)}"
        if len(seen) > self._settings.max_redirects:
            return f"more than {self._settings.max_redirects} redirects"
        return ""


def _with(remedy: str, problem: str) -> str:
    return problem if NEVER in problem else problem + remedy


def plain_headers(settings: HttpSettings) -> dict[str, str]:
    """What every request says of itself, to whatever host.

    >>> sorted(plain_headers(HttpSettings(name="web")))
    ['Accept', 'Accept-Encoding', 'User-Agent']
    """
    return {
        "User-Agent": settings.user_agent,
        "Accept": "*/*",
        "Accept-Encoding": settings.accept_encoding,
    }
