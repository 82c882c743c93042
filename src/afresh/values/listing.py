"""Listings: the items that a sitemap, a feed or a start page names, and what is new in them.

One document makes one ``Listing``. Compared with what the same document named before, it gives births
(new items), deaths (items that are gone) and notices (hints that an item changed).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

ListingKind: TypeAlias = Literal["sitemap", "feed", "page", "query", "catalogue"]


@dataclass(frozen=True, slots=True)
class ListingEntry:
    """One entry of a listing.

    ``mark`` is what the document says of the entry's version (a date, an id): a new mark is a notice.
    ``prior_rate_per_s`` is a guess of its change rate (a sitemap's changefreq), ``priority`` 0 … 1 its
    publisher's view of its importance; neither is to be trusted further than as a prior.
    """

    key: str
    mark: str = ""
    modified_s: float | None = None
    prior_rate_per_s: float | None = None
    priority: float | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """One document that was read. A ``complete`` document lists all items: what is missing from it is gone.
    ``again_after_s`` is how long the document asks not to be read again (a feed's ttl), ``problem`` what was
    wrong with it in words; the entries read before the problem are kept."""

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
    """What a listing changes: the keys that are new, those that are gone, and those whose mark has
    changed."""

    births: tuple[str, ...]
    deaths: tuple[str, ...]
    notices: tuple[str, ...]


def compare_listing(
    before: Mapping[str, str], entries: Iterable[ListingEntry], *, complete: bool
) -> ListingChanges:
    """Compare the marks known ``before`` (key → mark) with what a document lists now.

    A listing that is not complete (a feed, a document that broke off) shows no deaths. An entry without a
    mark can be new or gone, but gives no notice.

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
