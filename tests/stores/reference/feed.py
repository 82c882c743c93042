"""The change feed in a list: change number n is at place n − 1, and None where it was dropped."""

from __future__ import annotations

from dataclasses import dataclass

from tests.stores.reference.data import ReferenceData, ReferenceGroup

from afresh.stores.cursors import check_limit
from afresh.stores.store import Feed
from afresh.values.changes import (
    Consumer,
    FeedCursor,
    FeedEntry,
    FeedPage,
    check_of_change,
    foreign_cursor_error,
    old_cursor_error,
    read_feed_cursor,
)
from afresh.values.errors import InputError
from afresh.values.items import Item
from afresh.values.outcome import EventKind
from afresh.values.storable_text import check_storable
from afresh.values.stored import Event

EPOCH = 0xEF


@dataclass(frozen=True, slots=True)
class Sizes:
    """The size of the copy and of the copy before."""

    now: int | None = None
    before: int | None = None
    share: float | None = None


def record_change(
    data: ReferenceData,
    item: Item,
    kind: EventKind,
    time_s: float,
    *,
    for_hooks: bool,
    sizes: Sizes,
    changed_s: float | None = None,
) -> None:
    """Write a change to the feed, and queue it for hooks."""
    check = check_of_change(item.id, kind, item.version, time_s)
    cursor = str(FeedCursor(EPOCH, len(data.feed) + 1, check))
    place = (cursor, item.id, item.key, item.source, kind, item.version)
    data.feed.append(FeedEntry(*place, time_s, changed_s, sizes.now, sizes.before, sizes.share))
    if for_hooks:
        number = data.next_number("event")
        event = Event(number, item.id, item.key, item.source, kind, item.version, time_s, 0)
        data.events[number] = (time_s, event)


class ReferenceFeed(ReferenceGroup, Feed):
    def read(self, after: str | None = None, limit: int = 1000, source: str | None = None) -> FeedPage:
        check_limit(limit)
        with self._data:
            number = 0 if after is None else self._check(after)
            found = [
                entry
                for entry in self._data.feed[number:]
                if entry is not None and source in (None, entry.source)
            ]
            if len(found) > limit:
                return FeedPage(found[:limit], found[limit - 1].cursor, False)
            return FeedPage(found, self.cursor(), True)

    def newest(
        self, limit: int = 50, source: str | None = None, before: str | None = None
    ) -> list[FeedEntry]:
        check_limit(limit)
        place = None if before is None else read_feed_cursor(before)
        with self._data:
            if place is not None and (place.epoch != EPOCH or place.number > len(self._data.feed)):
                raise foreign_cursor_error()
            earlier = self._data.feed if place is None else self._data.feed[: max(0, place.number - 1)]
            kept = [entry for entry in earlier if entry is not None]
            return [entry for entry in reversed(kept) if source in (None, entry.source)][:limit]

    def cursor(self) -> str:
        with self._data:
            newest = self._data.feed[-1] if self._data.feed else None
            return str(FeedCursor(EPOCH, 0, 0)) if newest is None else newest.cursor

    def start(self) -> str:
        with self._data:
            kept = [entry for entry in self._data.feed if entry is not None]
            is_whole = len(kept) == len(self._data.feed)
            return str(FeedCursor(EPOCH, 0, 0)) if is_whole else kept[0].cursor

    def last(self) -> int:
        with self._data:
            return len(self._data.feed)

    def trim(self, before_s: float) -> int:
        with self._data:
            feed = self._data.feed
            first = next((n for n, entry in enumerate(feed) if entry is not None), 0)
            until = first
            while until < len(feed) and (entry := feed[until]) is not None and entry.time_s < before_s:
                until += 1
            dropped = max(0, until - 1 - first)
            feed[first : first + dropped] = [None] * dropped
            return dropped

    def consumers(self) -> list[Consumer]:
        with self._data:
            found = sorted(self._data.consumers.items())
            return [
                Consumer(name, source, cursor, self.last() - read_feed_cursor(cursor).number, moved_s)
                for name, (source, cursor, moved_s) in found
            ]

    def move(self, name: str, cursor: str, now_s: float, source: str = "") -> None:
        if not name:
            raise InputError("a consumer needs a name")
        check_storable("a consumer's name", [name])
        with self._data:
            self._check(cursor)
            self._data.consumers[name] = (source, cursor, now_s)

    def drop(self, name: str) -> bool:
        with self._data:
            return self._data.consumers.pop(name, None) is not None

    def _check(self, cursor: str) -> int:
        place, feed = read_feed_cursor(cursor), self._data.feed
        if place.epoch != EPOCH or place.number > len(feed):
            raise foreign_cursor_error()
        if place.number == 0:
            if feed and feed[0] is None:
                raise old_cursor_error()
            return 0
        entry = feed[place.number - 1]
        if entry is None:
            raise old_cursor_error()
        if entry.cursor != cursor:
            raise foreign_cursor_error()
        return place.number
