"""Pages of items in every order that is offered, quick however many items there are, in a SQL database.

Without a filter an index leads straight to the page. Where few items match (``Paging.choose_index``) all of
them are sorted. Otherwise the index of the order is walked and at most ``looked_at`` rows are looked at
(``nearby`` times as many where they lie side by side in the file): the page holds what matches among them,
perhaps nothing, and its cursor goes on from the last row looked at.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeAlias

from afresh.stores.cursors import SortValue, check_limit, cursor_at, read_cursor, write_cursor
from afresh.stores.rows import STATUS_CODE, Row, item_from_row
from afresh.stores.sql.database import ConnectionT, Parameters, SqlDatabase
from afresh.values.items import ItemPage, ItemQuery, Sort
from afresh.values.storable_text import is_storable

FEW = 5_000
Filters: TypeAlias = dict[str, str | int]
"""What a row must match, by the name of the condition."""

After: TypeAlias = tuple[SortValue, int]


@dataclass(frozen=True, slots=True)
class SortOrder:
    """What items are sorted by (``column``), the table whose index leads there, and how a value is
    written."""

    column: str
    first: str = "state"
    id: str = "state.item_id"
    second: str = "item"
    value: str = "{}"
    nearby: bool = False


class Paging(ABC, Generic[ConnectionT]):
    """Pages read on one connection, inside a transaction; ``conditions`` are the filters in SQL, by name."""

    orders: ClassVar[Mapping[Sort, SortOrder]]
    conditions: ClassVar[Mapping[str, str]]
    parameter: ClassVar[str]  # how a statement names a parameter
    looked_at: ClassVar[int]
    nearby: ClassVar[int] = 1

    def __init__(self, database: SqlDatabase[ConnectionT], connection: ConnectionT) -> None:
        self._database, self._connection = database, connection
        self._sql = database.statements("item_pages")

    @abstractmethod
    def choose_index(self, filters: Filters) -> Mapping[str, str] | None:
        """Return the parts of the statement that read all matching rows, if they are few; None if they may be
        many."""

    def are_few(self, name: str, filters: Filters, **parts: str) -> bool:
        """Return whether few rows match one of the filters."""
        statement = self._sql["matching"].format(matches=self.conditions[name], **parts)
        return int(self._rows(statement, filters | {"few": FEW})[0][0]) <= FEW

    def page(self, query: ItemQuery, limit: int, after: After | None) -> ItemPage:
        """Return the page after a position."""
        filters = self._filters(query)
        if filters is None:
            return ItemPage((), None)
        parts, values = self._statement(query, filters, limit, after)
        index = self.choose_index(filters) if filters else {}
        edge = None
        if index is None:
            edge = next(iter(self._rows(self._sql["edge"].format(**parts), values)), None)
        if edge is not None:
            comparison = ">" if query.descending else "<"
            place = f"({self._named('edge')}, {self._named('edge_id')})"
            parts["before"] = f"{self._position(query)} {comparison}= {place}"
            values |= {"edge": edge[0], "edge_id": edge[1]}
        found = self._rows(self._sql["page"].format(**{**parts, **(index or {})}), values)
        items = tuple(item_from_row(row) for row in found)
        if len(items) > limit:
            return ItemPage(items[:limit], write_cursor(items[limit - 1], query))
        return ItemPage(items, None if edge is None else cursor_at(*edge))

    def _rows(self, statement: str, given: Parameters) -> list[Row]:
        return self._database.rows(self._connection, statement, given)

    def _named(self, name: str) -> str:
        return self.parameter.format(name)

    def _filters(self, query: ItemQuery) -> Filters | None:
        """Return what a row must match; None where nothing can."""
        filters: Filters = {}
        for name in ("group", "source"):
            text = getattr(query, name)
            if text is not None:
                found = self._rows(self._sql["name_id"], {"text": text})
                if not found:
                    return None
                filters[name] = found[0][0]
        if query.status is not None:
            filters["status" if query.status == "active" else "idle"] = STATUS_CODE[query.status]
        return filters | {"text": query.text} if query.text else filters

    def _position(self, query: ItemQuery) -> str:
        order = self.orders[query.sort]
        return f"({order.column}, {order.id})"

    def _statement(
        self, query: ItemQuery, filters: Filters, limit: int, after: After | None
    ) -> tuple[dict[str, str], dict[str, object]]:
        """Return the parts of the statements, and their parameters."""
        order, comparison = self.orders[query.sort], "<" if query.descending else ">"
        place = f"({order.value.format(self._named('value'))}, {self._named('last_id')})"
        parts = {
            "column": order.column,
            "id": order.id,
            "first": order.first,
            "second": order.second,
            "direction": "DESC" if query.descending else "ASC",
            "after": f"{self._position(query)} {comparison} {place}" if after else "TRUE",
            "before": "TRUE",
            "matches": " AND ".join(self.conditions[name] for name in filters) or "TRUE",
        }
        value_after, id_after = after or (None, None)
        values: dict[str, object] = {"value": value_after, "last_id": id_after, "limit": limit + 1}
        return parts, filters | values | {"looked_at": self.looked_at * (self.nearby if order.nearby else 1)}


def read_page(
    paging: type[Paging[ConnectionT]],
    database: SqlDatabase[ConnectionT],
    query: ItemQuery,
    limit: int,
    cursor: str | None,
) -> ItemPage:
    """Return a page of items, once limit and cursor are found to make sense."""
    check_limit(limit)
    after = read_cursor(cursor, query) if cursor else None
    if not all(is_storable(text) for text in (query.text, query.source, query.group) if text):
        return ItemPage((), None)
    return database.read(lambda connection: paging(database, connection).page(query, limit, after))
