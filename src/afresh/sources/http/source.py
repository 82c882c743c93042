"""The HTTP source: items are addresses of pages, polled politely, conditionally and within limits.

client (waiting, budget, robots.txt, redirects) → status, soft errors, comparison, validators → Fetched
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace

from afresh.sources.capabilities import Capabilities, GroupBackoff
from afresh.sources.change_detection import EVERY_BYTE, Comparison, Recipe, compare_content
from afresh.sources.context import SourceContext
from afresh.sources.http.client import FinalResponse, PoliteClient, RequestCost, default_headers
from afresh.sources.http.fetcher import Fetcher, Reply
from afresh.sources.http.listings.reader import Document, read_listings
from afresh.sources.http.saved_hosts import HttpState, read_state
from afresh.sources.http.settings import HttpSettings, all_secrets, secret_headers, secret_proxy
from afresh.sources.http.statuses import (
    WITH_CONTENT,
    classify_reply,
    http_date_s,
    requested_delay_s,
    soft_error,
)
from afresh.sources.http.throttle import HostBackoffError
from afresh.sources.http.urls import host_group, origin
from afresh.sources.http.validators import (
    MOVED,
    ValidatorTrust,
    conditional_headers,
    is_conditional,
    record_check_sent,
    record_content,
    record_date,
    record_not_modified,
    validators_of,
)
from afresh.sources.secrets import redactor
from afresh.sources.source import Source
from afresh.sources.windows import CachedWindows
from afresh.values.errors import UsageError
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing

_MOST_HOSTS = 100_000
_MOST_SAVED = 10_000  # hosts whose trust is saved
_LONGEST_SPACING_S = 300.0  # that the reading of a document waits for
_IN_THREAD_BYTES = 1 << 18  # normalising more than this in the event loop would delay other polls


def build_http_source(settings: HttpSettings, context: SourceContext) -> Source:
    proxy = secret_proxy(settings, context.resolver)
    fetcher = context.new_fetcher(settings.allow_private, proxy, context.clock)
    return HttpSource(settings, context, fetcher)


class HttpSource:
    """See ``Source``. Politeness, robots.txt and the trust in validators are remembered for each host."""

    def __init__(self, settings: HttpSettings, context: SourceContext, fetcher: Fetcher) -> None:
        self._settings, self._clock, self._sleep = settings, context.clock, context.sleep
        self._client = PoliteClient(settings, context, fetcher)
        self._recipe = settings.recipe
        self._headers = secret_headers(settings, context.resolver)
        self._hide = redactor(all_secrets(settings, context.resolver))
        self._patterns = settings.error_patterns
        self._windows = CachedWindows(settings.open_windows)
        self._trust: dict[str, ValidatorTrust] = {}
        self.capabilities = Capabilities(state=self)

    @property
    def name(self) -> str:
        return self._settings.name

    def group(self, key: str) -> str:
        return host_group(key)

    def ready_s(self, group: str, now_s: float) -> float:
        """Return the earliest time for the next request to a host, by windows and politeness."""
        return self._windows.next_opening_s(now_s + self._client.wait_s(group))

    def validator_trust(self, group: str) -> ValidatorTrust:
        """Return how far the validators of a host are trusted."""
        return self._trust.get(group, ValidatorTrust())

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        return tuple(replace(one, why=self._hide(one.why)) for one in self._client.backoffs())

    def save_state(self) -> bytes:
        """Return robots.txt files and validator trust of the hosts asked last."""
        trust = dict(list(self._trust.items())[-_MOST_SAVED:])
        return HttpState(tuple(self._client.save_robots()), trust).pack()

    def load_state(self, state: bytes, backoffs: Sequence[GroupBackoff] = ()) -> None:
        known = read_state(state)
        self._client.load_state(backoffs, known.robots)
        for host, trust in known.trust.items():
            self._trust.setdefault(host, trust)

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        """Request one address; see ``Source.poll``."""
        cost = RequestCost()
        try:
            fetched = await self._poll(lease, cost, conditional=conditional)
        except HostBackoffError as error:
            fetched = Fetched("failed", retry_after_s=error.wait_s, problem=str(error), put_off=True)
        except UsageError as error:
            fetched = Fetched("refused", problem=str(error))
        if fetched.tells:  # it was made with its cost, since copying takes time
            return fetched
        return replace(
            fetched,
            requests=cost.requests,
            bytes=cost.bytes,
            seconds=cost.seconds,
            problem=self._hide(fetched.problem),
        )

    def listings(self) -> AsyncIterator[Listing]:
        return read_listings(self._settings, self)

    async def document(self, url: str) -> Document:
        """Fetch a sitemap, feed or start page as politely as an item, and follow redirects."""
        cost = RequestCost()
        reply, problem = Reply(), ""
        try:
            response = await self._fetch_document(url, cost)
            reply, url = response.reply, response.url
            if response.blocked is not None:
                problem = response.blocked.problem
            elif reply.trouble is not None or reply.status not in WITH_CONTENT:
                problem = classify_reply(reply, conditional=False)[1]
        except (HostBackoffError, UsageError) as error:
            problem = str(error)
        return Document(
            url,
            b"" if problem else reply.body,
            reply.headers.get("content-type", ""),
            reply.status,
            cost.requests,
            cost.bytes,
            cost.seconds,
            self._hide(problem),
        )

    async def _fetch_document(self, url: str, cost: RequestCost) -> FinalResponse:
        """Fetch a document; no poll waits for it, so it waits out a long Crawl-delay after robots.txt."""
        lease = Lease(item_id=0, key=url, source=self.name, group=host_group(url), token=0, until_s=0.0)
        try:
            return await self._fetch(lease, cost, url, conditional=False)
        except HostBackoffError as error:
            if not error.spaced or error.wait_s > _LONGEST_SPACING_S:
                raise
            await self._sleep(error.wait_s)
        return await self._fetch(lease, cost, url, conditional=False)

    async def sitemaps(self, url: str) -> tuple[str, ...]:
        try:
            return (await self._client.robots_rules(url, RequestCost())).sitemaps
        except (HostBackoffError, UsageError):
            return ()

    async def close(self) -> None:
        await self._client.close()

    async def _poll(self, lease: Lease, cost: RequestCost, *, conditional: bool) -> Fetched:
        """Request the address that the item moved to permanently, and its own address if that one fails.
        Audits use the item's own address as well. So a move that was undone is noticed, and one that no
        longer leads anywhere is forgotten."""
        moved = lease.validators.get(MOVED) if conditional and not lease.failures else None
        if moved is not None:
            response = await self._fetch(lease, cost, moved, conditional=conditional)
            fetched = await self._interpret(lease, response, cost, moved)
            if fetched.kind not in ("gone", "refused"):
                return fetched
        response = await self._fetch(lease, cost, lease.key, conditional=conditional)
        return await self._interpret(lease, response, cost, None)

    async def _fetch(
        self, lease: Lease, cost: RequestCost, start: str, *, conditional: bool
    ) -> FinalResponse:
        def headers_for(url: str) -> dict[str, str]:
            headers = default_headers(self._settings)
            # ETags differ by encoding: request the one that the validators came with.
            headers["Accept-Encoding"] = lease.validators.get("accept-encoding", headers["Accept-Encoding"])
            headers |= self._conditions(lease, url, conditional=conditional)
            # Secrets stay with the host that they were given for.
            if self._headers and origin(url) == origin(lease.key):
                headers |= {name: secret.reveal() for name, secret in self._headers.items()}
            return headers

        return await self._client.fetch(start.partition("#")[0], headers_for, cost)

    def _conditions(self, lease: Lease, url: str, *, conditional: bool) -> dict[str, str]:
        """Return the conditional headers to send; none if the host is due for a check."""
        trust = self.validator_trust(host_group(url))
        conditions = conditional_headers(lease, url, self._recipe_of(lease).fingerprint, trust)
        if conditions and (not conditional or trust.is_check_due):
            self._remember(url, record_check_sent(trust))
            return {}
        return conditions

    async def _interpret(
        self, lease: Lease, response: FinalResponse, cost: RequestCost, started_at: str | None
    ) -> Fetched:
        """Return what a response means; ``started_at`` is where the item had moved to, if it had."""
        if started_at is not None and response.moved_to is None:
            response = replace(response, moved_to=started_at)
        reply = response.reply
        if response.blocked is not None:
            return response.blocked
        if reply.trouble is None and reply.status in WITH_CONTENT:
            return await self._content(lease, response, cost)
        kind, problem = classify_reply(reply, conditional=is_conditional(response.headers))
        if kind == "unchanged":
            return self._not_modified(lease, response, cost)
        return Fetched(
            kind,
            retry_after_s=requested_delay_s(reply, self._clock.now_s()),
            moved_to=response.moved_to,
            status=reply.status,
            problem=problem,
        )

    def _not_modified(self, lease: Lease, response: FinalResponse, cost: RequestCost) -> Fetched:
        trust = record_not_modified(self.validator_trust(host_group(response.url)))
        self._remember(response.url, trust)
        before = {name: value for name, value in lease.validators.items() if name != MOVED}
        validators = {**before, **validators_of(response.reply.headers), **_moved(response)}
        return _result(None, response, cost, validators, trust)

    async def _content(self, lease: Lease, response: FinalResponse, cost: RequestCost) -> Fetched:
        reply = response.reply
        media_type = _media_type(reply)
        soft = soft_error(reply.body, media_type, lease.key, response.url, self._patterns)
        if soft is not None:
            return Fetched(soft[0], status=reply.status, problem=soft[1])
        found = await self._compare(lease, reply, media_type)
        accept_encoding = response.headers["Accept-Encoding"]
        validators = {**validators_of(reply.headers), **found.notes, "accept-encoding": accept_encoding}
        validators |= _moved(response)
        if response.url != lease.key:
            validators["url"] = response.url
        trust = self._learn_trust(lease, response, validators, found)
        return _result(found, response, cost, validators, trust)

    async def _compare(self, lease: Lease, reply: Reply, media_type: str) -> Comparison:
        recipe, near_duplicate = self._recipe_of(lease), self._settings.near_duplicate
        copy = lease.content_hash, lease.validators
        arguments = reply.body, media_type, recipe, *copy, near_duplicate
        cheap = recipe == EVERY_BYTE and near_duplicate is None
        if cheap or len(reply.body) < _IN_THREAD_BYTES:
            return compare_content(*arguments)
        return await asyncio.to_thread(compare_content, *arguments)

    def _learn_trust(
        self, lease: Lease, response: FinalResponse, validators: Mapping[str, str], found: Comparison
    ) -> ValidatorTrust:
        """Learn from content how far the validators that came with the copy held can be trusted."""
        trust = self.validator_trust(host_group(response.url))
        has_copy = found.comparable and lease.content_hash is not None
        if has_copy:
            same_url = lease.validators.get("url", lease.key) == validators.get("url", lease.key)
            before = lease.validators if same_url else {}
            fingerprint = self._recipe_of(lease).fingerprint
            sendable = conditional_headers(lease, response.url, fingerprint, trust)
            checked = bool(sendable) and not is_conditional(response.headers)
            trust = record_content(trust, before, validators, changed=found.differs, checked=checked)
        modified_s = http_date_s(validators.get("last-modified"))
        if modified_s is not None:
            copied_s = lease.polled_s if has_copy else None
            now_s = self._clock.now_s()
            trust = record_date(trust, modified_s, now_s, copied_s=copied_s, changed=found.differs)
        self._remember(response.url, trust)
        return trust

    def _recipe_of(self, lease: Lease) -> Recipe:
        return self._recipe.for_item(lease.selector)

    def _remember(self, url: str, trust: ValidatorTrust) -> None:
        self._trust[host_group(url)] = trust
        if len(self._trust) > _MOST_HOSTS:
            del self._trust[next(iter(self._trust))]  # the host known longest; it is learned again


def _moved(response: FinalResponse) -> dict[str, str]:
    return {} if response.moved_to is None else {MOVED: response.moved_to}


def _result(
    found: Comparison | None,
    response: FinalResponse,
    cost: RequestCost,
    validators: Mapping[str, str],
    trust: ValidatorTrust,
) -> Fetched:
    """Return the result of a poll that found content, or None for a 304."""
    reply, changed = response.reply, found is not None and found.changed
    return Fetched(
        "content" if changed else "unchanged",
        content=reply.body if changed else None,
        media_type="" if found is None else _media_type(reply),
        normal_hash=None if found is None else found.normal_hash,
        comparable=found is None or found.comparable,
        validators=validators,
        modified_s=http_date_s(validators.get("last-modified")) if trust.believes_dates else None,
        requests=cost.requests,
        bytes=cost.bytes,
        seconds=cost.seconds,
        moved_to=response.moved_to,
        status=reply.status,
    )


def _media_type(reply: Reply) -> str:
    return reply.headers.get("content-type", "")[:200]
