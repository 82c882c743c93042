"""Items page by page; where few items have a status other than active, these are sorted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from afresh.stores.pages import Given, Order, Paging, page_of
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.queries import load_blocks
from afresh.stores.rows import Row
from afresh.values.items import ItemPage, ItemQuery, Sort


class PostgresPaging(Paging):
    """``Paging`` in PostgreSQL."""

    orders: ClassVar[Mapping[Sort, Order]] = {
        "id": Order("item.id", "item", "item.id"),
        # An index takes no longer texts.
        "key": Order("left(item.key, 600)", "item", "item.id", value="left({}::text, 600)"),
        "due": Order("state.due_s"),
        "changed": Order("coalesce(state.changed_s, '-infinity')"),
        "failures": Order("state.failures"),
        "weight": Order("item.weight", "item", "item.id"),
    }
    matches: ClassVar[Mapping[str, str]] = {
        "group": "state.group_id = %(group)s",
        "source": "state.source_id = %(source)s",
        "status": "state.status = %(status)s",
        "idle": "state.status = %(idle)s AND state.status <> 0",  # the literal lets the partial index serve
        "text": "strpos(item.key, %(text)s) > 0",
    }
    blocks = load_blocks("pages.sql")
    looked_at = 10_000

    def __init__(self, connection: Connection) -> None:
        """Inside a transaction."""
        self._connection = connection

    def mark(self, name: str) -> str:
        """By name."""
        return f"%({name})s"

    def rows(self, statement: str, values: Mapping[str, object]) -> list[Row]:
        """All of them."""
        return rows(self._connection, statement, dict(values))

    def few(self, given: Given) -> Mapping[str, str] | None:
        """Those of a status that few have, where they are few indeed."""
        return {} if "idle" in given and self.are_few("idle", given) else None


def page(database: PostgresDatabase, query: ItemQuery, limit: int, cursor: str | None) -> ItemPage:
    """A page."""
    return page_of(
        query,
        limit,
        cursor,
        lambda after: database.read(lambda connection: PostgresPaging(connection).page(query, limit, after)),
    )
