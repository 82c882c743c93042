"""Adds to the weights by which items are ranked: what item views add, and what the links of pages gain.

While the copy of a page is stale on which new pages tend to appear, the new ones are not copied either: as
many as its readings have shown on average, each as bad as one stale copy. So a page with g expected new pages
per change is ranked as if its weight were 1 + g times as large. The freshness that is reported keeps the own
weight.
"""

from __future__ import annotations

from collections.abc import Mapping

from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.item_views import ItemViews
from afresh.stores.store import Store

_MOST_GAIN = 1000.0


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


def read_link_gains(store: Store) -> dict[int, float]:
    """Return by item id how many new pages a change of the page is expected to show, where it is above 0."""
    return {page.item_id: min(page.expected_gain, _MOST_GAIN) for page in store.links.gaining()}


def apply_link_gains(scheduler: Scheduler, gains: Mapping[int, float]) -> None:
    """Let ``scheduler`` rank pages by ``gains``, which are by item id."""
    if gains != scheduler.item_rows.link_gains:
        rows = scheduler.item_rows.set_link_gains(gains)
        scheduler.policy.ranking.update_weights(rows)
        scheduler.picker.invalidate()
