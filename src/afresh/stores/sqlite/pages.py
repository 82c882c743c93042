"""Items page by page, in every order that is offered, quickly however many there are.

Without a filter an index leads to the page. Where a source, a group or a status other than active has few
items, these are sorted. Else the order's index is walked and ``LOOKED_AT`` rows are looked at, no more (by id
and key ``NEARBY`` times as many): the page holds what matches among them, perhaps nothing, and its cursor
goes on from there.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from afresh.stores.cursors import SortValue, check_limit, cursor_at, read_cursor, write_cursor
from afresh.stores.rows import STATUS_CODE, item_from_row
from afresh.stores.sqlite.database import Database
from afresh.stores.sqlite.queries import load_blocks
from afresh.stores.texts import is_storable
from afresh.values.items import ItemPage, ItemQuery, Sort

_SQL = load_blocks("pages.sql")
FEW = 5_000
LOOKED_AT = 20_000
NEARBY = 15  # items in order of id or key need not be looked for all over the file


@dataclass(frozen=True, slots=True)
class _Order:
    """What items are sorted by, and the table with the index that leads there."""

    column: str
    first: str
    id: str = "state.item_id"
    second: str = "item"


_ORDERS: dict[Sort, _Order] = {
    "id": _Order("item.id", "item NOT INDEXED", "item.id", "state"),
    "key": _Order("item.key", "item INDEXED BY sqlite_autoindex_item_1", "item.id", "state"),
    "due": _Order("state.due_s", "state INDEXED BY by_due"),
    "polled": _Order("coalesce(state.polled_s, -9e999)", "state INDEXED BY by_polled"),
    "changed": _Order("coalesce(state.changed_s, -9e999)", "state INDEXED BY by_changed"),
    "failures": _Order("state.failures", "state INDEXED BY by_failures"),
    "weight": _Order("state.weight", "state INDEXED BY by_weight"),
}
_MATCHES = {
    "group": "state.group_id = :group",
    "source": "state.source_id = :source",
    "status": "state.status = :status",
    "idle": "state.status = :idle AND state.status <> 0",  # the literal lets the partial index serve
    "text": "instr(item.key, :text) > 0",
}
_INDEXES = {"group": "of_group", "source": "of_source", "idle": "idle"}


def page(database: Database, query: ItemQuery, limit: int, cursor: str | None) -> ItemPage:
    """A page."""
    check_limit(limit)
    after = read_cursor(cursor, query) if cursor else None
    if not all(is_storable(text) for text in (query.text, query.source, query.group) if text):
        return ItemPage((), None)
    with database.read() as connection:
        given = _given(connection, query)
        return ItemPage((), None) if given is None else _page(connection, query, given, limit, after)


def _given(connection: sqlite3.Connection, query: ItemQuery) -> dict[str, str | int] | None:
    """What a row must match, by name; None where nothing can."""
    given: dict[str, str | int] = {}
    for name in ("group", "source"):
        text = getattr(query, name)
        if text is not None:
            row = connection.execute(_SQL["name_id"], (text,)).fetchone()
            if row is None:
                return None
            given[name] = row[0]
    if query.status is not None:
        given["status" if query.status == "active" else "idle"] = STATUS_CODE[query.status]
    return given | {"text": query.text} if query.text else given


def _page(
    connection: sqlite3.Connection,
    query: ItemQuery,
    given: dict[str, str | int],
    limit: int,
    after: tuple[SortValue, int] | None,
) -> ItemPage:
    order, comparison = _ORDERS[query.sort], "<" if query.descending else ">"
    place = f"({order.column}, {order.id})"
    words = {
        "column": order.column,
        "id": order.id,
        "first": order.first,
        "second": order.second,
        "direction": "DESC" if query.descending else "ASC",
        "after": f"{place} {comparison} (:value, :last_id)" if after else "TRUE",
        "before": "TRUE",
        "matches": " AND ".join(_MATCHES[name] for name in given) or "TRUE",
    }
    value, last_id = after or (None, None)
    values = given | {"value": value, "last_id": last_id, "limit": limit + 1}
    values["looked_at"] = LOOKED_AT * (NEARBY if order.second == "state" else 1)
    edge = None
    few = _few(connection, given)
    if few:
        words |= {"first": f"state INDEXED BY {few}", "second": "item"}
    elif given:
        edge = connection.execute(_SQL["edge"].format(**words), values).fetchone()
    if edge is not None:
        words["before"] = f"{place} {'>' if query.descending else '<'}= (:edge, :edge_id)"
        values |= {"edge": edge[0], "edge_id": edge[1]}
    rows = connection.execute(_SQL["page"].format(**words), values)
    items = tuple(item_from_row(row) for row in rows)
    if len(items) > limit:
        return ItemPage(items[:limit], write_cursor(items[limit - 1], query))
    return ItemPage(items, None if edge is None else cursor_at(*edge))


def _few(connection: sqlite3.Connection, given: dict[str, str | int]) -> str | None:
    """The index that leads to all rows that match, if they are few."""
    for name, index in _INDEXES.items():
        if name in given:
            statement = _SQL["matching"].format(index=index, matches=_MATCHES[name])
            if connection.execute(statement, given | {"few": FEW}).fetchone()[0] <= FEW:
                return index
    return None
