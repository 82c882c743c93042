"""Items and leases in SQLite. Table ``item`` has values that seldom change, table ``state`` all others.

Leases are not synced to disk, because a power loss stops the workers on this machine too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import ClassVar

from afresh.stores.rows import ACTIVE, lease_from_row, text_from_mapping
from afresh.stores.sql.dialect import ItemCounts, Parameters
from afresh.stores.sql.item_part import Filters, Paging, SortOrder, SqlItems
from afresh.stores.sql.store_parts import SqlLeases
from afresh.stores.sqlite.commit import drop_contents
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.feed import SqliteFeed
from afresh.stores.store import EDITS_KEPT
from afresh.values.items import NewItem, Sort
from afresh.values.lease import Lease

# The columns of a new item in the two tables, in the order in which ``_add_batch`` gives their values.
_ITEM = ("id", "source_id", "key", "labels", "added_s", "selector", "listed")
_STATE = (
    *("item_id", "source_id", "group_id", "status", "weight", "cost"),
    *("min_interval_s", "max_interval_s", "prior_rate_per_s", "due_s"),
)
_INDEXES = {"group": "of_group", "source": "of_source", "idle": "idle"}


class SqlitePaging(Paging[sqlite3.Connection]):
    """Reads pages of items. If a page is filtered by a source, a group or a status other than active, and few
    items match, all matching items are read and sorted."""

    orders: ClassVar[Mapping[Sort, SortOrder]] = {
        "id": SortOrder("item.id", "item NOT INDEXED", "item.id", "state", nearby=True),
        "key": SortOrder("item.key", "item INDEXED BY item_key", "item.id", "state", nearby=True),
        "due": SortOrder("state.due_s", "state INDEXED BY by_due"),
        "changed": SortOrder("coalesce(state.changed_s, -9e999)", "state INDEXED BY by_changed"),
        "failures": SortOrder("state.failures", "state INDEXED BY by_failures"),
        "weight": SortOrder("state.weight", "state INDEXED BY by_weight"),
    }
    conditions: ClassVar[Mapping[str, str]] = {
        "group": "state.group_id = :group",
        "source": "state.source_id = :source",
        "status": "state.status = :status",
        # The literal 0 lets SQLite use the partial index.
        "idle": "state.status = :idle AND state.status <> 0",
        "text": "instr(lower(item.key), lower(:text)) > 0",
    }
    parameter = ":{}"
    looked_at, nearby = 20_000, 15  # items in the order of ids or keys are side by side in the file

    def choose_index(self, filters: Filters) -> Mapping[str, str] | None:
        for name, index in _INDEXES.items():
            if name in filters and self.are_few(name, filters, index=index):
                return {"first": f"state INDEXED BY {index}", "second": "item"}
        return None


class SqliteItems(SqlItems[sqlite3.Connection]):
    _database: SqliteDatabase
    paging = SqlitePaging
    feed_type = SqliteFeed

    def _add_batch(self, connection: sqlite3.Connection, batch: list[NewItem], now_s: float) -> int:
        new = self._only_new(connection, batch)
        texts = {item.source for item in new} | {item.group for item in new}
        names = self._database.name_ids(connection, texts)
        first_id = connection.execute(self._sql["last_id"]).fetchone()[0] + 1
        counts = ItemCounts()
        keys, states = [], []
        for item_id, item in enumerate(new, first_id):
            place = names[item.source], names[item.group], ACTIVE
            counts[place] += 1
            limits = (item.min_interval_s, item.max_interval_s, item.prior_rate_per_s)
            labels = text_from_mapping(item.labels) if item.labels else None
            keys.append((item_id, place[0], item.key, labels, now_s, item.selector, item.listed))
            states.append((item_id, *place, item.weight, item.cost, *limits, now_s))
        self._database.insert(connection, "item", _ITEM, keys)
        self._database.insert(connection, "state", _STATE, states)
        self._database.add_to_tally(connection, counts)
        return len(new)

    def _remove(self, connection: sqlite3.Connection, given: Parameters) -> None:
        self._move_in_tally(connection, given, None)
        dropped = connection.execute(self._sql["drop_versions"], given).fetchall()
        drop_contents(connection, [content_id for (content_id,) in dropped])
        connection.execute(self._sql["drop_items"], given)

    def _note_edits(self, connection: sqlite3.Connection, ids: list[int]) -> None:
        connection.execute(self._sql["add_edits"], {"ids": self._database.as_list(ids)})
        connection.execute(self._sql["trim_edits"], {"kept": EDITS_KEPT})


class SqliteLeases(SqlLeases[sqlite3.Connection]):
    def _take(self, given: Parameters) -> list[Lease]:
        def work(connection: sqlite3.Connection) -> list[Lease]:
            token = self._database.take_numbers(connection, "lease", 1)
            taken = self._database.as_list(
                [item_id for (item_id,) in self._rows(connection, "take", {**given, "token": token})]
            )
            return [lease_from_row(row) for row in self._rows(connection, "read", {"ids": taken})]

        return self._database.write(work, durable=False)
