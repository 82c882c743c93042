"""Due times of items anew, where no poll brings one: after old logs, and after other settings of an item."""

from __future__ import annotations

import math

import numpy as np

from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.restore import load_items, restore_policy
from afresh.engine.settings.tables import Settings
from afresh.stores.store import Store
from afresh.values.arrays import Float64s
from afresh.values.items import ItemChange

_BATCH = 1000


def reschedule(store: Store, settings: Settings, ids: list[int], now_s: float) -> None:
    """Due times of these items by what is believed of them and the price of a poll."""
    for begin in range(0, len(ids), _BATCH):
        item_rows = load_items([store.plan.columns_of(ids[begin : begin + _BATCH])])
        store.plan.save(item_rows.ids, _planned_s(store, settings, item_rows, now_s))


def reschedule_changed(
    store: Store, settings: Settings, ids: list[int], change: ItemChange, now_s: float
) -> None:
    """Due times of items that were changed: planned anew, or as asked for, never within ``min_interval_s``.

    Planning anew leaves alone what was due and still is: a running engine takes an item that becomes due by
    a change as asked for.
    """
    limits = (change.weight, change.cost, change.min_interval_s, change.max_interval_s)
    if change.due_s is None and limits == (None, None, None, None):
        return
    for begin in range(0, len(ids), _BATCH):
        item_rows = load_items([store.plan.columns_of(ids[begin : begin + _BATCH])])
        due_s = item_rows.due_s
        if change.due_s is None:
            planned_s = _planned_s(store, settings, item_rows, now_s)
            due_s = np.where((due_s <= now_s) & (planned_s <= now_s), due_s, planned_s)
        due_s = np.fmax(due_s, earliest_s(item_rows.polled_s, item_rows.min_interval_s))
        store.plan.save(item_rows.ids, due_s)


def earliest_s(polled_s: Float64s | float, min_interval_s: Float64s | float) -> Float64s:
    """When items may be polled again at the earliest: −∞ where nothing says so.

    >>> earliest_s(np.array([100.0, 100.0, np.nan]), np.array([0.0, 60.0, 60.0])).tolist()
    [-inf, 160.0, -inf]
    """
    held = (np.asarray(min_interval_s) > 0) & ~np.isnan(polled_s)
    return np.where(held, np.asarray(polled_s) + min_interval_s, -math.inf)


def _planned_s(store: Store, settings: Settings, item_rows: ItemRows, now_s: float) -> Float64s:
    """By belief and price; as it was where there is no poll to count from."""
    policy = restore_policy(store, settings, item_rows, now_s)
    due_s = policy.next_polls_s(np.arange(item_rows.size), item_rows.polled_s)
    return np.where(np.isnan(due_s), item_rows.due_s, due_s)
