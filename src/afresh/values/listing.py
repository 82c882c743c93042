"""Listings: the items that a sitemap, a feed or a start page lists, and how the list changed.

Each document is one ``Listing``. A comparison with the previous listing of the same document finds births
(new items), deaths (items that are no longer listed) and notices (hints that an item changed).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

ListingKind: TypeAlias = Literal["sitemap", "feed", "page", "query", "catalogue"]


@dataclass(frozen=True, slots=True)
class ListingEntry:
    """One entry of a listing.

    ``mark`` identifies the version of the entry (a date, an id); a new mark is a notice.
    ``prior_rate_per_s`` is the change rate that the document states (a sitemap's changefreq); ``priority``,
    from 0 to 1, is the importance that it states. Both are claims of the publisher and serve only as priors.
    """

    key: str
    mark: str = ""
    modified_s: float | None = None
    prior_rate_per_s: float | None = None
    priority: float | None = None

    @property
    def changed_by_s(self) -> float | None:
        """The latest possible time of the change: the end of the day, month or year if ``mark`` is only a
        date.

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
    """One document that was read. A ``complete`` document lists all items, so an item that it lacks is gone.

    ``again_after_s`` is the time in seconds before the document wants to be read again (a feed's ttl).
    ``problem`` describes what was wrong with the document; ``entries`` holds what was read before it."""

    origin: str
    kind: ListingKind
    entries: tuple[ListingEntry, ...]
    complete: bool
    again_after_s: float | None = None
    requests: int = 0
    bytes: int = 0
    seconds: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ListingChanges:
    """The keys that are new in a listing, the keys that are gone, and those whose mark has changed."""

    births: tuple[str, ...]
    deaths: tuple[str, ...]
    notices: tuple[str, ...]


def compare_listing(
    before: Mapping[str, str], entries: Iterable[ListingEntry], *, complete: bool
) -> ListingChanges:
    """Compare the ``entries`` of a document with its previous entries, ``before`` (key → mark).

    A listing that is not complete (a feed, a document of which a part is missing) has no deaths. An entry
    without a mark can be new or gone, but is never a notice.

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
