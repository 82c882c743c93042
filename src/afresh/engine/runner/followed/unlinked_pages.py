"""Finds the pages that cannot be reached by links from a start page any more.

This is judged only when every known page was read: before, the page that links to another may not be known.
Such a page stays as long as it answers, and is reported as ``unlinked``. With ``unlinked = "remove"`` it is
removed after ``unlinked_after``.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable, Mapping, Sequence

from afresh.engine.logs import log_event
from afresh.engine.reporting.found_summary import read_summary, save_summary
from afresh.engine.runner.run_context import RunContext
from afresh.engine.runner.writer import Writer
from afresh.engine.scheduler.restore import read_items
from afresh.engine.settings.tables import Settings
from afresh.sources.http.follow.settings import FollowSettings
from afresh.sources.http.settings import HttpSettings
from afresh.stores.store import Store
from afresh.values.items import Item, ItemQuery
from afresh.values.stored import PageLinks

_CHECK_EVERY_S = 60.0
_LONGEST_S = 3600.0


class UnlinkedPagesTask:
    """Looks for unlinked pages at the start of a run, once a minute while links are read, and every hour, if
    this worker is the planner."""

    def __init__(self, context: RunContext, writer: Writer) -> None:
        self._context, self._writer = context, writer
        self._checked_s = self._read_s = -math.inf

    async def run(self) -> None:
        while True:
            if self._context.member.is_planner and self._is_due():
                self._checked_s, self._read_s = self._context.clock.elapsed_s(), self._writer.added_s
                await self._check()
            await asyncio.sleep(_CHECK_EVERY_S)

    def _is_due(self) -> bool:
        late = self._context.clock.elapsed_s() >= self._checked_s + _LONGEST_S
        return late or self._writer.added_s > self._read_s

    async def _check(self) -> None:
        store, settings = self._context.store, self._context.settings.now
        for table in settings.sources:
            own = table.settings
            if isinstance(own, HttpSettings) and own.follow.start:
                now_s = self._context.clock.now_s()
                await store.run_beside(update_unlinked, store.sync, settings, own.name, own.follow, now_s)


def update_unlinked(
    store: Store, settings: Settings, source: str, follow: FollowSettings, now_s: float
) -> list[str]:
    """Mark the unlinked pages of a source, and remove them if the settings say so; return removed keys."""
    items = {item.id: item for item in read_items(store, ItemQuery(source=source))}
    if any(item.status == "active" and not item.polls for item in items.values()):
        return []  # a page that was not read yet may link to any other
    pages = [page for page in store.links.read() if page.item_id in items]
    unlinked = find_unlinked(items, pages, follow.start)
    new = [page.item_id for page in pages if page.item_id in unlinked and page.unlinked_s is None]
    back = [page.item_id for page in pages if page.item_id not in unlinked and page.unlinked_s is not None]
    store.links.mark_unlinked(new, now_s)
    store.links.mark_unlinked(back, None)
    removed: list[int] = []
    if follow.unlinked == "remove":
        before_s = now_s - follow.unlinked_after
        removed = [
            page.item_id
            for page in pages
            if page.item_id in unlinked and page.unlinked_s is not None and page.unlinked_s <= before_s
        ]
        if removed:
            store.items.remove(removed, now_s, announce=_has_hooks(settings))
            log_event(logging.INFO, "unlinked pages removed", source=source, pages=len(removed))
    summary = read_summary(store, source)
    if summary.unlinked != len(unlinked) - len(removed):
        summary.unlinked = len(unlinked) - len(removed)
        save_summary(store, source, summary)
    return [items[item_id].key for item_id in removed]


def find_unlinked(items: Mapping[int, Item], pages: Sequence[PageLinks], starts: Iterable[str]) -> set[int]:
    """Return the ids of the ``pages`` that were found by links, still answer, and cannot be reached by links
    from the pages ``starts`` or from items that the user added. Links on pages that are gone do not count."""
    ids = {item.key: item.id for item in items.values()}
    links = {page.item_id: page.links or () for page in pages if items[page.item_id].status != "gone"}
    found = {page.item_id for page in pages if page.depth > 0}
    waiting = [
        *(ids[start] for start in starts if start in ids),
        *(page for page in links if page not in found),
    ]
    reached = set(waiting)
    while waiting:
        for key in links.get(waiting.pop(), ()):
            target = ids.get(key)
            if target is not None and target not in reached:
                reached.add(target)
                waiting.append(target)
    return {item_id for item_id in found - reached if items[item_id].status == "active"}


def _has_hooks(settings: Settings) -> bool:
    return any(table.on_change for table in settings.sources) or settings.views.has_hooks()
