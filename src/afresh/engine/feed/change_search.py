"""Searches the change feed from its end, for people: the newest changes first, filtered, and page by page.

A search reads a limited number of changes, so that one that finds little does not hold up the store. It then
returns where to search further.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property
from typing import Protocol

from afresh.values.changes import FeedEntry
from afresh.values.errors import InputError, one_of
from afresh.values.outcome import EVENT_KINDS

_READ_AT_ONCE = 1000
_MOST_READ = 20_000  # changes that one search reads: a fraction of a second
_WILD = re.compile(r"[*?]")


class NewestChanges(Protocol):
    """What can be searched: the feed of a project."""

    def newest(self, limit: int, source: str | None = None, before: str | None = None) -> Sequence[FeedEntry]:
        """Return at most ``limit`` changes before that of the cursor ``before``, the newest first."""


@dataclass(frozen=True)
class ChangeFilter:
    """Which changes are found: those of ``source`` and ``kind`` (empty: of all), whose key contains ``text``
    in upper or lower case. ``text`` with ``*`` or ``?`` is a pattern for the whole key. A change of kind
    ``changed`` that is known to be smaller than ``min_change``, a share from 0 to 1, is not found."""

    source: str = ""
    kind: str = ""
    text: str = ""
    min_change: float = 0.0

    def __post_init__(self) -> None:
        if self.kind:
            one_of("kind of change", self.kind, EVENT_KINDS)
        if not 0 <= self.min_change <= 1:
            raise InputError(
                f"min_change is {self.min_change:g}: it must be a share from 0 to 1, such as 0.05"
            )

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        text = self.text if _WILD.search(self.text) else f"*{self.text.replace('[', '[[]')}*"
        return re.compile(translate(text), re.IGNORECASE)

    def is_met_by(self, entry: FeedEntry) -> bool:
        """Return whether a change is one of those that are looked for.

        >>> entry = FeedEntry("1-1-00", 1, "http://a.test/Docs/b.html", "web", "new", 1, 5.0, None, 1, None)
        >>> texts = "docs", "*/docs/*.html", "docs/*", "[d]ocs"
        >>> [ChangeFilter(text=text).is_met_by(entry) for text in texts]
        [True, True, False, False]
        """
        is_small = entry.kind == "changed" and (
            entry.change_size is not None and entry.change_size < self.min_change
        )
        return (
            not is_small
            and self.kind in ("", entry.kind)
            and (not self.text or self._pattern.match(entry.key) is not None)
        )


@dataclass(frozen=True, slots=True)
class FoundChanges:
    """Changes, the newest first. ``cursor`` is where to search further; None if nothing is left."""

    entries: Sequence[FeedEntry]
    cursor: str | None


def search_changes(
    changes: NewestChanges, wanted: ChangeFilter, limit: int, before: str | None = None
) -> FoundChanges:
    """Return at most ``limit`` changes that meet a filter, of those before the cursor ``before``."""
    found: list[FeedEntry] = []
    read = 0
    while read < _MOST_READ:
        entries = changes.newest(_READ_AT_ONCE, wanted.source or None, before)
        for entry in entries:
            if wanted.is_met_by(entry):
                if len(found) == limit:
                    return FoundChanges(found, found[-1].cursor)
                found.append(entry)
        if len(entries) < _READ_AT_ONCE:
            return FoundChanges(found, None)
        read, before = read + len(entries), entries[-1].cursor
    return FoundChanges(found, before)
