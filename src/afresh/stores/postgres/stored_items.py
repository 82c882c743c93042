"""Items and leases in PostgreSQL. Table ``item`` has what a user sets, table ``state`` all other values.

Unlike in SQLite, leases are synced to disk, because the server may crash while the workers continue to run.
If a crash lost a lease, the restarted server would give the item to a second worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from afresh.stores.postgres.binary_arrays import column_arrays
from afresh.stores.postgres.commit import SizeChange, drop_contents, save_size_change
from afresh.stores.postgres.connection import Connection, fetch_rows
from afresh.stores.postgres.database import key_hash
from afresh.stores.postgres.feed import PostgresFeed
from afresh.stores.rows import ACTIVE, Row, lease_from_row, text_from_mapping
from afresh.stores.sql.dialect import ItemCounts, Parameters
from afresh.stores.sql.item_part import Filters, Paging, SortOrder, SqlItems
from afresh.stores.sql.store_parts import SqlLeases
from afresh.stores.store import EDITS_KEPT
from afresh.values.items import NewItem, Sort
from afresh.values.lease import Lease

_COLUMNS = (
    *("ids", "keys", "hashes", "sources", "groups", "weights", "costs"),
    *("least", "most", "priors", "labels", "selectors", "listed"),
)


class PostgresPaging(Paging[Connection]):
    """Reads pages of items. If a page is filtered by a status other than active, and few items have this
    status, all these items are read and sorted."""

    orders: ClassVar[Mapping[Sort, SortOrder]] = {
        "id": SortOrder("item.id", "item", "item.id"),
        # PostgreSQL limits the size of an index entry.
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
        # The literal 0 lets PostgreSQL use the partial index.
        "idle": "state.status = %(idle)s AND state.status <> 0",
        "text": 'strpos(lower(item.key COLLATE "C"), lower(%(text)s COLLATE "C")) > 0',
    }
    parameter = "%({})s"
    looked_at = 10_000

    def choose_index(self, filters: Filters) -> Mapping[str, str] | None:
        return {} if "idle" in filters and self.are_few("idle", filters) else None


class PostgresItems(SqlItems[Connection]):
    paging = PostgresPaging
    feed_type = PostgresFeed

    def _add_batch(self, connection: Connection, batch: list[NewItem], now_s: float) -> int:
        new = self._only_new(connection, batch)
        if not new:
            return 0
        texts = {item.source for item in new} | {item.group for item in new}
        names = self._database.name_ids(connection, texts)
        taken = sorted(row[0] for row in fetch_rows(connection, self._sql["take_ids"], {"number": len(new)}))
        table = {item_id: _row(item_id, item, names) for item_id, item in zip(taken, new, strict=True)}
        given = column_arrays(_COLUMNS, list(table.values())) | {"now_s": now_s}
        # Only the ids that were inserted are returned. Another process may have added the same item in the
        # meantime; that process also adds its state.
        added = sorted(item_id for (item_id,) in fetch_rows(connection, self._sql["add_items"], given))
        states = [(item_id, *table[item_id][3:5]) for item_id in added]
        given = column_arrays(("ids", "sources", "groups"), states) | {"now_s": now_s}
        fetch_rows(connection, self._sql["add_states"], given)
        counts = ItemCounts((source, group, ACTIVE) for _, source, group in states)
        self._database.add_to_tally(connection, counts)
        return len(added)

    def _remove(self, connection: Connection, given: Parameters) -> None:
        dropped = fetch_rows(connection, self._sql["drop_versions"], given)
        sizes = SizeChange(versions=-len(dropped))
        drop_contents(connection, [content_id for (content_id,) in dropped], sizes)
        self._move_in_tally(connection, given, None)
        fetch_rows(connection, self._sql["drop_rest"], given)
        save_size_change(connection, sizes)

    def _note_edits(self, connection: Connection, ids: list[int]) -> None:
        if ids:
            last = self._database.take_numbers(connection, "edit", len(ids))
            numbers = list(range(last - len(ids) + 1, last + 1))
            fetch_rows(connection, self._sql["add_edits"], {"numbers": numbers, "ids": ids})
            fetch_rows(connection, self._sql["trim_edits"], {"last": last, "kept": EDITS_KEPT})


def _row(item_id: int, item: NewItem, names: dict[str, int]) -> Row:
    labels = text_from_mapping(item.labels) if item.labels else None
    place = (item_id, item.key, key_hash(item.key), names[item.source], names[item.group])
    limits = (item.min_interval_s, item.max_interval_s, item.prior_rate_per_s)
    return (*place, item.weight, item.cost, *limits, labels, item.selector, int(item.listed))


class PostgresLeases(SqlLeases[Connection]):
    def _take(self, given: Parameters) -> list[Lease]:
        def work(connection: Connection) -> list[Lease]:
            free = self._ids(connection, "take", given)
            if not free:
                return []
            taken = self._ids(connection, "lease_free", {**given, "ids": free})
            return [lease_from_row(row) for row in self._rows(connection, "read", {"ids": taken})]

        return self._database.write(work)

    def _ids(self, connection: Connection, name: str, given: Parameters) -> list[int]:
        return [item_id for (item_id,) in self._rows(connection, name, given)]
