"""Very many items: what the store says is due is polled first, while the others are read beside it.

due items ──▶ Memory, RowPolicy ──▶ polls …     … over ──▶ all items, with what was polled meanwhile ──▶ polls
all items ──▶ Memory, RowPolicy (a thread of its own) ───▲
"""

from __future__ import annotations

import asyncio
import logging
from itertools import islice
from threading import Event

import numpy as np

from afresh.engine.logs import log_event
from afresh.engine.runner.parts import RunParts
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.restore import start_policy
from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.engine.settings.tables import Settings
from afresh.stores.store import Store
from afresh.values.clock import Clock

MANY = 1_000_000
"""Up to so many items all are read before the first poll; it takes some seconds."""

_AT_ONCE, _TOGETHER = 65_536, 16  # items read in one step; steps whose arrays are joined together
_LASTS_S, _FEWEST, _MOST = 300.0, 10_000, 300_000  # what is due for so long must do


def first_due_items(store: Store, settings: Settings, now_s: float) -> list[int] | None:
    """The items to begin with where there are very many; None where all are to be read first."""
    if sum(count.items for count in store.items.counts()) <= MANY:
        return None
    wanted = min(max(settings.budget.requests * _LASTS_S, _FEWEST), _MOST)
    return store.items.due(now_s, int(wanted))


async def load_all_items(store: Store, settings: Settings, clock: Clock) -> RowPolicy | None:
    """All items as the store remembers them, read in a thread of its own."""
    stopped = Event()

    def work() -> RowPolicy | None:
        parts, item_rows = store.plan.columns(batch=_AT_ONCE, aside=True), ItemRows()
        while some := list(islice(parts, _TOGETHER)):
            if stopped.is_set():
                return None
            item_rows.load(some)
        return start_policy(store, settings, item_rows, clock.now_s())

    try:
        return await asyncio.to_thread(work)
    finally:
        stopped.set()


async def switch_to_all_items(parts: RunParts, full: RowPolicy) -> None:
    """Go on with all items, while nothing is under way; what was polled meanwhile is asked of the store."""
    ids = parts.item_rows.ids
    known = ids[np.isin(ids, full.item_rows.ids)].tolist()
    now = await parts.writer.call_with_retry(lambda: parts.store.plan.columns_of(known))
    parts.policy.become(full)
    parts.policy.catch_up_all(now)
    parts.watch.items_replaced()
    parts.picker.invalidate()
    log_event(logging.INFO, "all items are read", items=parts.item_rows.size)
