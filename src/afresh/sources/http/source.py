"""The HTTP source: items are URLs of pages. Requests are polite, conditional and limited in size and time.

The client (budget, delays, robots.txt, redirects) returns a response. From its status and content, this
module makes a ``Fetched``, and compares the content and validators with those of the copy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlencode

from afresh.sources.capabilities import Capabilities, FormAnswer, GroupBackoff
from afresh.sources.change_detection import EVERY_BYTE, Comparison, Recipe, compare_content, most_bytes_here
from afresh.sources.context import SourceContext
from afresh.sources.http.client import FinalResponse, PoliteClient, RequestBody, RequestCost
from afresh.sources.http.fetcher import Fetcher, Reply
from afresh.sources.http.follow.link_follower import FollowedPage, LinkFollower
from afresh.sources.http.listings.reader import Document, read_listings
from afresh.sources.http.rendering.modes import HowToFetch, RenderModes, is_browser_needed
from afresh.sources.http.saved_hosts import HttpState, read_state
from afresh.sources.http.settings import HttpSettings, make_fetcher
from afresh.sources.http.soft_errors import ReceivedPage, find_soft_error
from afresh.sources.http.statuses import (
    WITH_CONTENT,
    classify_reply,
    http_date_s,
    requested_delay_s,
)
from afresh.sources.http.throttle import HostBackoffError
from afresh.sources.http.trust import ContentLesson, HostTrust
from afresh.sources.http.urls import host_group
from afresh.sources.http.validators import (
    CONDITIONS,
    LIED,
    LOOKED,
    MOVED,
    RENDERED,
    SHOWN,
    has_other_copy,
    is_conditional,
    validators_of,
)
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.source import Source
from afresh.sources.windows import CachedWindows
from afresh.values.errors import UsageError
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing

_LONGEST_SPACING_S = 300.0  # the longest Crawl-delay that the reading of a document waits for
_WANTS_SECRETS = (401, 403, 407)
_WITHHELD = (
    " (asked without the headers and cookies of the source: secret_hosts names hosts that receive them)"
)


def build_http_source(settings: HttpSettings, context: SourceContext) -> Source:
    fetcher = make_fetcher(settings, context)
    if settings.bulk_look_up is None:
        return HttpSource(settings, context, fetcher)
    from afresh.sources.http.bulk_source import BulkHttpSource

    return BulkHttpSource(settings, context, fetcher, settings.bulk_look_up)


class HttpSource:
    """A ``Source`` of web pages. Delays, robots.txt and the trust in validators apply to each host."""

    def __init__(self, settings: HttpSettings, context: SourceContext, fetcher: Fetcher) -> None:
        self._settings, self._clock, self._sleep = settings, context.clock, context.sleep
        self._client = PoliteClient(settings, context, fetcher)
        self._recipe = settings.recipe
        self._patterns = settings.error_patterns
        self._windows = CachedWindows(settings.open_windows)
        self.parsers = context.parsers
        self.trust = HostTrust()
        self.render_modes = RenderModes(settings.render)
        self.follower = LinkFollower(settings.follow, context.parsers)
        self.capabilities = Capabilities(state=self, forms=self)

    @property
    def name(self) -> str:
        return self._settings.name

    def group(self, key: str) -> str:
        return host_group(key)

    def ready_s(self, group: str, now_s: float) -> float:
        """Return when the next request to a host may start (Unix seconds). Windows and the host decide."""
        return self._windows.next_opening_s(now_s + self._client.wait_s(group))

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        return self._client.backoffs()

    def save_state(self) -> bytes:
        """Return the robots.txt files and the trust in validators, for the hosts that were asked last."""
        robots, aliases = tuple(self._client.save_robots()), self.follower.scope.aliases
        return HttpState(robots, self.trust.save(), aliases, self.render_modes.save()).pack()

    def load_state(self, state: bytes, backoffs: Sequence[GroupBackoff] = ()) -> None:
        known = read_state(state)
        self._client.load_state(backoffs, known.robots)
        self.trust.load(known.trust)
        self.render_modes.load(known.render)
        self.follower.scope.aliases |= known.aliases

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        cost = RequestCost()
        try:
            fetched = await self._poll(lease, cost, conditional=conditional)
        except HostBackoffError as error:
            fetched = Fetched("failed", retry_after_s=error.wait_s, problem=str(error), put_off=True)
        except UsageError as error:
            fetched = Fetched("refused", problem=str(error))
        if fetched.is_successful:  # it contains its cost already, because copying a Fetched takes time
            return fetched
        return replace(
            fetched,
            requests=cost.requests,
            bytes=cost.bytes,
            seconds=cost.seconds,
            problem=self._client.hide(fetched.problem),
        )

    def listings(self) -> AsyncIterator[Listing]:
        return read_listings(self._settings, self)

    async def document(self, url: str) -> Document:
        """Fetch a sitemap, feed or start page. Robots.txt, delays and redirects apply as for an item."""
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
            self._client.hide(problem),
            reply.headers.get("link", ""),
        )

    async def send_form(self, url: str, fields: Mapping[str, str]) -> FormAnswer:
        """Send a form by POST. Robots.txt, delays and checks of addresses apply as for an item, also where a
        redirect sends it (307 or 308; never from TLS to an address without)."""
        cost, status, problem = RequestCost(), None, ""
        body = RequestBody(urlencode(fields).encode(), "application/x-www-form-urlencoded", follows=True)
        try:
            response = await self._client.fetch(url, url, lambda _: {}, cost, listed=True, body=body)
            status = response.reply.status
            if response.blocked is not None:
                problem = response.blocked.problem
            elif response.reply.trouble is not None or status is None or not 200 <= status < 300:
                problem = classify_reply(response.reply, conditional=False)[1]
        except (HostBackoffError, UsageError) as error:
            problem = str(error)
        problem = self._client.hide(problem)
        return FormAnswer(status, problem, cost.requests, cost.bytes, cost.seconds)

    async def _fetch_document(self, url: str, cost: RequestCost) -> FinalResponse:
        """Fetch a document. Unlike a poll, this may wait for a long Crawl-delay after reading robots.txt."""
        group = host_group(url)
        lease = Lease(item_id=0, key=url, source=self.name, group=group, token=0, until_s=0.0, listed=True)
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
        """Poll one item. If it has moved permanently, request its new URL first. If the new URL is gone or
        refused, request the item's own URL. Polls after a failure and audits request only the item's own URL,
        to notice that a move was undone."""
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
        url = start.partition("#")[0]
        how = self.render_modes.choose(url, audit=not conditional) if lease.item_id else "plain"
        conditional = conditional and not self.follower.must_read(lease)

        def headers_for(url: str) -> dict[str, str]:
            # ETags depend on the encoding, so request the encoding that the validators belong to.
            encoding = lease.validators.get("accept-encoding", self._settings.accept_encoding)
            recipe, near = self._recipe_of(lease).fingerprint, self._settings.least_similarity
            conditions = self.trust.conditions(
                lease, url, recipe, conditional=conditional and how == "plain", near_duplicate=near
            )
            return {"Accept-Encoding": encoding} | conditions

        render, listed = how != "plain", lease.listed
        response = await self._client.fetch(url, lease.key, headers_for, cost, listed=listed, render=render)
        return await self._learn_to_render(response, lease.group, how)

    async def _learn_to_render(self, response: FinalResponse, group: str, how: HowToFetch) -> FinalResponse:
        """Learn whether a rendered page needed the browser. Return the response with the content that counts:
        the plain answer, if the page was rendered only to compare."""
        reply, plain = response.reply, response.reply.plain
        if plain is None:
            return response
        if self.render_modes.learns:
            with suppress(ParseBudgetError):  # a page that cannot be compared decides nothing
                pages = reply.body, plain.body, _media_type(plain)
                needed = await is_browser_needed(self.parsers, *pages, party=group)
                self.render_modes.learn(response.url, needed=needed)
        if how != "compare":
            return response
        # The browser sends other headers (Accept), so that the validators may be others than in a plain poll.
        headers = {name: value for name, value in plain.headers.items() if name not in CONDITIONS}
        return replace(response, reply=replace(plain, headers=headers))

    async def _interpret(
        self, lease: Lease, response: FinalResponse, cost: RequestCost, started_at: str | None
    ) -> Fetched:
        """Return the result for a response. ``started_at`` is the URL to which the item had moved, if any."""
        if started_at is not None and response.moved_to is None:
            response = replace(response, moved_to=started_at)
        response = self._without_secrets(response)
        reply = response.reply
        if response.blocked is not None:
            is_found = lease.listed and self.follower.belongs(lease.key)
            return replace(response.blocked, for_good=is_found and response.blocked.kind == "refused")
        if reply.trouble is None and reply.status in WITH_CONTENT:
            return await self._interpret_content(lease, response, cost)
        kind, problem = classify_reply(reply, conditional=is_conditional(response.headers))
        if response.withheld and reply.status in _WANTS_SECRETS:
            problem += _WITHHELD
        if kind == "unchanged":
            return self._interpret_not_modified(lease, response, cost)
        return Fetched(
            kind,
            retry_after_s=requested_delay_s(reply, self._clock.now_s()),
            moved_to=response.moved_to,
            status=reply.status,
            problem=problem,
        )

    def _without_secrets(self, response: FinalResponse) -> FinalResponse:
        """Return the response without a new address that contains a secret of the source: a server may
        reflect in a redirect what it was sent, and the new address would be stored and logged. The redirect
        is then followed again at each poll."""
        if response.moved_to is not None and self._client.hide(response.moved_to) != response.moved_to:
            response = replace(response, moved_to=None)
        hidden = self._client.hide(response.url)
        return response if hidden == response.url else replace(response, url=hidden)

    def _interpret_not_modified(self, lease: Lease, response: FinalResponse, cost: RequestCost) -> Fetched:
        validators = {name: value for name, value in lease.validators.items() if name != MOVED}
        lied = validators.get(LIED, "").split()
        told = validators_of(response.reply.headers).items()
        validators |= {name: value for name, value in told if name not in lied}
        if LOOKED not in validators and lease.polled_s is not None:
            validators[LOOKED] = f"{lease.polled_s:.6f}"
        lesson = ContentLesson(believes_date=self.trust.believes_dates(response.url))
        return _result(None, response, cost, validators | _moved_validator(response), lesson)

    async def _interpret_content(self, lease: Lease, response: FinalResponse, cost: RequestCost) -> Fetched:
        reply = response.reply
        media_type = _media_type(reply)
        page = ReceivedPage(
            reply.body, media_type, lease.key, response.url, has_other_copy(lease, response.url)
        )
        soft = find_soft_error(page, self._patterns, checked=self._settings.page_checks)
        if soft is not None:
            return Fetched(soft[0], status=reply.status, problem=self._client.hide(soft[1]))
        try:
            found = await self._compare(lease, reply, media_type)
            is_same = not found.changed and self._recipe_of(lease) == EVERY_BYTE
            followed = await self.follower.follow(lease, response.url, reply, is_same=is_same)
        except ParseBudgetError as error:
            return Fetched("failed", status=reply.status, problem=str(error))
        if followed.refused:
            return _refused_page(followed, reply)
        accept_encoding = response.headers["Accept-Encoding"]
        found = _with_mode(found, lease, rendered=reply.plain is not None)
        # What the server says of the plain page tells nothing about what scripts make of it.
        told = validators_of(reply.headers) if reply.plain is None else {RENDERED: "1"}
        validators = {**told, **found.notes, "accept-encoding": accept_encoding}
        validators |= _moved_validator(response)
        if response.url != lease.key:
            validators["url"] = response.url
        now_s = self._clock.now_s()
        lesson = self.trust.learn_from_content(lease, response, validators, found, now_s)
        validators = {name: value for name, value in validators.items() if name not in lesson.lied}
        notes = {SHOWN: " ".join(lesson.shown), LIED: " ".join(lesson.lied)}
        validators |= {name: names for name, names in notes.items() if names}
        validators |= followed.notes
        return replace(_result(found, response, cost, validators, lesson), links=followed.links)

    async def _compare(self, lease: Lease, reply: Reply, media_type: str) -> Comparison:
        recipe, near_duplicate = self._recipe_of(lease), self._settings.least_similarity
        copy = lease.content_hash, lease.validators
        arguments = reply.body, media_type, recipe, *copy, near_duplicate
        small = most_bytes_here(recipe, near_duplicate)
        return await self.parsers.parse(compare_content, *arguments, small=small, party=lease.group)

    def _recipe_of(self, lease: Lease) -> Recipe:
        return self._recipe.for_item(lease.selector)


def _with_mode(found: Comparison, lease: Lease, *, rendered: bool) -> Comparison:
    """Return a comparison that is a new baseline if the copy was rendered and the page is not, or the other
    way round."""
    was_rendered = RENDERED in lease.validators
    if lease.content_hash is None or rendered == was_rendered:
        return found
    return replace(found, comparable=False)


def _refused_page(followed: FollowedPage, reply: Reply) -> Fetched:
    """Return the result for a page that is no item of its own; see ``link_follower``."""
    return Fetched(
        "refused", status=reply.status, problem=followed.refused, links=followed.links, for_good=True
    )


def _moved_validator(response: FinalResponse) -> dict[str, str]:
    return {} if response.moved_to is None else {MOVED: response.moved_to}


def _result(
    found: Comparison | None,
    response: FinalResponse,
    cost: RequestCost,
    validators: Mapping[str, str],
    lesson: ContentLesson,
) -> Fetched:
    """Return the result of a successful poll. ``found`` is None if the response was a 304."""
    reply, changed = response.reply, found is not None and found.changed
    return Fetched(
        "content" if changed else "unchanged",
        content=reply.body if changed else None,
        media_type="" if found is None else _media_type(reply),
        normal_hash=None if found is None else found.normal_hash,
        comparable=found is None or found.comparable,
        validators=validators,
        modified_s=http_date_s(validators.get("last-modified")) if lesson.believes_date else None,
        verified_s=lesson.verified_s,
        requests=cost.requests,
        bytes=cost.bytes,
        seconds=cost.seconds,
        moved_to=response.moved_to,
        status=reply.status,
    )


def _media_type(reply: Reply) -> str:
    return reply.headers.get("content-type", "")[:200]
