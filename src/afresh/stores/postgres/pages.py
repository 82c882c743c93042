"""Items page by page, in every order that is offered, quickly however many there are.

Without a filter an index leads to the page. Where few items have a status other than active, these are
sorted. Else the order's index is walked and ``LOOKED_AT`` rows are looked at, no more: the page holds what
matches among them, perhaps nothing, and its cursor goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass

from afresh.stores.cursors import SortValue, check_limit, cursor_at, read_cursor, write_cursor
from afresh.stores.postgres.database import Database
from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.queries import load_blocks
from afresh.stores.rows import STATUS_CODE, item_from_row
from afresh.stores.texts import is_storable
from afresh.values.items import ItemPage, ItemQuery, Sort

_SQL = load_blocks("pages.sql")
FEW = 5_000
LOOKED_AT = 10_000


@dataclass(frozen=True, slots=True)
class _Order:
    """What items are sorted by, and the table that has its index."""

    column: str
    first: str = "state"
    id: str = "state.item_id"
    value: str = "%({})s"


_ORDERS: dict[Sort, _Order] = {
    "id": _Order("item.id", "item", "item.id"),
    # An index takes no longer texts.
    "key": _Order("left(item.key, 600)", "item", "item.id", "left(%({})s::text, 600)"),
    "due": _Order("state.due_s"),
    "polled": _Order("coalesce(state.polled_s, '-infinity')"),
    "changed": _Order("coalesce(state.changed_s, '-infinity')"),
    "failures": _Order("state.failures"),
    "weight": _Order("item.weight", "item", "item.id"),
}
_MATCHES = {
    "group": "state.group_id = %(group)s",
    "source": "state.source_id = %(source)s",
    "status": "state.status = %(status)s",
    "idle": "state.status = %(idle)s AND state.status <> 0",  # the literal lets the partial index serve
    "text": "strpos(item.key, %(text)s) > 0",
}


def page(database: Database, query: ItemQuery, limit: int, cursor: str | None) -> ItemPage:
    """A page."""
    check_limit(limit)
    after = read_cursor(cursor, query) if cursor else None
    if not all(is_storable(text) for text in (query.text, query.source, query.group) if text):
        return ItemPage((), None)
    return database.read(lambda connection: _page(connection, query, limit, after))


def _given(connection: Connection, query: ItemQuery) -> dict[str, str | int] | None:
    """What a row must match, by name; None where nothing can."""
    given: dict[str, str | int] = {}
    for name in ("group", "source"):
        text = getattr(query, name)
        if text is not None:
            found = rows(connection, _SQL["name_id"], {"text": text})
            if not found:
                return None
            given[name] = found[0][0]
    if query.status is not None:
        given["status" if query.status == "active" else "idle"] = STATUS_CODE[query.status]
    return given | {"text": query.text} if query.text else given


def _page(
    connection: Connection, query: ItemQuery, limit: int, after: tuple[SortValue, int] | None
) -> ItemPage:
    given = _given(connection, query)
    if given is None:
        return ItemPage((), None)
    order, comparison = _ORDERS[query.sort], "<" if query.descending else ">"
    place = f"({order.column}, {order.id})"
    words = {
        "column": order.column,
        "id": order.id,
        "first": order.first,
        "direction": "DESC" if query.descending else "ASC",
        "after": f"{place} {comparison} ({order.value.format('value')}, %(last_id)s)" if after else "TRUE",
        "before": "TRUE",
        "matches": " AND ".join(_MATCHES[name] for name in given) or "TRUE",
    }
    value, last_id = after or (None, None)
    values = given | {"value": value, "last_id": last_id, "limit": limit + 1, "looked_at": LOOKED_AT}
    edge = None
    if given and not _are_few(connection, given):
        edge = next(iter(rows(connection, _SQL["edge"].format(**words), values)), None)
    if edge is not None:
        words["before"] = f"{place} {'>' if query.descending else '<'}= (%(edge)s, %(edge_id)s)"
        values |= {"edge": edge[0], "edge_id": edge[1]}
    items = tuple(item_from_row(row) for row in rows(connection, _SQL["page"].format(**words), values))
    if len(items) > limit:
        return ItemPage(items[:limit], write_cursor(items[limit - 1], query))
    return ItemPage(items, None if edge is None else cursor_at(*edge))


def _are_few(connection: Connection, given: dict[str, str | int]) -> bool:
    """Whether the items of a status that few have are few indeed."""
    if "idle" not in given:
        return False
    statement = _SQL["matching"].format(matches=_MATCHES["idle"])
    return int(rows(connection, statement, given | {"few": FEW})[0][0]) <= FEW
