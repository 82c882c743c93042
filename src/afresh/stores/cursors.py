"""Writes and reads cursors. A cursor is a text that tells after which item the next page begins."""

from __future__ import annotations

import json
import math

from afresh.values.errors import InputError
from afresh.values.items import Item, ItemQuery, Sort

SortValue = str | float
_TEXT_SORTS: tuple[Sort, ...] = ("key",)
_TIMES: dict[Sort, str] = {"due": "due_s", "changed": "changed_s"}  # other sorts have the names of fields
_WHOLE, _SHOWN = 2**63, 100


def sort_value(item: Item, sort: Sort) -> SortValue:
    """Return the value by which an item is sorted. It is −∞ for the time of a change that never happened."""
    value: SortValue | None = getattr(item, _TIMES.get(sort, sort))
    return -math.inf if value is None else value


def write_cursor(item: Item, query: ItemQuery) -> str:
    return cursor_at(sort_value(item, query.sort), item.id)


def cursor_at(value: SortValue, item_id: int) -> str:
    """Return the cursor of the page that begins after the item with this sort value and id."""
    return json.dumps([value, item_id])


def read_cursor(cursor: str, query: ItemQuery) -> tuple[SortValue, int]:
    """Return the tuple (sort value, item id) of a cursor; raise ``InputError`` if it is not of this query.

    >>> read_cursor('["b", 2]', ItemQuery(sort="key"))
    ('b', 2)
    >>> read_cursor("b", ItemQuery(sort="key"))
    Traceback (most recent call last):
    afresh.values.errors.InputError: 'b' is no cursor of this list: give the one that came with the last page
    """
    kind = str if query.sort in _TEXT_SORTS else int | float
    try:
        value, item_id = json.loads(cursor)
    except (TypeError, ValueError, RecursionError):
        value = item_id = None
    # Both databases store integers of 64 bits. A larger one would be an error of the database.
    beyond = any(isinstance(number, int) and abs(number) >= _WHOLE for number in (value, item_id))
    if not isinstance(value, kind) or not isinstance(item_id, int) or beyond:
        shown = cursor if len(cursor) <= _SHOWN else f"{cursor[:_SHOWN]}…"
        raise InputError(f"{shown!r} is no cursor of this list: give the one that came with the last page")
    return value, item_id


def check_limit(limit: int) -> None:
    """Raise ``InputError`` for a limit of 0 or less, with which paging would never end."""
    if limit < 1:
        raise InputError(f"a page of {limit} items: must be 1 or more")
