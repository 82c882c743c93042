"""Items that failed under other settings of their source are polled again at once."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from afresh.engine.logs import log_event
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import ACCESS_FINGERPRINT
from afresh.sources.settings import SourceSettings
from afresh.stores.store import Store
from afresh.values.items import ItemChange, ItemQuery

_PAGE = 1000


def retry_after_settings_change(store: Store, settings: SourceSettings, now_s: float) -> int:
    """If the access settings of a source changed, have its failing items polled; return how many.

    It may be repeated: the fingerprint of the settings is saved last.
    """
    name, reach = ACCESS_FINGERPRINT + settings.name, settings.access_fingerprint.encode()
    if store.state.get(name) == reach:
        return 0
    keys = list(_failing_keys(store, settings.name))
    if keys:
        store.items.change(keys, ItemChange(status="active", due_s=now_s))
        log_event(logging.INFO, "tried again under other settings", source=settings.name, items=len(keys))
    store.state.set({name: reach})
    return len(keys)


def retry_all_after_settings_change(store: Store, settings: Settings, now_s: float) -> None:
    """Do the same for every source of the settings."""
    for table in settings.sources:
        retry_after_settings_change(store, table.settings, now_s)


def _failing_keys(store: Store, source: str) -> Iterator[str]:
    """Yield the items whose last poll failed or was refused, except those that are gone or paused."""
    cursor: str | None = None
    while True:
        page = store.items.page(ItemQuery(sort="failures", descending=True), _PAGE, cursor)
        for item in page.items:
            if not item.failures:
                return
            if item.source == source and item.status in ("active", "refused"):
                yield item.key
        cursor = page.cursor
        if cursor is None:
            return
