"""The items of a store in a SQL database: adds, changes, removes and finds items, and lists them in pages.

Reading a page takes a short time in every sort order, for any number of items. Without a filter, an index
gives the page directly. If few items match the filter (``Paging.choose_index``), all of them are read and
sorted. Otherwise at most ``looked_at`` rows are read in the sort order (``nearby`` times as many if the file
has the rows in this order). The page has the items among them that match, perhaps none, and the next page
continues after the last row that was read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import islice
from typing import ClassVar, Generic, TypeAlias

from afresh.stores.cursors import SortValue, check_limit, cursor_at, read_cursor, write_cursor
from afresh.stores.rows import STATUS_CODE, Row, item_from_row, mapping_from_text, text_from_mapping
from afresh.stores.sql.dialect import ConnectionT, ItemCounts, Parameters, SqlDatabase, SqlPart
from afresh.stores.sql.feed_part import SqlFeed
from afresh.stores.store import StoredItems
from afresh.values.errors import AmbiguousKeyError, InputError
from afresh.values.items import (
    STATUSES,
    Item,
    ItemChange,
    ItemCount,
    ItemPage,
    ItemQuery,
    ItemRef,
    NewItem,
    Sort,
    display_key,
    ids_by_key,
)
from afresh.values.storable_text import is_storable
from afresh.values.stored import Edits

_BATCH = 10_000
FEW = 5_000  # up to this many matching items are all read and sorted for a page


class SqlItems(SqlPart[ConnectionT], StoredItems):
    """Implements ``StoredItems``, except the abstract methods, which are different for each database."""

    file = "stored_items"
    paging: type[Paging[ConnectionT]]
    feed_type: type[SqlFeed[ConnectionT]]

    def add(self, items: Iterable[NewItem], now_s: float) -> int:
        added, rest = 0, iter(items)
        while batch := list(islice(rest, _BATCH)):
            added += self._database.write(partial(self._add_batch, batch=batch, now_s=now_s))
        return added

    def change(self, ids: Sequence[int], change: ItemChange) -> None:
        def work(connection: ConnectionT) -> None:
            known = self._lock(connection, ids)
            given = _change_parameters(change) | {"ids": self._database.as_list(known)}
            crossed = self._rows(connection, "crossed", given)
            if crossed:
                raise InputError(f"item {crossed[0][0]!r}: min_interval_s would be more than max_interval_s")
            if change.status is not None:
                self._move_in_tally(connection, given, STATUS_CODE[change.status])
            for name in ("change_item", "change_state"):
                self._rows(connection, name, given)
            self._note_edits(connection, known)

        self._database.write(work)

    def remove(self, ids: Sequence[int], now_s: float, *, announce: bool = False) -> None:
        def work(connection: ConnectionT) -> None:
            known = self._lock(connection, ids)
            given = {"ids": self._database.as_list(known), "now_s": now_s, "for_hooks": int(announce)}
            removed = self._rows(connection, "removed", given)
            self._remove(connection, given)
            self._note_edits(connection, known)
            self.feed_type(self._database).append(connection, removed)

        self._database.write(work)

    def drop_moved(self, ids: Sequence[int]) -> None:
        """Remove items that another store has now, without telling the feed."""

        def work(connection: ConnectionT) -> None:
            known = self._lock(connection, ids)
            self._remove(connection, {"ids": self._database.as_list(known)})
            self._note_edits(connection, known)

        self._database.write(work)

    def find(self, keys: Sequence[str], source: str | None = None) -> list[ItemRef]:
        if source is not None and not is_storable(source):
            return []
        return self._database.read(lambda connection: self._find(connection, keys, source))

    def get(self, key: str, source: str | None = None) -> Item | None:
        if not all(is_storable(text) for text in (key, source) if text):
            return None
        rows = self._fetch("get", key=self._database.key_parameter(key), source=source)
        items = [item_from_row(row) for row in rows]
        if len(items) > 1:
            raise AmbiguousKeyError(display_key(key), (item.source for item in items))
        return items[0] if items else None

    def by_id(self, ids: Sequence[int]) -> list[Item]:
        return [item_from_row(row) for row in self._fetch("by_id", ids=self._database.as_list(ids))]

    def validators(self, item_id: int) -> dict[str, str]:
        found = self._fetch("validators", item_id=item_id)
        return mapping_from_text(found[0][0]) if found else {}

    def ids(self, keys: Sequence[str], source: str | None = None) -> dict[str, int]:
        return ids_by_key(self.find(keys, source))

    def page(self, query: ItemQuery, limit: int, cursor: str | None = None) -> ItemPage:
        check_limit(limit)
        after = read_cursor(cursor, query) if cursor else None
        if not all(is_storable(text) for text in (query.text, query.source, query.group) if text):
            return ItemPage((), None)
        database = self._database
        return database.read(lambda connection: self.paging(database, connection).page(query, limit, after))

    def due(self, now_s: float, limit: int) -> list[int]:
        return [item_id for (item_id,) in self._fetch("due", now_s=now_s, limit=limit)]

    def counts(self) -> list[ItemCount]:
        found = self._fetch("counts")
        return [ItemCount(source, group, STATUSES[code], items) for source, group, code, items in found]

    def polled_keys(self) -> dict[int, str]:
        return dict(self._fetch("polled_keys"))

    def edits(self, after: int) -> Edits:
        def work(connection: ConnectionT) -> Edits:
            ((first, last),) = self._rows(connection, "edit_range", {})
            ids = self._rows(connection, "edits", {"after": after})
            complete = after >= last or (first is not None and after >= first - 1)
            return Edits(last, tuple(item_id for (item_id,) in ids), complete)

        return self._database.snapshot(work)

    @abstractmethod
    def _add_batch(self, connection: ConnectionT, batch: list[NewItem], now_s: float) -> int:
        """Add the items of a batch that are unknown, and return how many were added."""

    @abstractmethod
    def _remove(self, connection: ConnectionT, given: Parameters) -> None:
        """Remove the items ``given["ids"]`` and everything that belongs to them."""

    @abstractmethod
    def _note_edits(self, connection: ConnectionT, ids: list[int]) -> None:
        """Add these items to the journal of edits, and drop the journal's oldest entries."""

    def _lock(self, connection: ConnectionT, ids: Sequence[int]) -> list[int]:
        """Lock these items against other writers, and return the ids that are known, sorted."""
        found = self._rows(connection, "lock", {"ids": self._database.as_list(ids)})
        return [item_id for (item_id,) in found]

    def _find(self, connection: ConnectionT, keys: Iterable[str], source: str | None = None) -> list[ItemRef]:
        # A key that cannot be stored is unknown. SQLite's JSON would cut it at NUL and find another key.
        wanted = {self._database.key_parameter(key) for key in keys if is_storable(key)}
        given = {"keys": self._database.as_list(wanted), "source": source}
        return sorted(ItemRef(*row) for row in self._rows(connection, "find", given))

    def _only_new(self, connection: ConnectionT, batch: list[NewItem]) -> list[NewItem]:
        """Return the items of a batch that are unknown; of those with the same source and key only the first.
        Known items that the user adds are no longer listed ones."""
        found = self._find(connection, (item.key for item in batch))
        known = {(item.source, item.key): item.id for item in found}
        added_by_user = {
            known[item.source, item.key]
            for item in batch
            if not item.listed and (item.source, item.key) in known
        }
        if added_by_user:
            self._rows(connection, "unlist", {"ids": self._database.as_list(sorted(added_by_user))})
        new: dict[tuple[str, str], NewItem] = {}
        for item in batch:
            if (item.source, item.key) not in known:
                new.setdefault((item.source, item.key), item)
        return list(new.values())

    def _move_in_tally(self, connection: ConnectionT, given: Parameters, status: int | None) -> None:
        """Update the saved numbers of items: the items ``given["ids"]`` change their status to ``status``, or
        are removed if it is None."""
        counts = ItemCounts()
        for source, group, old, items in self._rows(connection, "count_ids", given):
            counts[source, group, old] -= items
            if status is not None:
                counts[source, group, status] += items
        self._database.add_to_tally(connection, counts)


