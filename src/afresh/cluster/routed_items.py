"""The items of a shard's store, which take only items of the shard's own hosts.

A listing may name items of other hosts. They are saved in the outbox of the shard, and sent from there to the
project's store, which passes them to the shard of their host. So every host belongs to one shard, which keeps
its delays.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from afresh.stores.store import State, Store, StoredItems
from afresh.values.items import Item, ItemChange, ItemCount, ItemPage, ItemQuery, ItemRef, NewItem
from afresh.values.stored import Edits

OUTBOX = "cluster.outbox"
_ENDLESS = "max_interval_s"  # JSON has no infinity


class RoutedItems(StoredItems):
    """The items of ``store``. Of new items it adds those whose group belongs to this shard (``is_own``)."""

    def __init__(self, store: Store, is_own: Callable[[str], bool]) -> None:
        self._items, self._state, self._is_own = store.items, store.state, is_own

    def add(self, items: Iterable[NewItem], now_s: float) -> int:
        own: list[NewItem] = []
        others: list[NewItem] = []
        for item in items:
            (own if self._is_own(item.group) else others).append(item)
        if others:  # first, because the caller adds all of them again if this fails
            put_in_outbox(self._state, others)
        return self._items.add(own, now_s)

    def change(self, ids: Sequence[int], change: ItemChange) -> None:
        self._items.change(ids, change)

    def remove(self, ids: Sequence[int], now_s: float, *, announce: bool = False) -> None:
        self._items.remove(ids, now_s, announce=announce)

    def find(self, keys: Sequence[str], source: str | None = None) -> list[ItemRef]:
        return self._items.find(keys, source)

    def get(self, key: str, source: str | None = None) -> Item | None:
        return self._items.get(key, source)

    def by_id(self, ids: Sequence[int]) -> list[Item]:
        return self._items.by_id(ids)

    def ids(self, keys: Sequence[str], source: str | None = None) -> dict[str, int]:
        return self._items.ids(keys, source)

    def page(self, query: ItemQuery, limit: int, cursor: str | None = None) -> ItemPage:
        return self._items.page(query, limit, cursor)

    def due(self, now_s: float, limit: int) -> list[int]:
        return self._items.due(now_s, limit)

    def counts(self) -> list[ItemCount]:
        return self._items.counts()

    def polled_keys(self) -> dict[int, str]:
        return self._items.polled_keys()

    def validators(self, item_id: int) -> dict[str, str]:
        return self._items.validators(item_id)

    def edits(self, after: int) -> Edits:
        return self._items.edits(after)


def put_in_outbox(state: State, items: Sequence[NewItem]) -> None:
    """Add items to the outbox; the same item again changes nothing."""
    while True:
        before = state.get(OUTBOX)
        known = {(item.source, item.key): item for item in [*unpack_items(before), *items]}
        if state.replace(OUTBOX, before, pack_items(list(known.values()))):
            return


def take_from_outbox(state: State, sent: bytes) -> None:
    """Empty the outbox if it still contains what was ``sent``; otherwise all of it is sent again."""
    state.replace(OUTBOX, sent, pack_items([]))


def pack_items(items: Sequence[NewItem]) -> bytes:
    """Return items as JSON.

    >>> unpack_items(pack_items([NewItem("https://a.test/", "web", "a.test")]))[0].max_interval_s
    inf
    """
    rows = [asdict(item) for item in items]
    for row in rows:
        row[_ENDLESS] = None if math.isinf(row[_ENDLESS]) else row[_ENDLESS]
    return json.dumps(rows).encode()


def unpack_items(packed: bytes | None) -> list[NewItem]:
    rows = json.loads(packed) if packed else []
    for row in rows:
        row[_ENDLESS] = math.inf if row[_ENDLESS] is None else row[_ENDLESS]
    return [NewItem(**row) for row in rows]
