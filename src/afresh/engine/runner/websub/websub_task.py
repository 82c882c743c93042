"""Asks hubs for subscriptions to feeds, renews them before they end, and ends those of feeds that are gone.

The requests go through the source that reads the feed: its budget, its checks of addresses, its limits of
hosts. Hubs are asked only if the settings say at which address they can reach this server (``[web]
callback``). The planner of a fleet asks, so that no two workers do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from afresh.engine.logs import log_event
from afresh.engine.runner.run_context import RunContext
from afresh.engine.runner.websub.subscriptions import (
    HubLease,
    HubRequest,
    Subscription,
    forget_subscriptions,
    next_request,
    read_lease,
    read_subscriptions,
    request_fields,
)
from afresh.engine.scheduler.poll_recorder import compute_spent
from afresh.sources.http.urls import display_url
from afresh.values.listing import Listing

_CHECK_EVERY_S = 1.0
_MOST_FEEDS = 1000  # of a source; each is a request to its hub every few days


class WebSubTask:
    """Follows the hubs that the feeds of all sources name."""

    def __init__(self, context: RunContext) -> None:
        self._context, self._store, self._clock = context, context.store, context.clock
        # By id; None until they are read from the store, or while another worker plans.
        self._wanted: dict[str, Subscription] | None = None
        self._named: dict[str, Sequence[Listing]] = {}  # the feeds of each source that were just read
        self._problems: dict[str, str] = {}

    def listings_read(self, source: str, listings: Sequence[Listing]) -> None:
        """All documents of a source were read. Feeds may name other hubs now, or be gone."""
        self._named[source] = listings

    async def run(self) -> None:
        """Send the requests that are due, until cancelled."""
        while True:
            if self._context.member.is_planner:
                await self.follow()
            else:
                self._wanted = None
            await asyncio.sleep(_CHECK_EVERY_S)

    async def follow(self) -> None:
        """Follow what the feeds name, and send the requests that are due now."""
        callback = self._context.settings.now.web.callback
        if not callback and not self._named and self._wanted == {}:
            return
        if self._wanted is None:
            found = await self._store.run(read_subscriptions, self._store.sync)
            self._wanted = {each.id: each for each in found}
        named, self._named = self._named, {}
        for change in _changes(
            self._wanted, named if callback else {}, self._sources(), has_server=bool(callback)
        ):
            await self._save(change)
        for wanted in list(self._wanted.values()):
            lease = await self._store.run(read_lease, self._store.sync, wanted.id)
            action = next_request(wanted, lease, self._clock.now_s())
            if action is not None:
                await self._act(wanted, lease, action, callback)

    def _sources(self) -> set[str]:
        return {table.settings.name for table in self._context.settings.now.sources}

    async def _save(self, wanted: Subscription) -> None:
        assert self._wanted is not None
        self._wanted[wanted.id] = wanted
        await self._store.run(wanted.save, self._store.sync)

    async def _act(self, wanted: Subscription, lease: HubLease, action: HubRequest, callback: str) -> None:
        sender = self._context.sources.capabilities(wanted.source).forms
        if action == "forget" or (wanted.is_ended and (sender is None or not callback)):
            assert self._wanted is not None
            del self._wanted[wanted.id]  # what the hub still sends is answered with 410
            await self._store.run(forget_subscriptions, self._store.sync, [wanted.id])
            return
        if sender is None:
            return  # the source is being replaced
        wanted = wanted.before_request(lease, self._clock.now_s())
        await self._save(wanted)
        with self._context.sources.using(wanted.source):
            answer = await sender.send_form(wanted.hub, request_fields(wanted, action, callback))
        settings = self._context.settings.now
        spent = compute_spent(settings.budget, answer.requests, answer.bytes, answer.seconds)
        self._context.gate.record_cost(spent)
        await self._store.run(self._store.sync.ledger.add, wanted.source, self._clock.now_s(), spent)
        if answer.problem:
            await self._save(wanted.after_failure(self._clock.now_s()))
        self._report(wanted, lease.problem or answer.problem)

    def _report(self, wanted: Subscription, problem: str) -> None:
        """Log a problem once for as long as it lasts."""
        if problem and self._problems.get(wanted.id) != problem:
            fields = {"source": wanted.source, "hub": display_url(wanted.hub), "problem": problem}
            log_event(logging.WARNING, "a hub does not take the subscription to a feed", **fields)
        self._problems[wanted.id] = problem


def _changes(
    wanted: Mapping[str, Subscription],
    named: Mapping[str, Sequence[Listing]],
    sources: set[str],
    *,
    has_server: bool,
) -> list[Subscription]:
    """Return the subscriptions that are new or ended, now that these feeds were read (``named``, by source).
    A source that has documents that could not be read ends none: a feed that it names may be back soon."""
    active = {(each.source, each.feed): each for each in wanted.values() if not each.is_ended}
    gone = [each for each in active.values() if each.source not in sources or not has_server]
    changes = [each.ended() for each in gone]
    for source, listings in named.items():
        feeds = {one.origin: one for one in listings if one.hub and one.kind == "feed"}
        is_whole = not any(one.problem and not one.entries for one in listings)
        own = [each for each in active.values() if each.source == source]
        changes += [each.ended() for each in own if is_whole and each.feed not in feeds]
        for feed, listing in list(feeds.items())[:_MOST_FEEDS]:
            before = active.get((source, feed))
            topic = listing.topic or feed
            if before is not None and (before.hub, before.topic) == (listing.hub, topic):
                continue
            if before is not None:
                changes.append(before.ended())
            changes.append(Subscription.begin(source, feed, topic, listing.hub))
    return changes
