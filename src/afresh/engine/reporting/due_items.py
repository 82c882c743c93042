"""The items due now whose sources may be polled: those outside their windows wait for the next."""

from __future__ import annotations

from collections.abc import Collection

from afresh.stores.store import Store
from afresh.values.items import Item

_MORE = 4


def due_items(store: Store, now_s: float, k: int, sources: Collection[str]) -> list[Item]:
    """The ``k`` items of these sources longest due, fewer where there are no more."""
    limit = k
    while True:
        ids = store.items.due(now_s, limit)
        found = [item for item in store.items.by_id(ids) if item.source in sources]
        if len(found) >= k or len(ids) < limit:
            return found[:k]
        limit *= _MORE
