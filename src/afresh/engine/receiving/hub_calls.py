"""Takes what hubs of feeds send (WebSub): the question whether a subscription is ours, and new entries."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from urllib.parse import urlsplit

from afresh.engine.logs import log_event
from afresh.engine.receiving.receiver_error import Received, ReceiverError
from afresh.engine.receiving.signatures import Replays, is_signed
from afresh.engine.runner.listing_changes import apply_listing
from afresh.engine.runner.websub.subscriptions import (
    HubLease,
    Subscription,
    read_lease,
    read_subscription,
)
from afresh.engine.settings.tables import Settings, SourceTable
from afresh.engine.state_names import LISTED_AT
from afresh.sources.http.listings.feeds import SMALL_FEED_BYTES, ParsedFeed, read_feed
from afresh.sources.http.urls import display_url
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.formatting import one_line
from afresh.values.listing import Listing
from afresh.values.printable_text import printable

_ALGORITHMS = ("sha1", "sha256", "sha384", "sha512")  # those of the recommendation
_LONGEST_CHALLENGE, _LONGEST_REASON = 4096, 200
_LEAST_LEASE_S, _MOST_LEASE_S = 60.0, 366 * 86400.0
_REMEMBER_S = 300.0
_LEAST_BETWEEN_READS_S = 60.0
_UNSTATED_LEASE_S = 86400.0  # where a hub does not say how long: short enough if it forgets us soon


class HubCalls:
    """Answers the calls of hubs. Any thread may call its methods."""

    def __init__(self, store: Store, clock: Clock, settings: Settings, parsers: ParserPool) -> None:
        self._store, self._clock, self._settings, self._parsers = store, clock, settings, parsers
        self._replays = Replays()
        self._read_s: dict[str, float] = {}  # when the documents of a source are read for a hub, by source

    def verify(self, subscription_id: str, query: Mapping[str, str]) -> str:
        """Return the challenge of a hub that asks whether we want a subscription, or its end. Raise
        ``ReceiverError`` if we do not, or did not ask for it."""
        wanted = read_subscription(self._store, subscription_id)
        mode, now_s = query.get("hub.mode", ""), self._clock.now_s()
        if wanted is None or query.get("hub.topic", "") != wanted.topic:
            raise ReceiverError(404, "there is no such subscription")
        if mode == "denied":
            reason = one_line(printable(query.get("hub.reason", "")[:_LONGEST_REASON])) or "without a reason"
            HubLease(now_s, problem=f"denied: {reason}").save(self._store, wanted.id)
            fields = {"source": wanted.source, "hub": display_url(wanted.hub), "problem": reason}
            log_event(logging.WARNING, "a hub denies the subscription to a feed", **fields)
            return ""
        challenge = query.get("hub.challenge", "")
        expected = "unsubscribe" if wanted.is_ended else "subscribe"
        if mode != expected or not wanted.asked_s or not 0 < len(challenge) <= _LONGEST_CHALLENGE:
            raise ReceiverError(404, "this was not asked for")
        lease_s = 0.0 if wanted.is_ended else _lease_s(query.get("hub.lease_seconds", ""))
        HubLease(now_s, now_s + lease_s, lease_s).save(self._store, wanted.id)
        return challenge

    def receive(self, subscription_id: str, headers: Mapping[str, str], body: bytes) -> Received:
        """Take what a feed published: new entries become items, changed ones notices of the origin
        ``websub``. Raise ``ReceiverError`` if it is refused."""
        wanted = read_subscription(self._store, subscription_id)
        table = None if wanted is None else self._settings.source(wanted.source)
        if wanted is None or wanted.is_ended or table is None:
            raise ReceiverError(410, "there is no such subscription any more")
        method, _, signature = headers.get("x-hub-signature", "").strip().partition("=")
        known = method.lower() if method.lower() in _ALGORITHMS else None
        if known is None or not is_signed(signature, wanted.secret, body, algorithm=known):
            raise ReceiverError(401, "the signature in X-Hub-Signature is missing or wrong")
        if not read_lease(self._store, wanted.id).told_s:
            raise ReceiverError(409, "the subscription has not been verified yet")
        signed = wanted.id.encode(), body
        if not self._replays.is_new(self._clock.now_s(), _REMEMBER_S, *signed):
            return Received(0, 0)  # what a hub sends twice is no error
        try:
            feed = self._parse(wanted, headers.get("content-type", ""), body)
            if feed.entries:
                return self._apply(wanted, table, feed)
            self._ask_to_read(wanted.source)
        except BaseException:
            self._replays.forget(*signed)
            raise
        self._replays.forget(*signed)  # without entries, the same body says each time that more is new
        return Received(0, 0)

    def _ask_to_read(self, source: str) -> None:
        """Let the documents of a source be read: a hub said that something is new, but not what. All hubs of
        a source together do so once in ``_LEAST_BETWEEN_READS_S`` seconds; what comes sooner waits."""
        now_s = self._clock.now_s()
        read_s = max(now_s, self._read_s.get(source, 0.0) + _LEAST_BETWEEN_READS_S)
        if read_s > now_s + _LEAST_BETWEEN_READS_S:
            return  # it is waited for already
        self._read_s[source] = read_s
        self._store.state.set({LISTED_AT + source: None if read_s == now_s else repr(read_s).encode()})

    def _parse(self, wanted: Subscription, media_type: str, body: bytes) -> ParsedFeed:
        party = urlsplit(wanted.hub).hostname or ""
        arguments = wanted.feed, media_type
        try:
            found = self._parsers.parse_here(read_feed, body, *arguments, small=SMALL_FEED_BYTES, party=party)
        except ParseBudgetError as error:
            raise ReceiverError(400, f"the feed cannot be read: {error}") from None
        if found.problem:
            fields = {"listing": wanted.feed, "problem": found.problem}
            log_event(logging.WARNING, "what a hub sent has a problem", **fields)
        return found

    def _apply(self, wanted: Subscription, table: SourceTable, feed: ParsedFeed) -> Received:
        listing = Listing(wanted.feed, "websub", feed.entries, complete=False, problem=feed.problem)
        group, now_s = partial(table.kind.group, table.settings), self._clock.now_s()
        most = self._settings.store.max_size
        applied = apply_listing(self._store, table.settings, group, listing, now_s, most)
        if applied.problem:
            fields = {"listing": wanted.feed, "problem": applied.problem}
            log_event(logging.WARNING, "what a hub sent has a problem", **fields)
        return Received(applied.notices, 0, applied.born)


def _lease_s(text: str) -> float:
    """Return the length of a lease, within limits: a hub may state nothing, or nonsense.

    >>> _lease_s("864000"), _lease_s("1"), _lease_s(""), _lease_s("-5"), _lease_s("99999999999")
    (864000.0, 60.0, 86400.0, 86400.0, 31622400.0)
    """
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        return _UNSTATED_LEASE_S
    return min(max(float(text), _LEAST_LEASE_S), _MOST_LEASE_S)
