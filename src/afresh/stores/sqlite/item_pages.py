"""Pages of items in SQLite; few items of a source, a group or an unusual status are all sorted."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import ClassVar

from afresh.stores.sql.item_pages import Filters, Paging, SortOrder
from afresh.values.items import Sort

_INDEXES = {"group": "of_group", "source": "of_source", "idle": "idle"}


class SqlitePaging(Paging[sqlite3.Connection]):
    """Pages of items in SQLite."""

    orders: ClassVar[Mapping[Sort, SortOrder]] = {
        "id": SortOrder("item.id", "item NOT INDEXED", "item.id", "state", nearby=True),
        "key": SortOrder(
            "item.key", "item INDEXED BY sqlite_autoindex_item_1", "item.id", "state", nearby=True
        ),
        "due": SortOrder("state.due_s", "state INDEXED BY by_due"),
        "changed": SortOrder("coalesce(state.changed_s, -9e999)", "state INDEXED BY by_changed"),
        "failures": SortOrder("state.failures", "state INDEXED BY by_failures"),
        "weight": SortOrder("state.weight", "state INDEXED BY by_weight"),
    }
    conditions: ClassVar[Mapping[str, str]] = {
        "group": "state.group_id = :group",
        "source": "state.source_id = :source",
        "status": "state.status = :status",
        "idle": "state.status = :idle AND state.status <> 0",  # the literal lets the partial index serve
        "text": "instr(item.key, :text) > 0",
    }
    parameter = ":{}"
    looked_at, nearby = 20_000, 15  # items in order of id or key lie side by side in the file

    def choose_index(self, filters: Filters) -> Mapping[str, str] | None:
        for name, index in _INDEXES.items():
            if name in filters and self.are_few(name, filters, index=index):
                return {"first": f"state INDEXED BY {index}", "second": "item"}
        return None
