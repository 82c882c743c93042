"""Selects items of a store by the pattern of their keys, their source and their state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property
from typing import Literal, TypeAlias, get_args

from afresh.engine.scheduler.restore import read_items
from afresh.stores.store import Store
from afresh.values.errors import one_of
from afresh.values.items import Item, ItemQuery, Sort, Status

SelectedStatus: TypeAlias = Literal["active", "paused", "gone", "refused", "new", "failing", "unlinked"]
"""The status of an item; or ``new``: no poll was successful; ``failing``: the last poll failed; ``unlinked``:
it was found by a link, and no page links to it any more."""

SELECTED_STATUSES: tuple[SelectedStatus, ...] = get_args(SelectedStatus)
_STORED: dict[SelectedStatus, Status] = {
    "active": "active",
    "paused": "paused",
    "gone": "gone",
    "refused": "refused",
}
_SPECIAL = re.compile(r"\[[^\]]*\]|[*?\[\]]")


@dataclass(frozen=True)
class ItemSelection:
    """Which items are meant. ``match`` is a pattern for the whole key: ``*`` stands for any characters, also
    ``/``, ``?`` for one, ``[ab]`` for one of several. What is empty or None selects all items. Of those
    whose copies are exported, ``since`` selects those that changed since this cursor of the change feed.

    >>> selection = ItemSelection(match="https://a.test/docs/*.html")
    >>> selection.query.text, selection.is_everything
    ('https://a.test/docs/', False)
    """

    match: str = ""
    source: str | None = None
    status: SelectedStatus | None = None
    since: str | None = None

    def __post_init__(self) -> None:
        if self.status is not None:
            one_of("status", self.status, SELECTED_STATUSES)

    @property
    def is_everything(self) -> bool:
        return not self.match and self.source is None and self.status is None

    @property
    def query(self) -> ItemQuery:
        """The query of a store that finds all selected items, and perhaps others."""
        # The longest text that the pattern has between its wildcards is what the store can search for.
        text = max(_SPECIAL.split(self.match), key=len)
        stored = None if self.status is None else _STORED.get(self.status)
        return ItemQuery(text=text, status=stored, source=self.source)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(translate(self.match or "*"))

    def accepts(self, item: Item) -> bool:
        """Return whether an item that matches ``query`` is selected."""
        if self.status == "new" and item.polled_s is not None:
            return False
        if self.status == "failing" and not item.failures:
            return False
        return self._pattern.match(item.key) is not None


EVERYTHING = ItemSelection()


def selected_items(
    store: Store, selection: ItemSelection, *, sort: Sort = "id", descending: bool = False
) -> Iterator[Item]:
    """Yield the selected items, sorted. Items that change meanwhile may be yielded as they were."""
    query = selection.query
    query = ItemQuery(query.text, query.status, query.source, None, sort, descending)
    found = (item for item in read_items(store, query) if selection.accepts(item))
    if selection.status != "unlinked":
        return found
    unlinked = {page.item_id for page in store.links.unlinked()}
    return (item for item in found if item.id in unlinked)


def selected_keys(store: Store, selection: ItemSelection) -> dict[str, list[str]]:
    """Return the keys of the selected items by source."""
    found: dict[str, list[str]] = {}
    for item in selected_items(store, selection):
        found.setdefault(item.source, []).append(item.key)
    return found