def _change_parameters(change: ItemChange) -> dict[str, object]:
    given = {field.name: getattr(change, field.name) for field in fields(change)}
    labels = None if change.labels is None else text_from_mapping(change.labels)
    return given | {"labels": labels, "status": None if change.status is None else STATUS_CODE[change.status]}


Filters: TypeAlias = dict[str, str | int]
"""The values that an item must have to match a query, by the names of ``Paging.conditions``."""

After: TypeAlias = tuple[SortValue, int]
"""A tuple (sort value, id) of the last item before the page."""


@dataclass(frozen=True, slots=True)
class SortOrder:
    """The SQL of one sort order: items are sorted by ``column``, then by ``id``.

    The table ``first`` has an index in this order and is joined with the table ``second``. ``value`` is the
    pattern for the cursor's value in SQL. ``nearby`` is whether the file has the rows in this order."""

    column: str
    first: str = "state"
    id: str = "state.item_id"
    second: str = "item"
    value: str = "{}"
    nearby: bool = False


class Paging(ABC, Generic[ConnectionT]):
    """Reads pages of items in one transaction. ``orders`` are the sort orders and ``conditions`` the filters,
    as SQL, by name. The docstring of this module explains ``looked_at`` and ``nearby``."""

    orders: ClassVar[Mapping[Sort, SortOrder]]
    conditions: ClassVar[Mapping[str, str]]
    parameter: ClassVar[str]  # the pattern by which a statement names a parameter
    looked_at: ClassVar[int]
    nearby: ClassVar[int] = 1

    def __init__(self, database: SqlDatabase[ConnectionT], connection: ConnectionT) -> None:
        self._database, self._connection = database, connection
        self._sql = database.statements("item_pages")

    @abstractmethod
    def choose_index(self, filters: Filters) -> Mapping[str, str] | None:
        """Return parts of SQL that read all matching items by an index, or None if many items may match."""

    def are_few(self, name: str, filters: Filters, **parts: str) -> bool:
        statement = self._sql["matching"].format(matches=self.conditions[name], **parts)
        return int(self._rows(statement, filters | {"few": FEW})[0][0]) <= FEW

    def page(self, query: ItemQuery, limit: int, after: After | None) -> ItemPage:
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
        """Return the values that an item must have, or None if no item can match."""
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
        order, comparison = self.orders[query.sort], "<" if query.descending else ">"
        place = f"({order.value.format(self._named('value'))}, {self._named('last_id')})"
        parts = asdict(order) | {
            "direction": "DESC" if query.descending else "ASC",
            "after": f"{self._position(query)} {comparison} {place}" if after else "TRUE",
            "before": "TRUE",
            "matches": " AND ".join(self.conditions[name] for name in filters) or "TRUE",
        }
        value_after, id_after = after or (None, None)
        values: dict[str, object] = {"value": value_after, "last_id": id_after, "limit": limit + 1}
        return parts, filters | values | {"looked_at": self.looked_at * (self.nearby if order.nearby else 1)}
