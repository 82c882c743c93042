"""What following links or reading listings would add, found out in a store in memory (``--dry-run``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from afresh.engine.reporting.found_summary import LeftOutLinks, found_pages_statuses
from afresh.engine.reporting.item_selection import EVERYTHING, selected_items
from afresh.engine.settings.tables import Settings
from afresh.sources.http.follow.link_follower import is_no_item
from afresh.stores.store import Store


@dataclass(frozen=True, slots=True)
class Preview:
    """The keys of the items that would be ``new``, how many of the items found are ``known`` already, the
    links that would be left out, and the problems of documents that cannot be read, by their addresses."""

    new: tuple[str, ...]
    known: int
    left_out: tuple[LeftOutLinks, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)


def compare_preview(
    store: Store, tried: Store, settings: Settings, source: str, problems: Mapping[str, str]
) -> Preview:
    """Compare the store ``tried``, to which everything was added, with the project's ``store``."""
    found = [item for item in selected_items(tried, EVERYTHING) if not is_no_item(item)]
    failed = {item.key: item.problem for item in found if item.failures}
    keys = [item.key for item in found]
    known = store.items.ids(keys, source)
    left = found_pages_statuses(tried, settings)
    new = tuple(key for key in keys if key not in known)
    return Preview(new, len(known), left[0].left_out if left else (), {**failed, **problems})
