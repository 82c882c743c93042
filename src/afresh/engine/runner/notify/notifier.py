"""Notifications: people are told of changes by messages to the addresses of their source's ``notify``.

Every address is a consumer of the change feed of its own, so that one that fails holds up no other one. Its
place is saved after its service has taken the message: each change is told at least once, wherever the
process is killed. A message tells all changes since the one before, at once, or every so many seconds
(a digest). A message that is not taken is tried again after longer and longer waits; what changed meanwhile
is told with it. A new address begins with the run that first has it.

The planner of a fleet sends, so that no two processes do. Messages are sent in threads of their own.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from afresh.engine.feed.change_message import ChangeMessage, write_message
from afresh.engine.logs import log_event
from afresh.engine.reporting.delivery_status import NotifyFailure, outlet_name, read_notify_failure
from afresh.engine.runner.notify.notify_address import NotifyAddress, open_addresses
from afresh.engine.settings.notify_rules import NotifyRules
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import NOTIFY_FAILURES
from afresh.engine.threaded_store import ThreadedStore
from afresh.sources.python.user_calls import UserCalls
from afresh.sources.python.user_function import RaisedError
from afresh.sources.secrets import Resolver
from afresh.values.backoff import Backoff
from afresh.values.changes import read_feed_cursor
from afresh.values.clock import Clock
from afresh.values.errors import CursorError

_MOST_CALLS = 64  # messages under way, among them those that were not sent within their time
_MOST_CHANGES = 10_000  # of one message; the rest follows at once in another one
_SAVE_EVERY_S = 60.0  # how often the place is saved where other changes than those to be told are found
RETRIES = Backoff(first_s=2.0, longest_s=3600.0)
_NAME = re.compile(r"notify:.*:[0-9]+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Outlet:
    """An address that is told of the changes of a source. ``name`` is that of its consumer."""

    name: str
    source: str
    address: NotifyAddress
    rules: NotifyRules


@dataclass(slots=True)
class _Place:
    """How far an address was told: the ``cursor``, and when it was saved. ``seen`` is the number of the last
    change when there was nothing to tell. After ``attempts`` failures, the next one is at ``retry_s``.
    ``failure`` is what is stored about them."""

    cursor: str
    saved_s: float
    has_more: bool = False
    seen: int = -1
    attempts: int = 0
    retry_s: float = 0.0
    failure: NotifyFailure | None = None


@dataclass(frozen=True, slots=True)
class _Unsent:
    """What an address is to be told next, if anything, and the place after it."""

    message: ChangeMessage | None
    cursor: str
    is_last: bool


class Notifier:
    """Sends messages about the changes of a store. ``resolver`` returns the addresses that are secrets."""

    def __init__(self, store: ThreadedStore, clock: Clock, resolver: Resolver) -> None:
        self._store, self._clock, self._resolver = store, clock, resolver
        self._calls = UserCalls("afresh notifications", _MOST_CALLS)
        self._outlets: Sequence[Outlet] = ()
        self._timeout_s = 0.0
        # By the name of the consumer; None until they are read from the store.
        self._places: dict[str, _Place] | None = None

    def open_outlets(self, settings: Settings) -> list[Outlet]:
        """Return the addresses of all sources; raise ``UsageError`` if one is wrong."""
        return [
            Outlet(outlet_name(table.settings.name, number), table.settings.name, address, table.notification)
            for table in settings.sources
            for number, address in enumerate(open_addresses(table, self._resolver), 1)
        ]

    def replace_outlets(self, outlets: Sequence[Outlet], *, timeout_s: float) -> None:
        """Send to these addresses from now on, each message for at most ``timeout_s`` seconds."""
        self._outlets, self._timeout_s, self._places = outlets, timeout_s, None

    def forget(self) -> None:
        """Forget how far the addresses were told, because another worker sends now."""
        self._places = None

    async def close(self) -> None:
        await self._calls.close()

    async def begin(self) -> None:
        """Read how far the addresses were told. A new one begins at the end of the feed."""
        outlets = self._outlets
        places = await self._store.run(self._read_places, outlets)
        if outlets is self._outlets:  # the settings may have been reloaded meanwhile
            self._places = places

    async def deliver(self) -> int:
        """Send the messages that are due; return how many were sent."""
        if self._places is None:
            await self.begin()
        outlets, places = self._outlets, self._places
        if not outlets or places is None:
            return 0
        last = await self._store.run(self._store.sync.feed.last)
        due = [outlet for outlet in outlets if self._is_due(outlet, places[outlet.name], last)]
        return sum(await asyncio.gather(*(self._tell(each, places[each.name], last) for each in due)))

    def _is_due(self, outlet: Outlet, place: _Place, last: int) -> bool:
        now_s = self._clock.now_s()
        if place.attempts:
            return now_s >= place.retry_s
        return place.has_more or (place.seen != last and now_s >= place.saved_s + outlet.rules.every)

    async def _tell(self, outlet: Outlet, place: _Place, last: int) -> bool:
        """Tell an address what it was not told yet; return whether it was sent a message."""
        unsent = await self._store.run_beside(self._read_unsent, outlet, place.cursor)
        if unsent.message is not None and (problem := await self._send(outlet, unsent.message)):
            if not await self._failed(outlet, place, unsent.message, problem):
                return False
        elif place.failure is not None and place.failure.attempts and unsent.message is not None:
            await self._recovered(place)
        await self._save(outlet, place, unsent)
        place.attempts, place.has_more = 0, not unsent.is_last
        place.seen = last if unsent.is_last else -1
        return unsent.message is not None

    async def _failed(self, outlet: Outlet, place: _Place, message: ChangeMessage, problem: str) -> bool:
        """Record that a message was not sent; return whether it is given up."""
        place.attempts += 1
        now_s, known = self._clock.now_s(), place.failure
        is_given_up = place.attempts >= outlet.rules.attempts
        place.retry_s = now_s + RETRIES.wait_s(place.attempts)
        lost = 0 if known is None else known.given_up
        place.failure = NotifyFailure(
            outlet.name,
            outlet.source,
            outlet.address.name,
            place.attempts,
            problem,
            None if is_given_up else place.retry_s,
            lost + (message.number if is_given_up else 0),
            known.since if known is not None and known.given_up else place.cursor if is_given_up else "",
        )
        await self._store.run(place.failure.save, self._store.sync)
        fields = {"source": outlet.source, "to": outlet.address.name, "attempt": place.attempts}
        level, words = logging.WARNING, "a notification was not sent"
        if is_given_up:
            level, words = logging.ERROR, "a notification was given up"
        log_event(level, words, **fields, problem=problem)
        return is_given_up

    async def _recovered(self, place: _Place) -> None:
        """Record that a message was sent again; what was given up before stays recorded."""
        known = place.failure
        assert known is not None
        place.failure = replace(known, attempts=0, next_s=None) if known.given_up else None
        if place.failure is not None:
            await self._store.run(place.failure.save, self._store.sync)
        else:
            await self._store.run(self._store.sync.state.set, {NOTIFY_FAILURES + known.name: None})

    async def _send(self, outlet: Outlet, message: ChangeMessage) -> str:
        """Send a message; return why this failed, or an empty string."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return str(await self._calls.call(outlet.address.send, message, outlet.name))
        except TimeoutError:
            return f"not sent within {self._timeout_s:g} s"
        except RaisedError as error:
            return outlet.address.hide(str(error))

    async def _save(self, outlet: Outlet, place: _Place, unsent: _Unsent) -> None:
        """Save the place after ``unsent``; less often if there was nothing to tell."""
        now_s, place.cursor = self._clock.now_s(), unsent.cursor
        wait_s = outlet.rules.every or _SAVE_EVERY_S
        if unsent.message is not None or now_s - place.saved_s >= wait_s:
            move = self._store.sync.feed.move
            await self._store.run(move, outlet.name, unsent.cursor, now_s, outlet.source)
            place.saved_s = now_s

    def _read_unsent(self, outlet: Outlet, cursor: str) -> _Unsent:
        store = self._store.sync
        try:
            page = store.feed.read(cursor, _MOST_CHANGES, outlet.source)
        except CursorError as error:
            fields = {"source": outlet.source, "to": outlet.address.name, "problem": str(error)}
            log_event(logging.ERROR, "changes were dropped before an address was told of them", **fields)
            page = store.feed.read(store.feed.start(), _MOST_CHANGES, outlet.source)
        message = write_message(store, outlet.source, page.entries, outlet.rules)
        return _Unsent(message, page.cursor, page.is_last)

    def _known_failure(self, name: str, cursor: str) -> NotifyFailure | None:
        """Return what is stored of the failures of an address. What was given up is told again if its place
        was moved back, and then forgotten."""
        store = self._store.sync
        known = read_notify_failure(store, name)
        if known is None or not known.given_up:
            return known
        if read_feed_cursor(cursor).number > read_feed_cursor(known.since).number:
            return known
        if not known.attempts:
            store.state.set({NOTIFY_FAILURES + name: None})
            return None
        known = replace(known, given_up=0, since="")
        known.save(store)
        return known

    def _read_places(self, outlets: Sequence[Outlet]) -> dict[str, _Place]:
        """Return the place of each address. Forget those of addresses that no source has any more."""
        feed = self._store.sync.feed
        known = {each.name: each for each in feed.consumers()}
        names = {outlet.name for outlet in outlets}
        for name in known:
            if _NAME.fullmatch(name) and name not in names:
                feed.drop(name)
                self._store.sync.state.set({NOTIFY_FAILURES + name: None})
        places = {}
        for outlet in outlets:
            found, now_s = known.get(outlet.name), self._clock.now_s()
            if found is None:
                cursor = feed.cursor()
                feed.move(outlet.name, cursor, now_s, outlet.source)
                places[outlet.name] = _Place(cursor, now_s)
            else:
                failure = self._known_failure(outlet.name, found.cursor)
                place = places[outlet.name] = _Place(found.cursor, found.moved_s, failure=failure)
                if failure is not None and failure.next_s is not None:
                    place.attempts = failure.attempts  # it is tried at once: the reason may be gone
        return places
