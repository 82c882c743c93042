"""Sets due times without a poll, after the settings of items changed or polls of them were requested."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from afresh.engine.scheduler.item_rows import REQUESTED_S, ItemRows
from afresh.engine.scheduler.restore import restore_scheduler
from afresh.engine.settings.tables import Settings
from afresh.stores.store import Store
from afresh.values.arrays import Float64s
from afresh.values.items import ItemChange

_BATCH = 1000


def reschedule_changed(
    store: Store, settings: Settings, ids: list[int], change: ItemChange, now_s: float
) -> None:
    """Set the due times of items after ``change``: to the time that it requests, or else to the planned next
    poll, but never within ``min_interval_s`` after the last poll. A request to poll items now is exempt from
    that, and is stored as a due time before the last poll. An item that was due and still is due keeps its
    due time, because a running engine takes a new due time in the past as a request to poll the item."""
    limits = (change.weight, change.cost, change.min_interval_s, change.max_interval_s)
    if change.due_s is None and limits == (None, None, None, None):
        return
    for item_rows, planned_s in _plan(store, settings, ids, now_s):
        due_s = item_rows.due_s
        if change.due_s is None:
            due_s = np.where((due_s <= now_s) & (planned_s <= now_s), due_s, planned_s)
        elif change.due_s <= now_s:
            due_s = np.fmin(due_s, item_rows.polled_s - REQUESTED_S)
        if change.due_s is None or change.due_s > now_s:
            due_s = np.fmax(due_s, earliest_s(item_rows.polled_s, item_rows.min_interval_s))
        store.plan.save(item_rows.ids, due_s)


def earliest_s(polled_s: Float64s | float, min_interval_s: Float64s | float) -> Float64s:
    """Return the earliest Unix times at which items may be polled again; −∞ if nothing limits them.

    >>> earliest_s(np.array([100.0, 100.0, np.nan]), np.array([0.0, 60.0, 60.0])).tolist()
    [-inf, 160.0, -inf]
    """
    held = (np.asarray(min_interval_s) > 0) & ~np.isnan(polled_s)
    return np.where(held, np.asarray(polled_s) + min_interval_s, -math.inf)


def _plan(
    store: Store, settings: Settings, ids: list[int], now_s: float
) -> Iterator[tuple[ItemRows, Float64s]]:
    """Yield tuples (item rows, times of their next polls) for batches of the items ``ids``. An item that was
    never polled keeps its due time."""
    for begin in range(0, len(ids), _BATCH):
        columns = store.plan.columns_of(ids[begin : begin + _BATCH])
        scheduler = restore_scheduler(store, settings, [columns], now_s)
        item_rows = scheduler.item_rows
        due_s = scheduler.policy.next_polls_s(np.arange(item_rows.size), item_rows.polled_s)
        yield item_rows, np.where(np.isnan(due_s), item_rows.due_s, due_s)
