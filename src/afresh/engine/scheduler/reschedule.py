"""When items are due where no poll says so: after old poll logs, and after other settings of an item."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.restore import restore_scheduler
from afresh.engine.settings.tables import Settings
from afresh.stores.store import Store
from afresh.values.arrays import Float64s
from afresh.values.items import ItemChange

_BATCH = 1000


def reschedule(store: Store, settings: Settings, ids: list[int], now_s: float) -> None:
    """Set the due times of these items by what is believed of them and the shadow price."""
    for item_rows, planned_s in _plan(store, settings, ids, now_s):
        store.plan.save(item_rows.ids, planned_s)


def reschedule_changed(
    store: Store, settings: Settings, ids: list[int], change: ItemChange, now_s: float
) -> None:
    """Set the due times of changed items: planned, or as asked for; never within ``min_interval_s``. An item
    that was due and still is keeps its time: a running engine takes an item that becomes due by a change as
    asked for."""
    limits = (change.weight, change.cost, change.min_interval_s, change.max_interval_s)
    if change.due_s is None and limits == (None, None, None, None):
        return
    for item_rows, planned_s in _plan(store, settings, ids, now_s):
        due_s = item_rows.due_s
        if change.due_s is None:
            due_s = np.where((due_s <= now_s) & (planned_s <= now_s), due_s, planned_s)
        due_s = np.fmax(due_s, earliest_s(item_rows.polled_s, item_rows.min_interval_s))
        store.plan.save(item_rows.ids, due_s)


def earliest_s(polled_s: Float64s | float, min_interval_s: Float64s | float) -> Float64s:
    """Return when items may be polled again at the earliest; −∞ where nothing limits it.

    >>> earliest_s(np.array([100.0, 100.0, np.nan]), np.array([0.0, 60.0, 60.0])).tolist()
    [-inf, 160.0, -inf]
    """
    held = (np.asarray(min_interval_s) > 0) & ~np.isnan(polled_s)
    return np.where(held, np.asarray(polled_s) + min_interval_s, -math.inf)


def _plan(
    store: Store, settings: Settings, ids: list[int], now_s: float
) -> Iterator[tuple[ItemRows, Float64s]]:
    """Yield items in batches with their next polls; the due time of now without a poll to count from."""
    for begin in range(0, len(ids), _BATCH):
        columns = store.plan.columns_of(ids[begin : begin + _BATCH])
        scheduler = restore_scheduler(store, settings, [columns], now_s)
        item_rows = scheduler.item_rows
        due_s = scheduler.policy.next_polls_s(np.arange(item_rows.size), item_rows.polled_s)
        yield item_rows, np.where(np.isnan(due_s), item_rows.due_s, due_s)
