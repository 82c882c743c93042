"""The HTTP source: items are addresses of pages, polled politely, conditionally and within bounds.

    turn (politeness, budget) → robots.txt → GET → redirect? again : judge (honesty, content) → Fetched

Every arrow is a file of its own; this one only carries values between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from afresh.sources.content import Recipe
from afresh.sources.discover import Document, read_listings
from afresh.sources.fetcher import Fetcher, Reply, Request
from afresh.sources.honesty import Honesty, check_sent, saw_content, saw_date, saw_not_modified
from afresh.sources.http_dates import http_date_s, retry_after_s
from afresh.sources.http_secrets import all_secrets, secret_headers
from afresh.sources.judgement import Judgement, judge
from afresh.sources.open_hours import OpenHours
from afresh.sources.robots import Robots, robots_limits
from afresh.sources.robots_book import RobotsBook
from afresh.sources.secret import redactor
from afresh.sources.settings import HttpSettings
from afresh.sources.soft_errors import soft_error
from afresh.sources.statuses import PERMANENT, REDIRECTS, WITH_CONTENT, host_verdict, without_content
from afresh.sources.surroundings import Surroundings
from afresh.sources.turnstile import RestingError, Turnstile
from afresh.sources.urls import followed, host_group, origin, shown
from afresh.sources.validators import conditional_headers, kept
from afresh.values.errors import UsageError
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing

_AGENT = "afresh"  # the name that robots.txt knows us by
_HOSTS_KEPT = 100_000
_IN_THREAD_BYTES = 1 << 18  # normalising more than this would hold up the other polls


@dataclass(slots=True)
class _Trip:
    """What one poll has spent so far, over all its requests."""

    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Arrival:
    """Where the redirects ended: a reply, or a bar before it. ``moved_to`` only if all were permanent.

    ``conditional``: sent with validators. ``checked``: sent without, though there were some to send.
    """

    url: str
    reply: Reply
    conditional: bool = False
    checked: bool = False
    accept_encoding: str = ""
    moved_to: str | None = None
    barred: Fetched | None = None


class HttpSource:
    """See ``Source``. Politeness, robots.txt and honesty are remembered per host for as long as it lives."""

    def __init__(self, settings: HttpSettings, around: Surroundings, fetcher: Fetcher) -> None:
        self._settings, self._around, self._fetcher = settings, around, fetcher
        self._limits, self._recipe = settings.limits, settings.recipe
        self._fingerprint = self._recipe.fingerprint
        self._headers = secret_headers(settings, around.resolver)
        self._hide = redactor(all_secrets(settings, around.resolver))
        self._patterns = settings.error_patterns
        self._turnstile = Turnstile(settings.manners, around, patience_s=settings.queue_time)
        self._robots = RobotsBook(around.clock)
        self._hours = OpenHours(settings.open_windows)
        self._honesty: dict[str, Honesty] = {}

    @property
    def name(self) -> str:
        """The source's name in the settings."""
        return self._settings.name

    def group(self, key: str) -> str:
        """The host of an address."""
        return host_group(key)

    def ready_s(self, group: str, now_s: float) -> float:
        """The earliest time for the next request to a host, windows and politeness together."""
        return self._hours.next_opening_s(now_s + self._turnstile.wait_s(group))

    def honesty(self, group: str) -> Honesty:
        """What is known of a host's validators."""
        return self._honesty.get(group, Honesty())

    def _remember(self, group: str, honesty: Honesty) -> None:
        self._honesty[group] = honesty
        if len(self._honesty) > _HOSTS_KEPT:
            del self._honesty[next(iter(self._honesty))]  # the one known longest; it is learned again

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        """One look at one address; see ``Source.poll``."""
        trip = _Trip()
        try:
            arrival = await self._follow(lease, trip, conditional=conditional)
            fetched = await self._judged(lease, arrival)
        except RestingError as resting:
            fetched = Fetched("failed", retry_after_s=resting.wait_s, problem=str(resting))
        except UsageError as wrong:
            fetched = Fetched("refused", problem=str(wrong))
        return replace(
            fetched,
            requests=trip.requests,
            bytes=trip.bytes,
            seconds=trip.seconds,
            problem=self._hide(fetched.problem),
        )

    def listings(self) -> AsyncIterator[Listing]:
        """The documents named in the settings, and those they name."""
        return read_listings(self._settings, self)

    async def document(self, url: str) -> Document:
        """Fetch a sitemap, feed or start page as politely as an item; redirects followed."""
        trip = _Trip()
        reply, problem = Reply(), ""
        try:
            lease = Lease(item_id=0, key=url, source=self.name, group=host_group(url), token=0, until_s=0.0)
            arrival = await self._follow(lease, trip, conditional=False)
            reply, url = arrival.reply, arrival.url
            if arrival.barred is not None:
                problem = arrival.barred.problem
            elif reply.trouble is not None or reply.status not in WITH_CONTENT:
                problem = without_content(reply, conditional=False)[1]
        except (RestingError, UsageError) as error:
            problem = str(error)
        return Document(
            url,
            b"" if problem else reply.body,
            reply.headers.get("content-type", ""),
            reply.status,
            trip.requests,
            trip.bytes,
            trip.seconds,
            self._hide(problem),
        )

    async def sitemaps(self, url: str) -> tuple[str, ...]:
        """The sitemaps that the robots.txt of an address names."""
        try:
            return (await self._rules(url, _Trip())).sitemaps
        except (RestingError, UsageError):
            return ()

    async def close(self) -> None:
        """Close every connection."""
        await self._fetcher.close()

    async def _follow(self, lease: Lease, trip: _Trip, *, conditional: bool) -> _Arrival:
        """Ask, and ask again where a redirect leads, each hop checked as if it were the first."""
        host_group(lease.key)
        url = lease.key.partition("#")[0]
        seen: set[str] = set()
        moved = True
        while True:
            barred = await self._barred(url, trip)
            if barred is not None:
                return _Arrival(url, Reply(), barred=barred)
            arrival = await self._hop(lease, url, trip, conditional=conditional)
            reply = arrival.reply
            location = reply.headers.get("location", "")
            if reply.status not in REDIRECTS or reply.trouble is not None or not location:
                return replace(arrival, moved_to=url) if moved and seen else arrival
            seen.add(url)
            target = followed(url, location)
            problem = self._wrong_turn(target, location, seen)
            if target is None or problem:
                return replace(arrival, reply=replace(reply, trouble="protocol", problem=problem))
            moved = moved and reply.status in PERMANENT
            url = target

    def _wrong_turn(self, target: str | None, location: str, seen: set[str]) -> str:
        if target is None:
            return f"redirect to {shown(location)!r}, which is no address to fetch"
        if target in seen:
            return f"redirects in a circle, back to {shown(target)}"
        if len(seen) > self._settings.max_redirects:
            return f"more than {self._settings.max_redirects} redirects"
        return ""

    async def _hop(self, lease: Lease, url: str, trip: _Trip, *, conditional: bool) -> _Arrival:
        group = host_group(url)
        honesty = self.honesty(group)
        conditions = conditional_headers(lease.validators, lease.key, url, self._fingerprint, honesty)
        checked = bool(conditions) and (not conditional or honesty.check_due)
        if checked:
            self._remember(group, check_sent(honesty))
        if checked or lease.content_hash is None:
            conditions = {}
        accept_encoding = lease.validators.get("accept-encoding", self._settings.accept_encoding)
        headers = self._plain_headers() | {"Accept-Encoding": accept_encoding} | conditions
        if origin(url) == origin(lease.key):  # what is secret stays with the host that it was given for
            headers |= {name: secret.reveal() for name, secret in self._headers.items()}
        reply = await self._ask(Request(url, headers, self._limits), trip)
        return _Arrival(url, reply, bool(conditions), checked, accept_encoding)

    def _plain_headers(self) -> dict[str, str]:
        return {
            "User-Agent": self._settings.user_agent,
            "Accept": "*/*",
            "Accept-Encoding": self._settings.accept_encoding,
        }

    async def _rules(self, url: str, trip: _Trip) -> Robots:
        async def ask(place: str) -> Reply:
            limits = robots_limits(self._limits)
            return await self._ask(Request(place, self._plain_headers(), limits, cut=True), trip)

        rules = await self._robots.rules(url, ask)
        self._turnstile.set_crawl_delay(host_group(url), rules.crawl_delay_s(_AGENT))
        return rules

    async def _barred(self, url: str, trip: _Trip) -> Fetched | None:
        """What robots.txt makes of a poll of ``url``; None if it allows it."""
        if not self._settings.respect_robots:
            return None
        rules = await self._rules(url, trip)
        if rules.refused:
            return Fetched("refused", problem=rules.refused)
        if rules.barred:
            wait_s = max(0.0, rules.expires_s - self._around.clock.elapsed_s())
            return Fetched("failed", retry_after_s=wait_s, problem=rules.barred)
        return None if rules.allows(url, _AGENT) else Fetched("refused", problem="robots.txt forbids it")

    async def _ask(self, request: Request, trip: _Trip) -> Reply:
        async with self._turnstile.turn(host_group(request.url)) as turn:
            trip.requests += 1
            reply = await self._fetcher.fetch(request)
            turn.verdict = host_verdict(reply)
            turn.retry_after_s = self._retry_after_s(reply)
        trip.bytes += reply.wire_bytes
        trip.seconds += reply.seconds
        return reply

    def _retry_after_s(self, reply: Reply) -> float | None:
        if reply.status not in (429, 503):
            return None
        return retry_after_s(reply.headers.get("retry-after"), self._around.clock.now_s())

    async def _judged(self, lease: Lease, arrival: _Arrival) -> Fetched:
        reply = arrival.reply
        if arrival.barred is not None:
            return arrival.barred
        if reply.trouble is None and reply.status in WITH_CONTENT:
            return await self._content(lease, arrival)
        kind, problem = without_content(reply, conditional=arrival.conditional)
        if kind == "unchanged":
            return self._not_modified(lease, arrival)
        return Fetched(
            kind,
            retry_after_s=self._retry_after_s(reply),
            moved_to=arrival.moved_to,
            status=reply.status,
            problem=problem,
        )

    def _not_modified(self, lease: Lease, arrival: _Arrival) -> Fetched:
        group = host_group(arrival.url)
        honesty = saw_not_modified(self.honesty(group))
        self._remember(group, honesty)
        validators = {**lease.validators, **kept(arrival.reply.headers)}
        return Fetched(
            "unchanged",
            validators=validators,
            modified_s=self._modified_s(validators, honesty),
            moved_to=arrival.moved_to,
            status=arrival.reply.status,
        )

    async def _content(self, lease: Lease, arrival: _Arrival) -> Fetched:
        reply = arrival.reply
        media_type = reply.headers.get("content-type", "")[:200]
        soft = soft_error(reply.body, media_type, lease.key, arrival.url, self._patterns)
        if soft is not None:
            return Fetched(soft[0], status=reply.status, problem=soft[1])
        found = await self._compare(lease, reply, media_type)
        validators = {**kept(reply.headers), **found.notes, "accept-encoding": arrival.accept_encoding}
        if arrival.url != lease.key:
            validators["url"] = arrival.url
        honesty = self._learn(lease, arrival, validators, found)
        return Fetched(
            "content" if found.changed else "unchanged",
            content=reply.body if found.changed else None,
            media_type=media_type,
            normal_hash=found.normal_hash,
            comparable=found.comparable,
            validators=validators,
            modified_s=self._modified_s(validators, honesty),
            moved_to=arrival.moved_to,
            status=reply.status,
        )

    async def _compare(self, lease: Lease, reply: Reply, media_type: str) -> Judgement:
        def compare() -> Judgement:
            return judge(
                reply.body,
                media_type,
                self._recipe,
                held_hash=lease.content_hash,
                held_notes=lease.validators,
                near_duplicate=self._settings.near_duplicate,
            )

        plain = self._recipe == Recipe() and self._settings.near_duplicate is None
        if plain or len(reply.body) < _IN_THREAD_BYTES:
            return compare()
        return await asyncio.to_thread(compare)

    def _learn(
        self, lease: Lease, arrival: _Arrival, validators: dict[str, str], found: Judgement
    ) -> Honesty:
        """Content was seen: what does it say of the validators that came with the copy held?"""
        group = host_group(arrival.url)
        honesty = self.honesty(group)
        if found.comparable and lease.content_hash is not None:
            same_place = lease.validators.get("url", lease.key) == validators.get("url", lease.key)
            before = lease.validators if same_place else {}
            honesty = saw_content(honesty, before, validators, changed=found.differs, checked=arrival.checked)
        modified_s = http_date_s(validators.get("last-modified"))
        if modified_s is not None:
            copied_s = lease.polled_s if lease.content_hash is not None and found.comparable else None
            now_s = self._around.clock.now_s()
            honesty = saw_date(honesty, modified_s, now_s, copied_s=copied_s, changed=found.differs)
        self._remember(group, honesty)
        return honesty

    def _modified_s(self, validators: dict[str, str], honesty: Honesty) -> float | None:
        """When the item says it changed last; nothing from a host that has lied about it."""
        modified_s = http_date_s(validators.get("last-modified"))
        return modified_s if honesty.believes_dates else None
