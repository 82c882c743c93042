"""Deletes copies from the object store that no version uses any more, once an hour while the engine runs."""

from __future__ import annotations

import asyncio
import logging

from afresh.engine.logs import log_event
from afresh.engine.runner.run_context import RunContext

_EVERY_S = 3600.0


async def delete_unnamed_copies(context: RunContext) -> None:
    """Make a pass every hour until cancelled, if this worker is the planner and copies are objects."""
    while True:
        if context.settings.now.store.copies and context.member.is_planner:
            store = context.store
            work = store.sync.upkeep.delete_unnamed_copies
            deleted = await store.run_beside(work, context.member.time.now_s())
            if deleted:
                log_event(logging.INFO, "old copies were deleted from the object store", copies=deleted)
        await asyncio.sleep(_EVERY_S)
