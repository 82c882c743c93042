"""Pages of items in PostgreSQL; where few items have a status other than active, all of these are sorted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from afresh.stores.postgres.reconnection import Connection
from afresh.stores.sql.item_pages import Filters, Paging, SortOrder
from afresh.values.items import Sort


class PostgresPaging(Paging[Connection]):
    """Pages of items in PostgreSQL."""

    orders: ClassVar[Mapping[Sort, SortOrder]] = {
        "id": SortOrder("item.id", "item", "item.id"),
        # An index takes no longer texts.
        "key": SortOrder("left(item.key, 600)", "item", "item.id", value="left({}::text, 600)"),
        "due": SortOrder("state.due_s"),
        "changed": SortOrder("coalesce(state.changed_s, '-infinity')"),
        "failures": SortOrder("state.failures"),
        "weight": SortOrder("item.weight", "item", "item.id"),
    }
    conditions: ClassVar[Mapping[str, str]] = {
        "group": "state.group_id = %(group)s",
        "source": "state.source_id = %(source)s",
        "status": "state.status = %(status)s",
        "idle": "state.status = %(idle)s AND state.status <> 0",  # the literal lets the partial index serve
        "text": "strpos(item.key, %(text)s) > 0",
    }
    parameter = "%({})s"
    looked_at = 10_000

    def choose_index(self, filters: Filters) -> Mapping[str, str] | None:
        return {} if "idle" in filters and self.are_few("idle", filters) else None
