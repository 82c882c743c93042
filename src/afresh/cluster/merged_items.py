"""One list of the items of all shards, in the sort order of the query; its cursor has one size for any number
of shards.

A cursor is the tuple (sort value, id, shard) of the last item of a page. The pages of the shards begin after
the same sort value and id, so that no shard needs a place of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from operator import itemgetter

from afresh.stores.cursors import SortValue, cursor_at, read_cursor, sort_value
from afresh.values.errors import InputError
from afresh.values.items import Item, ItemPage, ItemQuery

Place = tuple[SortValue, int, int]
"""The tuple (sort value, id, shard) of an item."""


def cursor_of_shard(cursor: str | None, shard: int, query: ItemQuery) -> str | None:
    """Return the cursor from which the page of a shard begins.

    >>> query = ItemQuery(sort="weight")
    >>> [cursor_of_shard("[2.5, 7, 1]", shard, query) for shard in (0, 1, 2)]
    ['[2.5, 7]', '[2.5, 7]', '[2.5, 6]']
    """
    if cursor is None:
        return None
    value, item_id, last_shard = _read_place(cursor, query)
    is_later = shard < last_shard if query.descending else shard > last_shard
    if is_later:  # in this shard an item with this value and id is yet to come
        item_id += 1 if query.descending else -1
    return cursor_at(value, item_id)


def merge_items(pages: Mapping[int, ItemPage], query: ItemQuery, limit: int) -> list[tuple[int, Item]]:
    """Return the first ``limit`` items of the pages of all shards, as tuples (shard, item). The cursor after
    them is ``merged_cursor``."""
    edge = _edge(pages, query)
    found = [
        (place, shard, item)
        for shard, page in pages.items()
        for item in page.items
        if _is_within(place := (sort_value(item, query.sort), item.id, shard), edge, query)
    ]
    found.sort(key=itemgetter(0), reverse=query.descending)
    return [(shard, item) for _, shard, item in found[:limit]]


def merged_cursor(
    pages: Mapping[int, ItemPage], query: ItemQuery, shown: list[tuple[int, Item]], limit: int
) -> str | None:
    """Return the cursor after the items ``shown`` of these pages; None if there are no more."""
    total = sum(len(page.items) for page in pages.values())
    if len(shown) == total and all(page.cursor is None for page in pages.values()):
        return None
    edge = _edge(pages, query)
    if len(shown) < limit and edge is not None:
        return json.dumps(edge)
    shard, item = shown[-1]
    return json.dumps((sort_value(item, query.sort), item.id, shard))


def _edge(pages: Mapping[int, ItemPage], query: ItemQuery) -> Place | None:
    """Return the place up to which the items of all shards are known; None if all of them are."""
    ends = [
        (*read_cursor(page.cursor, query), shard) for shard, page in pages.items() if page.cursor is not None
    ]
    if not ends:
        return None
    return max(ends) if query.descending else min(ends)


def _is_within(place: Place, edge: Place | None, query: ItemQuery) -> bool:
    return edge is None or (place >= edge if query.descending else place <= edge)


def _read_place(cursor: str, query: ItemQuery) -> Place:
    try:
        *place, shard = json.loads(cursor)
    except (TypeError, ValueError, RecursionError):
        place, shard = [], None
    value, item_id = read_cursor(json.dumps(place), query)
    if not isinstance(shard, int):
        raise InputError(
            f"{cursor[:100]!r} is no cursor of this list: give the one that came with the last page"
        )
    return value, item_id, shard
