"""The HTTP source: items are addresses of pages, polled politely, conditionally and within bounds.

client (waiting, budget, robots.txt, redirects) → status, soft errors, comparison, validators → Fetched
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import astuple, replace

from afresh.sources.change_detection import Comparison, compare_content
from afresh.sources.content import EVERY_BYTE, Recipe
from afresh.sources.context import SourceContext
from afresh.sources.http.client import FinalResponse, PoliteClient, RequestCost, default_headers
from afresh.sources.http.dates import http_date_s
from afresh.sources.http.fetcher import Fetcher, Reply
from afresh.sources.http.listings.reader import Document, read_listings
from afresh.sources.http.saved_state import NOTES, read_state
from afresh.sources.http.secret_headers import all_secrets, secret_headers
from afresh.sources.http.soft_errors import soft_error
from afresh.sources.http.statuses import WITH_CONTENT, classify_reply, requested_delay_s
from afresh.sources.http.throttle import HostBackoffError
from afresh.sources.http.trust import (
    ValidatorTrust,
    record_check_sent,
    record_content,
    record_date,
    record_not_modified,
)
from afresh.sources.http.urls import host_group, origin
from afresh.sources.http.validators import MOVED, conditional_headers, is_conditional, kept
from afresh.sources.open_hours import OpenHours
from afresh.sources.remembering import Rest
from afresh.sources.secrets import redactor
from afresh.sources.settings import HttpSettings
from afresh.values.errors import UsageError
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing

_HOSTS_KEPT = 100_000
_NOTES_KEPT = 10_000  # of how many hosts the notes tell
_LONGEST_SPACING_S = 300.0  # that the reading of a document waits for
_IN_THREAD_BYTES = 1 << 18  # normalising more than this would hold up the other polls


class HttpSource:
    """See ``Source``. Politeness, robots.txt and honesty are remembered per host for as long as it lives."""

    def __init__(self, settings: HttpSettings, context: SourceContext, fetcher: Fetcher) -> None:
        self._settings, self._clock, self._sleep = settings, context.clock, context.sleep
        self._courier = PoliteClient(settings, context, fetcher)
        self._recipe = settings.recipe
        self._headers = secret_headers(settings, context.resolver)
        self._hide = redactor(all_secrets(settings, context.resolver))
        self._patterns = settings.error_patterns
        self._hours = OpenHours(settings.open_windows)
        self._honesty: dict[str, ValidatorTrust] = {}

    @property
    def name(self) -> str:
        """The source's name in the settings."""
        return self._settings.name

    def group(self, key: str) -> str:
        """The host of an address."""
        return host_group(key)

    def ready_s(self, group: str, now_s: float) -> float:
        """The earliest time for the next request to a host, windows and politeness together."""
        return self._hours.next_opening_s(now_s + self._courier.wait_s(group))

    def honesty(self, group: str) -> ValidatorTrust:
        """What is known of a host's validators."""
        return self._honesty.get(group, ValidatorTrust())

    def rests(self) -> tuple[Rest, ...]:
        """The hosts that are left alone, and why; see ``RememberingSource``."""
        return tuple(replace(rest, why=self._hide(rest.why)) for rest in self._courier.rests())

    def notes(self) -> bytes:
        """robots.txt and honesty of the hosts asked last."""
        honesty = {host: astuple(known) for host, known in list(self._honesty.items())[-_NOTES_KEPT:]}
        return json.dumps({"v": NOTES, "robots": self._courier.notes(), "honesty": honesty}).encode()

    def recall(self, rests: Sequence[Rest], notes: bytes) -> None:
        """What an earlier process knew of its hosts."""
        known = read_state(notes)
        self._courier.recall(rests, known.robots)
        for host, honesty in known.honesty.items():
            self._honesty.setdefault(host, honesty)

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        """One look at one address; see ``Source.poll``."""
        trip = RequestCost()
        try:
            fetched = await self._look(lease, trip, conditional=conditional)
        except HostBackoffError as resting:
            fetched = Fetched("failed", retry_after_s=resting.wait_s, problem=str(resting), put_off=True)
        except UsageError as wrong:
            fetched = Fetched("refused", problem=str(wrong))
        if fetched.tells:  # it says itself what it took
            return fetched
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
        trip = RequestCost()
        reply, problem = Reply(), ""
        try:
            lease = Lease(item_id=0, key=url, source=self.name, group=host_group(url), token=0, until_s=0.0)
            arrival = await self._patiently(lease, trip)
            reply, url = arrival.reply, arrival.url
            if arrival.barred is not None:
                problem = arrival.barred.problem
            elif reply.trouble is not None or reply.status not in WITH_CONTENT:
                problem = classify_reply(reply, conditional=False)[1]
        except (HostBackoffError, UsageError) as error:
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

    async def _patiently(self, lease: Lease, trip: RequestCost) -> FinalResponse:
        """A document is no poll that others wait for: it waits out a long Crawl-delay after robots.txt."""
        try:
            return await self._arrive(lease, trip, lease.key, conditional=False)
        except HostBackoffError as resting:
            if not resting.spaced or resting.wait_s > _LONGEST_SPACING_S:
                raise
            await self._sleep(resting.wait_s)
        return await self._arrive(lease, trip, lease.key, conditional=False)

    async def sitemaps(self, url: str) -> tuple[str, ...]:
        """The sitemaps that the robots.txt of an address names."""
        try:
            return (await self._courier.rules(url, RequestCost())).sitemaps
        except (HostBackoffError, UsageError):
            return ()

    async def close(self) -> None:
        """Close every connection."""
        await self._courier.close()

    async def _look(self, lease: Lease, trip: RequestCost, *, conditional: bool) -> Fetched:
        """Ask where the item moved for good, or where it was: when that fails, and for audits.

        So a move that was taken back is noticed, and one that leads nowhere any more is forgotten.
        """
        moved = lease.validators.get(MOVED) if conditional and not lease.failures else None
        if moved is not None:
            arrival = await self._arrive(lease, trip, moved, conditional=conditional)
            fetched = await self._judged(lease, arrival, trip, moved)
            if fetched.kind not in ("gone", "refused"):
                return fetched
        arrival = await self._arrive(lease, trip, lease.key, conditional=conditional)
        return await self._judged(lease, arrival, trip, None)

    async def _arrive(
        self, lease: Lease, trip: RequestCost, start: str, *, conditional: bool
    ) -> FinalResponse:
        def headers_for(url: str) -> dict[str, str]:
            headers = default_headers(self._settings)
            # ETags differ by encoding: ask for the one that the validators came with.
            headers["Accept-Encoding"] = lease.validators.get("accept-encoding", headers["Accept-Encoding"])
            headers |= self._conditions(lease, url, conditional=conditional)
            # What is secret stays with the host that it was given for.
            if self._headers and origin(url) == origin(lease.key):
                headers |= {name: secret.reveal() for name, secret in self._headers.items()}
            return headers

        return await self._courier.deliver(start.partition("#")[0], headers_for, trip)

    def _conditions(self, lease: Lease, url: str, *, conditional: bool) -> dict[str, str]:
        """The conditional headers to send; none where the host is due to be checked."""
        honesty = self.honesty(host_group(url))
        conditions = conditional_headers(lease, url, self._recipe_of(lease).fingerprint, honesty)
        if conditions and (not conditional or honesty.check_due):
            self._remember(url, record_check_sent(honesty))
            return {}
        return conditions

    async def _judged(
        self, lease: Lease, arrival: FinalResponse, trip: RequestCost, started_at: str | None
    ) -> Fetched:
        """What an arrival means; ``started_at`` is where the item had moved to, None its own address."""
        if started_at is not None and arrival.moved_to is None:
            arrival = replace(arrival, moved_to=started_at)
        reply = arrival.reply
        if arrival.barred is not None:
            return arrival.barred
        if reply.trouble is None and reply.status in WITH_CONTENT:
            return await self._content(lease, arrival, trip)
        kind, problem = classify_reply(reply, conditional=is_conditional(arrival.headers))
        if kind == "unchanged":
            return self._not_modified(lease, arrival, trip)
        return Fetched(
            kind,
            retry_after_s=requested_delay_s(reply, self._clock.now_s()),
            moved_to=arrival.moved_to,
            status=reply.status,
            problem=problem,
        )

    def _not_modified(self, lease: Lease, arrival: FinalResponse, trip: RequestCost) -> Fetched:
        honesty = record_not_modified(self.honesty(host_group(arrival.url)))
        self._remember(arrival.url, honesty)
        before = {name: value for name, value in lease.validators.items() if name != MOVED}
        validators = {**before, **kept(arrival.reply.headers), **_moved(arrival)}
        return Fetched(
            "unchanged",
            validators=validators,
            modified_s=_modified_s(validators, honesty),
            requests=trip.requests,
            bytes=trip.bytes,
            seconds=trip.seconds,
            moved_to=arrival.moved_to,
            status=arrival.reply.status,
        )

    async def _content(self, lease: Lease, arrival: FinalResponse, trip: RequestCost) -> Fetched:
        reply = arrival.reply
        media_type = reply.headers.get("content-type", "")[:200]
        soft = soft_error(reply.body, media_type, lease.key, arrival.url, self._patterns)
        if soft is not None:
            return Fetched(soft[0], status=reply.status, problem=soft[1])
        found = await self._compare(lease, reply, media_type)
        accept_encoding = arrival.headers["Accept-Encoding"]
        validators = {**kept(reply.headers), **found.notes, "accept-encoding": accept_encoding}
        validators |= _moved(arrival)
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
            modified_s=_modified_s(validators, honesty),
            requests=trip.requests,
            bytes=trip.bytes,
            seconds=trip.seconds,
            moved_to=arrival.moved_to,
            status=reply.status,
        )

    async def _compare(self, lease: Lease, reply: Reply, media_type: str) -> Comparison:
        recipe = self._recipe_of(lease)

        def compare() -> Comparison:
            return compare_content(
                reply.body,
                media_type,
                recipe,
                held_hash=lease.content_hash,
                held_notes=lease.validators,
                near_duplicate=self._settings.near_duplicate,
            )

        plain = recipe == EVERY_BYTE and self._settings.near_duplicate is None
        if plain or len(reply.body) < _IN_THREAD_BYTES:
            return compare()
        return await asyncio.to_thread(compare)

    def _learn(
        self, lease: Lease, arrival: FinalResponse, validators: Mapping[str, str], found: Comparison
    ) -> ValidatorTrust:
        """Content was seen: what does it say of the validators that came with the copy held?"""
        honesty = self.honesty(host_group(arrival.url))
        copied = found.comparable and lease.content_hash is not None
        if copied:
            same_place = lease.validators.get("url", lease.key) == validators.get("url", lease.key)
            before = lease.validators if same_place else {}
            fingerprint = self._recipe_of(lease).fingerprint
            sendable = conditional_headers(lease, arrival.url, fingerprint, honesty)
            checked = bool(sendable) and not is_conditional(arrival.headers)
            honesty = record_content(honesty, before, validators, changed=found.differs, checked=checked)
        modified_s = http_date_s(validators.get("last-modified"))
        if modified_s is not None:
            copied_s = lease.polled_s if copied else None
            now_s = self._clock.now_s()
            honesty = record_date(honesty, modified_s, now_s, copied_s=copied_s, changed=found.differs)
        self._remember(arrival.url, honesty)
        return honesty

    def _recipe_of(self, lease: Lease) -> Recipe:
        return self._recipe.for_item(lease.selector)

    def _remember(self, url: str, honesty: ValidatorTrust) -> None:
        self._honesty[host_group(url)] = honesty
        if len(self._honesty) > _HOSTS_KEPT:
            del self._honesty[next(iter(self._honesty))]  # the one known longest; it is learned again


def _moved(arrival: FinalResponse) -> dict[str, str]:
    return {} if arrival.moved_to is None else {MOVED: arrival.moved_to}


def _modified_s(validators: Mapping[str, str], honesty: ValidatorTrust) -> float | None:
    """When the item says it changed last; nothing from a host that has lied about it."""
    return http_date_s(validators.get("last-modified")) if honesty.believes_dates else None
