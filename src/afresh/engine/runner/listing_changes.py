"""Compares a sitemap, feed or start page with its last version: finds new items, missing items and notices.

The last content of each document is saved in the store, so that after a restart only differences are found.
An item that a complete document no longer lists is polled at once: only the poll shows whether it is gone.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from afresh.engine.scheduler.row_policy import CURSOR
from afresh.engine.scheduler.store_room import full_words, is_full_for_new_items
from afresh.engine.state_names import ADDED_LISTINGS, LISTED_MARKS
from afresh.sources.http.settings import HttpSettings
from afresh.sources.settings import SourceSettings
from afresh.stores.store import Store
from afresh.values.errors import AfreshError, UsageError
from afresh.values.formatting import format_count
from afresh.values.items import ItemChange, NewItem
from afresh.values.listing import Listing, ListingEntry, compare_listing
from afresh.values.storable_text import replace_unstorable

Given = TypeVar("Given")
Found = TypeVar("Found")
ListingField: TypeAlias = Literal["sitemaps", "feeds", "discover", "follow"]
_SKEW_S = 300.0  # the clock of a site may differ by this much
_LONGEST_WORDS = 200
_AT_ONCE, _PAUSE_S = 2_000, 0.005
LISTING_FIELDS: tuple[ListingField, ...] = ("sitemaps", "feeds", "discover", "follow")
_DOCUMENTS = LISTING_FIELDS[:3]


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
    none: dict[str, object] = dict.fromkeys(_DOCUMENTS, ())
    if isinstance(settings, HttpSettings):
        none["follow"] = settings.follow.without_starts()
    return with_more_listings(settings.model_copy(update=none), documents)


def with_more_listings(settings: SourceSettings, more: Mapping[str, Iterable[str]]) -> SourceSettings:
    update: dict[str, object] = {
        field: tuple(dict.fromkeys([*getattr(settings, field), *more.get(field, ())]))
        for field in _DOCUMENTS
        if hasattr(settings, field)
    }
    starts = tuple(more.get("follow", ()))
    if starts and isinstance(settings, HttpSettings):
        update["follow"] = settings.follow.with_starts(starts)
    return settings.model_copy(update=update)


@dataclass(frozen=True, slots=True)
class AppliedListing:
    """What one document changed: the numbers of new items (``born``), missing items (``missing``) and
    notices. ``problem`` says which entries were refused or left out, and why; empty if there are none."""

    born: int
    missing: int
    notices: int
    problem: str = ""


def apply_listing(
    store: Store,
    source: SourceSettings,
    group: Callable[[str], str],
    listing: Listing,
    now_s: float,
    max_bytes: float = math.inf,
) -> AppliedListing:
    """Compare one document with its last version, and apply the differences to the store. ``group`` computes
    the group of a key. An entry that cannot be an item is refused alone. No items are added to a store that
    has reached ``max_bytes``. The new version is saved last, so that all is repeated, without harm, if the
    process ends in between."""
    name = f"{LISTED_MARKS}{source.name}:{replace_unstorable(listing.origin)}"
    packed = store.state.get(name)
    before: dict[str, str] = json.loads(packed) if packed else {}
    found = compare_listing(before, listing.entries, complete=listing.complete)
    entries = {entry.key: entry for entry in listing.entries}
    new, refused = _new_items(found.births, entries, source.name, group)
    new, problem = _within_limits(store, source, new, max_bytes)
    accepted = {item.key for item in new}
    for key in found.births:
        if key not in accepted:
            del entries[key]
    born = _add_in_parts(store, new, now_s)
    named = _read_in_parts(store.items.by_id, list(_ids(store, list(accepted), source.name).values()))
    back = [item.id for item in named if item.status == "gone"]
    if back:
        store.items.change(back, ItemChange(status="active", due_s=now_s))
    if found.deaths:
        missing = _ids(store, found.deaths, source.name)
        store.items.change(list(missing.values()), ItemChange(due_s=now_s))
    notices = _unseen(store, _ids(store, found.notices, source.name), entries, now_s)
    if notices:
        origin = CURSOR if listing.kind == "query" else listing.kind
        store.notices.add(list(notices), list(notices.values()), origin)
    marks = {key: mark for key, mark in before.items() if not listing.complete or key in entries}
    marks |= {key: entry.mark or before.get(key, "") for key, entry in entries.items()}
    store.state.set({name: json.dumps(marks, ensure_ascii=False).encode("utf-8", "replace")})
    words = "; ".join(text for text in (refused, problem) if text)
    return AppliedListing(born, len(found.deaths), len(notices), words)


def _add_in_parts(store: Store, new: Sequence[NewItem], now_s: float) -> int:
    """Add items in several transactions, so that the outcomes of polls are committed between them."""
    born = 0
    for begin in range(0, len(new), _AT_ONCE):
        born += store.items.add(new[begin : begin + _AT_ONCE], now_s)
        if begin + _AT_ONCE < len(new):
            threading.Event().wait(_PAUSE_S)  # or this thread would take the lock again before all others
    return born


def _ids(store: Store, keys: Sequence[str], source: str) -> dict[str, int]:
    """Return the ids of those of ``keys`` that the store has, by key."""
    return dict(_read_in_parts(lambda part: store.items.ids(part, source).items(), keys))


def _read_in_parts(
    read: Callable[[Sequence[Given]], Iterable[Found]], given: Sequence[Given]
) -> Iterator[Found]:
    """Yield what ``read`` returns for the parts of ``given``. While the store answers one call, the calls
    that polls make must wait."""
    for begin in range(0, len(given), _AT_ONCE):
        if begin:
            threading.Event().wait(_PAUSE_S)
        yield from read(given[begin : begin + _AT_ONCE])


def _unseen(
    store: Store, ids: Mapping[str, int], entries: Mapping[str, ListingEntry], now_s: float
) -> dict[int, float]:
    """Return those of ``ids`` (by key) whose date of change in the document is after their last poll, or
    missing; and the time from which on a poll has seen the change. A sitemap is often written hours after the
    changes it lists, which polls may have found meanwhile, or are about to find."""
    found = {}
    for item in _read_in_parts(store.items.by_id, list(ids.values())):
        changed_by_s = entries[item.key].changed_by_s
        seen_s = now_s if changed_by_s is None else min(changed_by_s + _SKEW_S, now_s)
        if changed_by_s is None or item.polled_s is None or item.polled_s <= seen_s:
            found[item.id] = seen_s
    return found


def _new_items(
    keys: Iterable[str], entries: Mapping[str, ListingEntry], source: str, group: Callable[[str], str]
) -> tuple[list[NewItem], str]:
    """Return the new items, and words about the entries that cannot be items (empty if there are none)."""
    new: list[NewItem] = []
    refused: list[str] = []
    for key in keys:
        rate = entries[key].prior_rate_per_s
        known = rate if rate is not None and math.isfinite(rate) and rate > 0 else None
        try:
            stated = entries[key].weight
            weight = 1.0 if stated is None else stated
            new.append(NewItem(key, source, group(key), weight, prior_rate_per_s=known, listed=True))
        except AfreshError as error:
            refused.append(str(error))
    if not refused:
        return new, ""
    return new, f"{format_count(len(refused), 'entry')} refused, the first because {_shorten(refused[0])}"


def _within_limits(
    store: Store, source: SourceSettings, new: list[NewItem], max_bytes: float
) -> tuple[list[NewItem], str]:
    """Return the new items that ``max_items`` of the source and the size of the store still allow, and words
    about the others. Items that the store has already do not count as new."""
    if not new:
        return new, ""
    if is_full_for_new_items(store, max_bytes):
        room, reason = 0, full_words(int(max_bytes))
    else:
        held = sum(count.items for count in store.items.counts() if count.source == source.name)
        room = max(source.max_items - held, 0)
        reason = f"the source has its max_items = {source.max_items:,} items"
    if len(new) <= room:
        return new, ""
    known = _ids(store, [item.key for item in new], source.name)
    unknown = [item for item in new if item.key not in known]
    if len(unknown) <= room:
        return new, ""
    kept = [item for item in new if item.key in known] + unknown[:room]
    left_out = format_count(len(unknown) - room, "entry")
    return kept, f"{reason}: {left_out} not added"


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_WORDS else f"{text[: _LONGEST_WORDS - 1]}…"
