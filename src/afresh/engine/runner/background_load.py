"""The start with very many items: due items are polled first, while all items are loaded in the background.

due items ──▶ Scheduler ──▶ polls …    … idle ──▶ all items, with the polls made meanwhile ──▶ polls
all items ──▶ Scheduler (a thread of its own) ──▲
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from threading import Event

import numpy as np

from afresh.engine.logs import log_event
from afresh.engine.runner.run_context import RunContext
from afresh.engine.scheduler.restore import start_scheduler
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.tables import Settings
from afresh.stores.store import Store
from afresh.values.stored import PolicyColumns

MANY = 1_000_000
"""Up to this number of items, all are loaded before the first poll; this takes some seconds."""

_BATCH = 65_536  # items that are read in one step
_LASTS_S, _FEWEST, _MOST = 300.0, 10_000, 300_000  # the first items are enough for 300 s of polls


def first_due_items(store: Store, settings: Settings, now_s: float) -> list[int] | None:
    """Return the ids of the items to load first; None if there are so few items that all are loaded first."""
    if sum(count.items for count in store.items.counts()) <= MANY:
        return None
    wanted = min(max(settings.budget.requests * _LASTS_S, _FEWEST), _MOST)
    return store.items.due(now_s, int(wanted))


class _StoppedError(Exception):
    """Loading was cancelled."""


async def load_all_items(context: RunContext) -> Scheduler | None:
    """Return a scheduler of all items of the store, loaded in a separate thread; None if it was cancelled."""
    stopped, store = Event(), context.store.sync

    def columns() -> Iterator[PolicyColumns]:
        for part in store.plan.columns(batch=_BATCH, whole_batches=True):
            if stopped.is_set():
                raise _StoppedError
            yield part

    def work() -> Scheduler | None:
        try:
            return start_scheduler(store, context.settings.now, columns(), context.clock)
        except _StoppedError:
            return None

    try:
        return await asyncio.to_thread(work)
    finally:
        stopped.set()


async def switch_to_all_items(context: RunContext, full: Scheduler) -> None:
    """Replace the items of the run's scheduler by those of ``full``. No poll may be under way."""
    ids = context.scheduler.item_rows.ids
    known = ids[np.isin(ids, full.item_rows.ids)].tolist()
    context.scheduler.replace_items(full, await context.store.run(context.store.sync.plan.columns_of, known))
    log_event(logging.INFO, "all items are read", items=context.scheduler.item_rows.size)
