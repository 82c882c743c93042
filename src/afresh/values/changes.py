"""The change feed: what a store records of every change of a copy, in the order of the commits.

A *cursor* is a place in the feed of one store, as a text: everything up to it was seen. It names the feed
(its epoch, a random number that is drawn when the feed begins), the number of the last change seen, and a
check of this change. A store that was restored from an older backup gives the same numbers to other changes;
the check tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from afresh.values.diffs.line_diff import unified_lines
from afresh.values.errors import CursorError, InputError
from afresh.values.outcome import EventKind

START_AGAIN = (
    "start again: take a new cursor (afresh changes --cursor), list the items (afresh export), "
    "then follow from the cursor"
)
_NOT_OF_THIS_FEED = "the cursor is not of this feed: it is of another store, or of a later state of this one"
_TOO_OLD = "the cursor is too old: later changes were dropped from the feed already ([feed] keep)"
_CURSOR = re.compile(r"([0-9a-f]{1,12})-([0-9]{1,18})-([0-9a-f]{8})")
_SHOWN = 80
_HOW = "a cursor is a place in the feed, and comes with each change (afresh changes --json)"


class FeedCursor(NamedTuple):
    """A cursor in its parts. ``number`` is 0 before the first change, and ``check`` is 0 then too."""

    epoch: int
    number: int
    check: int

    def __str__(self) -> str:
        return f"{self.epoch:x}-{self.number}-{self.check:08x}"


def read_feed_cursor(text: str) -> FeedCursor:
    """Return the parts of a cursor; raise ``InputError`` if the text is none.

    >>> read_feed_cursor(str(FeedCursor(0xBEEF, 17, 5)))
    FeedCursor(epoch=48879, number=17, check=5)
    >>> read_feed_cursor("17")
    Traceback (most recent call last):
    afresh.values.errors.InputError: '17' is no cursor of a feed: a cursor is a place in the feed, \
and comes with each change (afresh changes --json)
    """
    found = _CURSOR.fullmatch(text)
    if found is None:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        raise InputError(f"{shown!r} is no cursor of a feed: {_HOW}")
    epoch, number, check = found.groups()
    return FeedCursor(int(epoch, 16), int(number), int(check, 16))


def check_of_change(item_id: int, kind: str, version: int, time_s: float) -> int:
    """Return the number by which a cursor tells a change from others with the same number.

    >>> check_of_change(1, "new", 1, 0.5) == check_of_change(1, "new", 1, 0.75)
    False
    """
    return crc32(f"{item_id} {kind} {version} {time_s!r}".encode())


def foreign_cursor_error() -> CursorError:
    return CursorError(f"{_NOT_OF_THIS_FEED}; {START_AGAIN}")


def old_cursor_error() -> CursorError:
    return CursorError(f"{_TOO_OLD}; {START_AGAIN}")


class FeedEntry(NamedTuple):
    """One change in the feed. ``cursor`` is the place after it, ``key`` the key of the item.

    ``kind`` is ``new`` (the first copy, or the copy of an item that was gone), ``changed``, ``gone`` (its
    source no longer has it) or ``removed`` (a user removed it). ``version`` is the number of the newest
    version then, 0 if there was none. ``time_s`` is when the change was seen; ``changed_s`` when it happened,
    if its source says so, else None. ``size`` is the size of the copy in bytes, None where it has gone;
    ``previous_size`` is that of the copy before, None if there was none. ``change_size`` is how much of the
    content is new, from 0 to 1, None if that was not measured."""

    cursor: str
    item_id: int
    key: str
    source: str
    kind: EventKind
    version: int
    time_s: float
    changed_s: float | None
    size: int | None
    previous_size: int | None
    change_size: float | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One change, as programs receive it: from ``afresh.changes``, or as hooks.

    ``item`` is the key of the item. ``kind``, ``version``, ``time_s``, ``changed_s``, ``size``,
    ``previous_size`` and ``change_size`` are those of ``FeedEntry``. ``content`` are the bytes of the copy;
    it is empty, and ``has_content`` False, if they were not asked for or the copy is gone. ``text`` is its
    main text where that was asked for and there is one. ``previous`` is the content of the version before,
    None if it was not asked for or is not kept."""

    item: str
    source: str
    kind: EventKind
    version: int
    time_s: float
    content: bytes = b""
    changed_s: float | None = None
    size: int | None = None
    previous_size: int | None = None
    cursor: str = ""
    text: str | None = None
    previous: bytes | None = None
    has_content: bool = False
    change_size: float | None = None

    def diff(self) -> str:
        """Return the difference between ``previous`` and ``content`` by lines, in the unified format.

        >>> print(Change("a", "web", "changed", 2, 0.0, b"x\\nz", previous=b"x\\ny").diff())
        --- a (before)
        +++ a
        @@ -1,2 +1,2 @@
         x
        -y
        +z
        """
        pair = (self.previous or b"", self.content)
        old, new = (content.decode(errors="replace").splitlines() for content in pair)
        return "\n".join(unified_lines(old, new, f"{self.item} (before)", self.item))


@dataclass(frozen=True, slots=True)
class FeedPage:
    """A part of a feed. ``cursor`` is the place after it, also after entries of other sources that were
    skipped. ``is_last`` is True if there were no further changes when it was read."""

    entries: Sequence[FeedEntry]
    cursor: str
    is_last: bool


@dataclass(frozen=True, slots=True)
class Consumer:
    """A program that follows the feed, and whose place the store keeps under a name. ``source`` is the source
    whose changes it follows, empty if all. ``behind`` is how many changes came after ``cursor``, those of
    other sources included. ``moved_s`` is when the place was saved."""

    name: str
    source: str
    cursor: str
    behind: int
    moved_s: float
