"""Items page by page, in every order that is offered."""

from __future__ import annotations

from afresh.stores.cursors import check_limit, read_cursor, write_cursor
from afresh.stores.postgres.database import Database
from afresh.stores.postgres.lines import rows
from afresh.stores.postgres.queries import load_blocks
from afresh.stores.rows import STATUS_CODE, item_from_row
from afresh.stores.texts import is_storable
from afresh.values.items import ItemPage, ItemQuery, Sort

_SQL = load_blocks("pages.sql")
_SORT_BY: dict[Sort, str] = {
    "id": "id",
    "key": "left(key, 600)",
    "due": "due_s",
    "polled": "coalesce(polled_s, '-infinity')",
    "changed": "coalesce(changed_s, '-infinity')",
    "failures": "failures",
    "weight": "weight",
}


def page(database: Database, query: ItemQuery, limit: int, cursor: str | None) -> ItemPage:
    """A page."""
    check_limit(limit)
    if not all(is_storable(text) for text in (query.text, query.source, query.group) if text):
        return ItemPage((), None)
    comparison, direction = ("<", "DESC") if query.descending else (">", "ASC")
    value, last_id = read_cursor(cursor, query) if cursor else (None, None)
    text = _SQL["next_page" if cursor else "first_page"].format(
        column=_SORT_BY[query.sort],
        comparison=comparison,
        direction=direction,
        value="left(%(value)s::text, 600)" if query.sort == "key" else "%(value)s",
    )
    given = {
        "text": query.text,
        "status": None if query.status is None else STATUS_CODE[query.status],
        "source": query.source,
        "group": query.group,
        "value": value,
        "last_id": last_id,
        "limit": limit + 1,
    }
    items = tuple(item_from_row(row) for row in database.read(lambda c: rows(c, text, given)))
    if len(items) <= limit:
        return ItemPage(items, None)
    return ItemPage(items[:limit], write_cursor(items[limit - 1], query))
