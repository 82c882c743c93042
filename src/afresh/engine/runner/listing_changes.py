"""Compares a sitemap, feed or start page with its last version: finds new items, missing items and notices.

The last content of each document is saved in the store, so that after a restart only differences are found.
An item that a complete document no longer lists is polled at once: only the poll shows whether it is gone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from afresh.engine.state_names import ADDED_LISTINGS, LISTED_MARKS
from afresh.sources.settings import SourceSettings
from afresh.stores.store import Store
from afresh.values.errors import UsageError
from afresh.values.items import ItemChange, NewItem
from afresh.values.listing import Listing, ListingEntry, compare_listing

ListingField: TypeAlias = Literal["sitemaps", "feeds", "discover"]
_SKEW_S = 300.0  # the clock of a site may differ by this much
LISTING_FIELDS: tuple[ListingField, ...] = ("sitemaps", "feeds", "discover")


def read_listings(store: Store, source: str) -> dict[str, list[str]]:
    """Return the URLs of documents that commands added, by the setting they extend (``sitemaps``, …)."""
    packed = store.state.get(ADDED_LISTINGS + source)
    return json.loads(packed) if packed else {}


def save_listings(store: Store, source: str, more: Mapping[str, Iterable[str]]) -> None:
    kept = read_listings(store, source)
    for field, urls in more.items():
        kept[field] = list(dict.fromkeys([*kept.get(field, []), *urls]))
    store.state.set({ADDED_LISTINGS + source: json.dumps(kept).encode()})


def with_only_listings(settings: SourceSettings, documents: Mapping[str, Iterable[str]]) -> SourceSettings:
    if not hasattr(settings, LISTING_FIELDS[0]):
        raise UsageError(f"source {settings.name!r} is of kind {settings.kind}: it has no sitemaps or feeds")
    return with_more_listings(settings.model_copy(update=dict.fromkeys(LISTING_FIELDS, ())), documents)


def with_more_listings(settings: SourceSettings, more: Mapping[str, Iterable[str]]) -> SourceSettings:
    update: dict[str, object] = {
        field: tuple(dict.fromkeys([*getattr(settings, field), *more.get(field, ())]))
        for field in LISTING_FIELDS
        if hasattr(settings, field)
    }
    return settings.model_copy(update=update)


def apply_listing(
    store: Store, source: str, group: Callable[[str], str], listing: Listing, now_s: float
) -> tuple[int, int, int]:
    """Compare one document with its last version, and apply the differences to the store. Return a tuple: the
    numbers of new items, missing items and notices. ``group`` computes the group of a key. The new version is
    saved last, so that all is repeated, without harm, if the process ends in between."""
    name = f"{LISTED_MARKS}{source}:{listing.origin}"
    packed = store.state.get(name)
    before: dict[str, str] = json.loads(packed) if packed else {}
    found = compare_listing(before, listing.entries, complete=listing.complete)
    entries = {entry.key: entry for entry in listing.entries}
    born = store.items.add(_new_items(found.births, entries, source, group), now_s)
    born_again = [store.items.get(key) for key in found.births]
    back = [item.key for item in born_again if item is not None and item.status == "gone"]
    if back:
        store.items.change(back, ItemChange(status="active", due_s=now_s))
    if found.deaths:
        store.items.change(found.deaths, ItemChange(due_s=now_s))
    notices = _unseen(store, found.notices, entries, now_s)
    if notices:
        origin = "cursor" if listing.kind == "query" else listing.kind
        store.notices.add(list(notices), list(notices.values()), origin)
    marks = {key: mark for key, mark in before.items() if not listing.complete or key in entries}
    marks |= {key: entry.mark or before.get(key, "") for key, entry in entries.items()}
    store.state.set({name: json.dumps(marks, ensure_ascii=False).encode()})
    return born, len(found.deaths), len(notices)


def _unseen(
    store: Store, keys: Sequence[str], entries: Mapping[str, ListingEntry], now_s: float
) -> dict[int, float]:
    """Return the ids of the items whose date of change in the document is after their last poll, or missing;
    and the time from which on a poll has seen the change. A sitemap is often written hours after the changes
    it lists, which polls may have found meanwhile, or are about to find."""
    found = {}
    for item in store.items.by_id(list(store.items.ids(keys).values())) if keys else ():
        changed_by_s = entries[item.key].changed_by_s
        seen_s = now_s if changed_by_s is None else min(changed_by_s + _SKEW_S, now_s)
        if changed_by_s is None or item.polled_s is None or item.polled_s <= seen_s:
            found[item.id] = seen_s
    return found


def _new_items(
    keys: Iterable[str], entries: Mapping[str, ListingEntry], source: str, group: Callable[[str], str]
) -> Iterable[NewItem]:
    for key in keys:
        rate = entries[key].prior_rate_per_s
        known = rate if rate is not None and math.isfinite(rate) and rate > 0 else None
        yield NewItem(key, source, group(key), prior_rate_per_s=known)
