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

from afresh.engine.logs import say
from afresh.engine.mind.memory import Memory
from afresh.engine.mind.row_policy import RowPolicy
from afresh.engine.mind.snapshot import begun
from afresh.engine.run.parts import Parts
from afresh.engine.settings.tables import Settings
from afresh.stores.store import Store
from afresh.values.clock import Clock

MANY = 1_000_000
"""Up to so many items all are read before the first poll; it takes some seconds."""

_AT_ONCE, _TOGETHER = 65_536, 16  # items read in one step; steps whose arrays are joined together
_LASTS_S, _FEWEST, _MOST = 300.0, 10_000, 300_000  # what is due for so long must do


def first_due(store: Store, settings: Settings, now_s: float) -> list[int] | None:
    """The items to begin with where there are very many; None where all are to be read first."""
    if sum(count.items for count in store.items.counts()) <= MANY:
        return None
    wanted = min(max(settings.budget.requests * _LASTS_S, _FEWEST), _MOST)
    return store.items.due(now_s, int(wanted))


async def read_all(store: Store, settings: Settings, clock: Clock) -> RowPolicy | None:
    """All items as the store remembers them, read in a thread of its own."""
    stopped = Event()

    def work() -> RowPolicy | None:
        parts, memory = store.plan.columns(batch=_AT_ONCE, aside=True), Memory()
        while some := list(islice(parts, _TOGETHER)):
            if stopped.is_set():
                return None
            memory.load(some)
        return begun(store, settings, memory, clock.now_s())

    try:
        return await asyncio.to_thread(work)
    finally:
        stopped.set()


async def take_over(parts: Parts, full: RowPolicy) -> None:
    """Go on with all items, while nothing is under way; what was polled meanwhile is asked of the store."""
    ids = parts.memory.ids
    known = ids[np.isin(ids, full.memory.ids)].tolist()
    now = await parts.writer.surely(lambda: parts.store.plan.columns_of(known))
    parts.policy.become(full)
    parts.policy.catch_up_with(now)
    parts.watch.refilled()
    parts.picker.stale()
    say(logging.INFO, "all items are read", items=parts.memory.size)
