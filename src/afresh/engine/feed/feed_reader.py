"""Reads the change feed of a store for programs: in pages, or one change after the other.

A consumer is a program whose place in the feed the store keeps under a name. Its place is saved after it has
processed changes, never before, so that it gets every change at least once, wherever it is killed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from afresh.engine.feed.change_message import change_diff
from afresh.engine.feed.content_forms import opened_form
from afresh.stores.store import Store
from afresh.values.changes import Change, Consumer, FeedEntry, FeedPage, read_feed_cursor
from afresh.values.clock import Clock
from afresh.values.errors import CursorError, UsageError, did_you_mean
from afresh.values.stored import Copy

TextOf: TypeAlias = Callable[[Copy], str | None]

PAGE = 1000
MOST_CONTENT_BYTES = 16_000_000
"""A page with contents ends when it has so many, because all contents of a page are in memory at once."""
LONGEST_PAGE_S = 10.0
"""A page with contents ends after this time: it may take long to find the main text of a hostile page."""
LOOK_EVERY_S = 0.2
"""How often a listener looks for new changes, in seconds."""
SAVE_EVERY_S = 1.0
_WITH_COPY = ("new", "changed")


@dataclass(frozen=True, slots=True)
class ChangeQuery:
    """Which changes are read: those of ``source`` (None: of all), and the form of their content (None: the
    changes come without content)."""

    source: str | None = None
    content: str | None = None


@dataclass(frozen=True, slots=True)
class ChangePage:
    """A part of the feed. ``cursor`` is the place after it; ``is_last`` is True if there are no further
    changes yet."""

    changes: Sequence[Change]
    cursor: str
    is_last: bool


class FeedReader:
    """The change feed of one store. Any thread may use it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def page(self, since: str | None, limit: int = PAGE, query: ChangeQuery | None = None) -> ChangePage:
        """Return at most ``limit`` changes after the cursor ``since`` (None: from the oldest kept), and fewer
        if their contents are large or take long."""
        query = query or ChangeQuery()
        with opened_form(self._store, query.content) as text_of:
            found = self._store.feed.read(since, limit, query.source)
            return next(self._as_pages(found, query, text_of))

    def _as_pages(self, found: FeedPage, query: ChangeQuery, text_of: TextOf | None) -> Iterator[ChangePage]:
        """Yield a page of the store as one page, or as several if its contents are large or take long."""
        changes: list[Change] = []
        if query.content is None:
            changes = [plain_change(entry) for entry in found.entries]
        size, begun_s = 0, self._clock.elapsed_s()
        for entry in found.entries[len(changes) :]:
            if size >= MOST_CONTENT_BYTES or self._clock.elapsed_s() - begun_s >= LONGEST_PAGE_S:
                yield ChangePage(changes, changes[-1].cursor, is_last=False)
                changes, size, begun_s = [], 0, self._clock.elapsed_s()
            changes.append(self._with_content(entry, text_of))
            size += len(changes[-1].content) + len(changes[-1].text or "")
        yield ChangePage(changes, found.cursor, found.is_last)

    def cursor(self) -> str:
        """Return the cursor of the newest change."""
        return self._store.feed.cursor()

    def newest(self, limit: int, source: str | None = None, before: str | None = None) -> Sequence[FeedEntry]:
        """Return at most ``limit`` changes, of ``source`` or of all sources, the newest first; with the
        cursor ``before``, only those before its change."""
        return self._store.feed.newest(limit, source, before)

    def diff(self, entry: FeedEntry, most_lines: int) -> str:
        """Return at most ``most_lines`` lines of the difference that a change made; empty if not known."""
        return change_diff(self._store, entry, most_lines)

    def start(self) -> str:
        """Return the oldest cursor from which the feed can be followed."""
        return self._store.feed.start()

    def last(self) -> int:
        """Return a number that grows with every change."""
        return self._store.feed.last()

    def follow(
        self,
        since: str | None = None,
        query: ChangeQuery | None = None,
        *,
        limit: float = math.inf,
        wait: bool = False,
    ) -> Iterator[Change]:
        """Yield the changes after ``since``, at most ``limit``. With ``wait``, wait for further changes at
        the end of the feed; without, stop there."""
        for page in self.pages(since, query, limit=limit, wait=wait):
            yield from page.changes

    def pages(
        self,
        since: str | None = None,
        query: ChangeQuery | None = None,
        *,
        limit: float = math.inf,
        wait: bool = False,
        size: int = PAGE,
    ) -> Iterator[ChangePage]:
        """Yield pages of at most ``size`` changes, as ``follow`` yields changes. A page may be empty."""
        query = query or ChangeQuery()
        with opened_form(self._store, query.content) as text_of:
            for found in self.entry_pages(since, query.source, limit=limit, wait=wait, size=size):
                yield from self._as_pages(found, query, text_of)

    def entry_pages(
        self,
        since: str | None = None,
        source: str | None = None,
        *,
        limit: float = math.inf,
        wait: bool = False,
        size: int = PAGE,
    ) -> Iterator[FeedPage]:
        """Yield the same pages as the store has them, without contents: this is twice as fast."""
        left = limit
        while left >= 1:
            seen = self.last()
            page = self._store.feed.read(since, int(min(size, left)), source)
            yield page
            since, left = page.cursor, left - len(page.entries)
            if page.is_last and left >= 1:
                if not wait:
                    return
                self._wait_for_change(seen)

    def consume(
        self,
        name: str,
        query: ChangeQuery | None = None,
        *,
        since: str | None = None,
        limit: float = math.inf,
        wait: bool = False,
    ) -> Generator[Change, None, None]:
        """Yield the changes that the consumer ``name`` has not processed yet. A new consumer begins at
        ``since``. A change counts as processed when the next one is asked for. The place of the consumer is
        saved once a second, after each page, and when the iterator is closed."""
        query = query or ChangeQuery()
        place = self.place_of(name, query.source)
        since = place.begin(since)
        try:
            for page in self.pages(since, query, limit=limit, wait=wait):
                for change in page.changes:
                    yield change
                    place.reach(change.cursor)
                place.reach(page.cursor)
                place.save()
        finally:
            place.save()

    def place_of(self, name: str, source: str | None = None) -> SavedPlace:
        """Return the place of the consumer ``name``, who follows ``source`` or all sources."""
        return SavedPlace(self._store, self._clock, name, source)

    def consumers(self) -> list[Consumer]:
        """Return all consumers, sorted by name."""
        return self._store.feed.consumers()

    def find_consumer(self, name: str) -> Consumer:
        """Return a consumer; raise ``UsageError`` if there is none of this name."""
        known = {consumer.name: consumer for consumer in self.consumers()}
        if name not in known:
            raise UsageError(f"there is no consumer {name!r}{did_you_mean(name, known)}")
        return known[name]

    def move_consumer(self, name: str, cursor: str, source: str | None = None) -> None:
        """Save the place of a consumer; a new name makes a consumer."""
        self._store.feed.move(name, cursor, self._clock.now_s(), source or "")

    def remove_consumer(self, name: str) -> None:
        """Forget a consumer; raise ``UsageError`` if there is none of this name."""
        self._store.feed.drop(self.find_consumer(name).name)

    def retell(self, since: str | None, sources: Sequence[str]) -> int:
        """Let hooks be told again of the changes of ``sources`` after the cursor ``since`` (None: from the
        oldest kept). Return how many there are."""
        since = self.start() if since is None else since
        self._store.feed.read(since, 1)  # refuses a cursor that cannot be followed
        after = read_feed_cursor(since).number
        return sum(self._store.events.retell(after, source) for source in sources)

    def _wait_for_change(self, seen: int) -> None:
        """Wait until the feed has changes after the number ``seen``."""
        pause = threading.Event()  # never set: it only waits, and a signal can interrupt it
        while self.last() <= seen:
            pause.wait(LOOK_EVERY_S)

    def _with_content(self, entry: FeedEntry, text_of: TextOf | None) -> Change:
        copy = copy_of_change(self._store, entry.item_id, entry.kind, entry.version)
        if copy is None:
            return plain_change(entry)
        if text_of is None:
            return plain_change(entry, copy.content, has_content=True)
        return plain_change(entry, text=text_of(copy))


