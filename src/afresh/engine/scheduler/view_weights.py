"""Adds the weights of item views to the weights of their items, by which items are ranked."""

from __future__ import annotations

from collections.abc import Mapping

from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.item_views import ItemViews
from afresh.stores.store import Store


def read_view_weights(store: Store, views: ItemViews) -> dict[int, float]:
    """Return by item id what the views add to the weights of the items that are in the store."""
    added = views.added_weights()
    return {item.id: added[item.key] for item in store.items.find(list(added))} if added else {}


def apply_view_weights(scheduler: Scheduler, weights: Mapping[int, float]) -> None:
    """Let ``scheduler`` rank its items by their own weights and ``weights``, which are by item id."""
    if weights != scheduler.item_rows.view_weights:
        rows = scheduler.item_rows.set_view_weights(weights)
        scheduler.policy.ranking.update_weights(rows)
        scheduler.picker.invalidate()
