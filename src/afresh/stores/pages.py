"""Items page by page, in every order that is offered, quickly however many there are: for any SQL database.

Without a filter an index leads to the page. Where few items match (``Paging.few``) these are sorted. Else the
order's index is walked and ``looked_at`` rows are looked at, no more (``nearby`` times as many where they lie
side by side): the page holds what matches among them, perhaps nothing, and its cursor goes on from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from afresh.stores.cursors import SortValue, check_limit, cursor_at, read_cursor, write_cursor
from afresh.stores.rows import STATUS_CODE, Row, item_from_row
from afresh.stores.texts import is_storable
from afresh.values.items import ItemPage, ItemQuery, Sort

FEW = 5_000
Given: TypeAlias = dict[str, str | int]
"""What a row must match, by name."""

After: TypeAlias = tuple[SortValue, int]


@dataclass(frozen=True, slots=True)
class Order:
    """What items are sorted by, the table whose index leads there, and how a value is written."""

    column: str
    first: str = "state"
    id: str = "state.item_id"
    second: str = "item"
    value: str = "{}"
    nearby: bool = False


class Paging(ABC):
    """Pages on one connection; ``blocks`` are its statements, ``matches`` what a row must be by name."""

    orders: ClassVar[Mapping[Sort, Order]]
    blocks: ClassVar[Mapping[str, str]]
    matches: ClassVar[Mapping[str, str]]
    looked_at: ClassVar[int]
    nearby: ClassVar[int] = 1

    @abstractmethod
    def mark(self, name: str) -> str:
        """How a statement names a value."""

    @abstractmethod
    def rows(self, statement: str, values: Mapping[str, object]) -> Sequence[Row]:
        """What a statement gives."""

    @abstractmethod
    def few(self, given: Given) -> Mapping[str, str] | None:
        """What the statement of a page says else where few rows match; None where there may be many."""

    def are_few(self, name: str, given: Given, **words: str) -> bool:
        """Whether few rows match one thing that is given."""
        statement = self.blocks["matching"].format(matches=self.matches[name], **words)
        return int(self.rows(statement, given | {"few": FEW})[0][0]) <= FEW

    def page(self, query: ItemQuery, limit: int, after: After | None) -> ItemPage:
        """One page after a place."""
        given = self._given(query)
        if given is None:
            return ItemPage((), None)
        words, values = self._asked(query, given, limit, after)
        few = self.few(given) if given else {}
        edge = None
        if few is None:
            edge = next(iter(self.rows(self.blocks["edge"].format(**words), values)), None)
        if edge is not None:
            place, comparison = self._place(query), ">" if query.descending else "<"
            words["before"] = f"{place} {comparison}= ({self.mark('edge')}, {self.mark('edge_id')})"
            values |= {"edge": edge[0], "edge_id": edge[1]}
        found = self.rows(self.blocks["page"].format(**{**words, **(few or {})}), values)
        items = tuple(item_from_row(row) for row in found)
        if len(items) > limit:
            return ItemPage(items[:limit], write_cursor(items[limit - 1], query))
        return ItemPage(items, None if edge is None else cursor_at(*edge))

    def _given(self, query: ItemQuery) -> Given | None:
        """What a row must match; None where nothing can."""
        given: Given = {}
        for name in ("group", "source"):
            text = getattr(query, name)
            if text is not None:
                found = self.rows(self.blocks["name_id"], {"text": text})
                if not found:
                    return None
                given[name] = found[0][0]
        if query.status is not None:
            given["status" if query.status == "active" else "idle"] = STATUS_CODE[query.status]
        return given | {"text": query.text} if query.text else given

    def _place(self, query: ItemQuery) -> str:
        order = self.orders[query.sort]
        return f"({order.column}, {order.id})"

    def _asked(
        self, query: ItemQuery, given: Given, limit: int, after: After | None
    ) -> tuple[dict[str, str], dict[str, object]]:
        """The words of the statements, and their values."""
        order, comparison = self.orders[query.sort], "<" if query.descending else ">"
        value, last_id = order.value.format(self.mark("value")), self.mark("last_id")
        words = {
            "column": order.column,
            "id": order.id,
            "first": order.first,
            "second": order.second,
            "direction": "DESC" if query.descending else "ASC",
            "after": f"{self._place(query)} {comparison} ({value}, {last_id})" if after else "TRUE",
            "before": "TRUE",
            "matches": " AND ".join(self.matches[name] for name in given) or "TRUE",
        }
        value_after, id_after = after or (None, None)
        values: dict[str, object] = {"value": value_after, "last_id": id_after, "limit": limit + 1}
        return words, given | values | {"looked_at": self.looked_at * (self.nearby if order.nearby else 1)}


def page_of(
    query: ItemQuery, limit: int, cursor: str | None, read: Callable[[After | None], ItemPage]
) -> ItemPage:
    """A page as ``read`` gives it, once the question makes sense."""
    check_limit(limit)
    after = read_cursor(cursor, query) if cursor else None
    if not all(is_storable(text) for text in (query.text, query.source, query.group) if text):
        return ItemPage((), None)
    return read(after)
