"""Items page by page; those of a source, a group or an unusual status are sorted where they are few."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, ClassVar

from afresh.stores.pages import After, Given, Order, Paging, page_of
from afresh.stores.rows import Row
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.queries import load_blocks
from afresh.values.items import ItemPage, ItemQuery, Sort

_INDEXES = {"group": "of_group", "source": "of_source", "idle": "idle"}


class SqlitePaging(Paging):
    """``Paging`` in SQLite."""

    orders: ClassVar[Mapping[Sort, Order]] = {
        "id": Order("item.id", "item NOT INDEXED", "item.id", "state", nearby=True),
        "key": Order("item.key", "item INDEXED BY sqlite_autoindex_item_1", "item.id", "state", nearby=True),
        "due": Order("state.due_s", "state INDEXED BY by_due"),
        "changed": Order("coalesce(state.changed_s, -9e999)", "state INDEXED BY by_changed"),
        "failures": Order("state.failures", "state INDEXED BY by_failures"),
        "weight": Order("state.weight", "state INDEXED BY by_weight"),
    }
    matches: ClassVar[Mapping[str, str]] = {
        "group": "state.group_id = :group",
        "source": "state.source_id = :source",
        "status": "state.status = :status",
        "idle": "state.status = :idle AND state.status <> 0",  # the literal lets the partial index serve
        "text": "instr(item.key, :text) > 0",
    }
    blocks = load_blocks("pages.sql")
    looked_at, nearby = 20_000, 15  # items in order of id or key need not be looked for all over the file

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Inside a transaction."""
        self._connection = connection

    def mark(self, name: str) -> str:
        """By name."""
        return f":{name}"

    def rows(self, statement: str, values: Mapping[str, Any]) -> list[Row]:
        """All of them."""
        return self._connection.execute(statement, values).fetchall()

    def few(self, given: Given) -> Mapping[str, str] | None:
        """The index that leads to all rows that match, if they are few."""
        for name, index in _INDEXES.items():
            if name in given and self.are_few(name, given, index=index):
                return {"first": f"state INDEXED BY {index}", "second": "item"}
        return None


def page(database: SqliteDatabase, query: ItemQuery, limit: int, cursor: str | None) -> ItemPage:
    """A page."""

    def read(after: After | None) -> ItemPage:
        with database.read() as connection:
            return SqlitePaging(connection).page(query, limit, after)

    return page_of(query, limit, cursor, read)
