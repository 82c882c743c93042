"""Items in SQLite: one row in ``item`` for what seldom changes, one in ``state`` for what a poll changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from afresh.stores.rows import ACTIVE, text_from_mapping
from afresh.stores.sql.database import ItemCounts, Parameters
from afresh.stores.sql.item_pages import read_page
from afresh.stores.sql.stored_items import SqlItems
from afresh.stores.sqlite.contents import drop_contents
from afresh.stores.sqlite.item_pages import SqlitePaging
from afresh.stores.store import EDITS_KEPT
from afresh.values.items import ItemPage, ItemQuery, NewItem


class SqliteItems(SqlItems[sqlite3.Connection]):
    """Implements ``StoredItems``."""

    def page(self, query: ItemQuery, limit: int, cursor: str | None = None) -> ItemPage:
        return read_page(SqlitePaging, self._database, query, limit, cursor)

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
            keys.append((item_id, item.key, labels, now_s, item.selector))
            states.append((item_id, *place, item.weight, item.cost, *limits, now_s))
        connection.executemany(self._sql["add_item"], keys)
        connection.executemany(self._sql["add_state"], states)
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

    def _lock_ids(self, connection: sqlite3.Connection, keys: Sequence[str]) -> dict[str, int]:
        return self._ids(connection, keys)  # there is one writer at a time