class SavedPlace:
    """The place of one consumer, which is saved now and then."""

    def __init__(self, store: Store, clock: Clock, name: str, source: str | None) -> None:
        self._feed, self._clock, self._name, self._source = store.feed, clock, name, source or ""
        self._reached: str | None = None
        self._saved: str | None = None
        self._saved_s = clock.elapsed_s()

    def begin(self, since: str | None) -> str | None:
        """Return the place at which the consumer begins: the saved one or, for a new one, ``since``. Raise
        ``UsageError`` if it follows another source, ``CursorError`` if its place can no longer be followed.
        """
        known = next((each for each in self._feed.consumers() if each.name == self._name), None)
        if known is None:
            return since
        if known.source != self._source:
            follows = f"the source {known.source!r}" if known.source else "all sources"
            raise UsageError(
                f"the consumer {self._name!r} follows {follows}: give the same, or use another name"
            )
        try:
            self._feed.read(known.cursor, 1)
        except CursorError as error:
            words = f"{error}; 'afresh consumers reset {self._name} --to CURSOR' gives it to the consumer"
            raise CursorError(words) from None
        self._saved = known.cursor
        return known.cursor

    def reach(self, cursor: str) -> None:
        """All changes up to ``cursor`` were processed."""
        self._reached = cursor
        if self._clock.elapsed_s() - self._saved_s >= SAVE_EVERY_S:
            self.save()

    def save(self) -> None:
        self._saved_s = self._clock.elapsed_s()
        if self._reached not in (None, self._saved):
            self._feed.move(self._name, str(self._reached), self._clock.now_s(), self._source)
            self._saved = self._reached


def copy_of_change(store: Store, item_id: int, kind: str, version: int) -> Copy | None:
    """Return the copy that a change made, the newest one if the store no longer has it, or None if the copy
    is gone."""
    if kind not in _WITH_COPY:
        return None
    return store.copies.get(item_id, version) or store.copies.get(item_id)


def plain_change(
    entry: FeedEntry, content: bytes = b"", text: str | None = None, *, has_content: bool = False
) -> Change:
    """Return a change as programs receive it."""
    place = (entry.key, entry.source, entry.kind, entry.version, entry.time_s, content)
    sizes = (entry.changed_s, entry.size, entry.previous_size)
    return Change(*place, *sizes, entry.cursor, text, None, has_content, entry.change_size)
