"""Item views: how probable it is that each is fresh, how often it changes, and by which of its items.

The items of a view change independently (Zhang, Tang, Yang & Li 2007, §4). So the rate of the view is the sum
of their rates, and the probability that it is fresh is the product of the probabilities that each copy is.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from afresh.engine.settings.item_views import ItemView
from afresh.engine.settings.tables import Settings
from afresh.rates.views import sum_rates
from afresh.stores.store import Store
from afresh.values.items import Item
from afresh.values.units import format_duration

if TYPE_CHECKING:
    from afresh.engine.reporting.item_snapshot import ItemSnapshot


@dataclass(frozen=True, slots=True)
class ViewedItem:
    """One item of a view. ``rate_per_s`` is its rate, ``fresh`` the probability that its copy is fresh,
    ``polled_s`` the time of its last poll and ``changed_s`` of the last change that a poll found
    (NaN if there is none). An item that does not exist yet is not ``known``; its numbers are NaN or 0."""

    key: str
    known: bool
    rate_per_s: float
    fresh: float
    polled_s: float
    changed_s: float
    source: str = ""


@dataclass(frozen=True, slots=True)
class ItemViewStatus:
    """The status of one item view. Rates are per second, with their 90 % confidence interval; times are Unix
    seconds, NaN if unknown. ``fresh`` is the probability that none of its items changed since its last poll;
    0 if an item was never polled or does not exist. ``changed_s`` is when a change of one of its items was
    last found, ``polled_s`` the oldest of the last polls of its items. ``unknown`` counts its items that do
    not exist yet."""

    name: str
    weight: float
    items: int
    unknown: int
    rate_per_s: float
    low_per_s: float
    high_per_s: float
    fresh: float
    polled_s: float
    changed_s: float


@dataclass(frozen=True, slots=True)
class ViewWhy:
    """Everything that ``afresh why`` shows of an item view, as of ``time_s``. ``items`` begins with those
    that are stale with the highest probability; ``reasons`` are sentences."""

    view: ItemViewStatus
    time_s: float
    items: tuple[ViewedItem, ...]
    reasons: tuple[str, ...]


def item_view_statuses(store: Store, settings: Settings, now_s: float) -> tuple[ItemViewStatus, ...]:
    views = settings.views.tables
    if not views:
        return ()
    snapshot = _take_snapshot(store, settings, views, now_s)
    viewed = _viewed_items(snapshot)
    return tuple(_describe(view, snapshot, _items_of(view, viewed)) for view in views)


def explain_view(store: Store, settings: Settings, view: ItemView, now_s: float) -> ViewWhy:
    snapshot = _take_snapshot(store, settings, [view], now_s)
    items = _items_of(view, _viewed_items(snapshot))
    status = _describe(view, snapshot, items)
    ordered = tuple(sorted(items, key=lambda item: (item.known, item.fresh)))
    return ViewWhy(status, now_s, ordered, tuple(_reasons(view, status, ordered)))


def _take_snapshot(store: Store, settings: Settings, views: Sequence[ItemView], now_s: float) -> ItemSnapshot:
    keys = dict.fromkeys(key for view in views for key in view.items)
    items = store.items.by_id([item.id for item in store.items.find(list(keys))])
    from afresh.engine.reporting.item_snapshot import take_snapshot

    return take_snapshot(store, settings, items, now_s)


def _viewed_items(snapshot: ItemSnapshot) -> dict[str, list[ViewedItem]]:
    """Return by key what is known of the items of a snapshot; several sources may have an item of a key."""
    rows = snapshot.scheduler.item_rows
    found = [(item, rows.row(item.id)) for item in snapshot.items]
    known = [(item, row) for item, row in found if row is not None]
    wanted = np.array(sorted(row for _, row in known), dtype=np.int64)
    chances = snapshot.scheduler.forecast.fresh(snapshot.time_s, wanted).tolist()
    fresh = dict(zip(wanted.tolist(), chances, strict=True))
    viewed: dict[str, list[ViewedItem]] = {}
    for item, row in known:
        viewed.setdefault(item.key, []).append(_viewed(item, snapshot.rates[item.id].rate, fresh[row]))
    return viewed


def _viewed(item: Item, rate_per_s: float, fresh: float) -> ViewedItem:
    polled_s, changed_s = (
        math.nan if time_s is None else time_s for time_s in (item.polled_s, item.changed_s)
    )
    return ViewedItem(item.key, True, rate_per_s, fresh, polled_s, changed_s, item.source)


def _items_of(view: ItemView, viewed: dict[str, list[ViewedItem]]) -> list[ViewedItem]:
    missing = (False, math.nan, 0.0, math.nan, math.nan)
    return [item for key in view.items for item in viewed.get(key) or [ViewedItem(key, *missing)]]


def _describe(view: ItemView, snapshot: ItemSnapshot, items: Sequence[ViewedItem]) -> ItemViewStatus:
    ids = {(item.source, item.key): item.id for item in snapshot.items}
    known = [ids[item.source, item.key] for item in items if item.known]
    rates = np.array([snapshot.rates[item_id].ends for item_id in known]).reshape(-1, 3)
    columns = (rates[:, 0], rates[:, 1], rates[:, 2])
    numbers = sum_rates(*columns) if len(rates) else (math.nan,) * 3
    polled_s = min((item.polled_s for item in items), key=lambda time_s: (not math.isnan(time_s), time_s))
    changed_s = [item.changed_s for item in items if not math.isnan(item.changed_s)]
    return ItemViewStatus(
        view.name,
        view.weight,
        len(items),
        sum(not item.known for item in items),
        *numbers,
        fresh=math.prod(item.fresh for item in items),
        polled_s=polled_s,
        changed_s=max(changed_s, default=math.nan),
    )


def _reasons(view: ItemView, status: ItemViewStatus, items: Sequence[ViewedItem]) -> list[str]:
    """Return sentences about a view; ``items`` begins with the ones that are most probably stale."""
    found = []
    if status.unknown:
        key = shlex.quote(items[0].key)
        count = "one of its items does" if status.unknown == 1 else f"{status.unknown:,} of its items do"
        found.append(f"{count} not exist, so that it cannot be fresh: afresh add {key}")
    new = [item for item in items if item.known and math.isnan(item.polled_s)]
    if new:
        found.append(f"{new[0].key} was never polled: new items are polled first")
    elif not status.unknown and status.fresh < 1:
        found.append(f"most probably stale by {items[0].key}, which is fresh with {items[0].fresh:.3f}")
    if len(items) > status.unknown and status.rate_per_s > 0:
        fastest = max((item for item in items if item.known), key=lambda item: item.rate_per_s)
        every = format_duration(1.0 / fastest.rate_per_s)
        found.append(f"it changes with each of its items, most often with {fastest.key}, every {every}")
    if view.weight > 0:
        found.append(f"it adds {view.weight:g} to the weight of each of its items")
    else:
        found.append("its weight is 0: it does not change how often its items are polled")
    return found
