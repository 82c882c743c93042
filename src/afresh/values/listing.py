"""Listings: the items that a sitemap, a feed or a start page names, and how the list changed.

A ``Listing`` is what one document names. A comparison with the previous listing of the same document finds
births (new items), deaths (items that are no longer listed) and notices (hints that an item changed).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

ListingKind: TypeAlias = Literal["sitemap", "feed", "page", "query", "catalogue", "websub"]


@dataclass(frozen=True, slots=True)
class ListingEntry:
    """One entry of a listing; it names one item.

    ``mark`` identifies the version of the item (a date, an id); a new mark is a notice. ``modified_s`` is the
    stated time of the last change. ``prior_rate_per_s`` is the stated change rate (a sitemap's changefreq), a
    claim of the publisher that is used only as a prior. A new item has this ``weight``, 1 by default."""

    key: str
    mark: str = ""
    modified_s: float | None = None
    prior_rate_per_s: float | None = None
    weight: float | None = None

    @property
    def changed_by_s(self) -> float | None:
        """The latest possible time of the last change, in Unix seconds; None if the entry states no time.
        If ``mark`` is only a date, a month or a year, it is the end of that day, month or year.

        >>> ListingEntry("a", "1970-01-02", modified_s=86400.0).changed_by_s
        172800.0
        >>> ListingEntry("a", "1970-01-02T00:00Z", modified_s=86400.0).changed_by_s
        86400.0
        """
        if self.modified_s is None:
            return None
        is_date = all(part.isdigit() for part in self.mark.split("-"))
        return self.modified_s + (_DATE_DAYS.get(len(self.mark), 0) * 86400.0 if is_date else 0.0)


_DATE_DAYS = {4: 366, 7: 31, 10: 1}  # days, by the length of a text: 2026, 2026-05, 2026-05-01


@dataclass(frozen=True, slots=True)
class Listing:
    """The entries of one document. A ``complete`` document lists all items, so a missing item is gone.
    ``origin`` is the address of the document. ``again_after_s`` is how many seconds later it wants to be read
    again (a feed's ttl). ``problem`` describes an error in it; ``entries`` are those before the error.
    ``hub`` announces what the feed publishes (WebSub), under the address ``topic``; empty if it has none. A
    listing of the kind ``websub`` is what a hub sent."""

    origin: str
    kind: ListingKind
    entries: tuple[ListingEntry, ...]
    complete: bool
    again_after_s: float | None = None
    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0
    problem: str = ""
    hub: str = ""
    topic: str = ""


@dataclass(frozen=True, slots=True)
class ListingChanges:
    """The keys that are new in a listing (births), no longer in it (deaths), or have a new mark (notices)."""

    births: tuple[str, ...]
    deaths: tuple[str, ...]
    notices: tuple[str, ...]


def compare_listing(
    before: Mapping[str, str], entries: Iterable[ListingEntry], *, complete: bool
) -> ListingChanges:
    """Compare the ``entries`` of a document with its previous entries, ``before`` (key → mark).
    A listing that is not complete (a feed, a partly read document) has no deaths. An entry without a mark can
    be a birth or a death, but never a notice.

    >>> compare_listing({"a": "1", "b": "1"}, [ListingEntry("b", "2"), ListingEntry("c", "1")], complete=True)
    ListingChanges(births=('c',), deaths=('a',), notices=('b',))
    """
    births: dict[str, None] = {}
    notices: dict[str, None] = {}
    seen: set[str] = set()
    for entry in entries:
        seen.add(entry.key)
        if entry.key not in before:
            births[entry.key] = None
        elif entry.mark and entry.mark != before[entry.key]:
            notices[entry.key] = None
    deaths = tuple(key for key in before if key not in seen) if complete else ()
    return ListingChanges(tuple(births), deaths, tuple(notices))
