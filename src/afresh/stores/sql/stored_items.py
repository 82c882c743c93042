"""Which items there are, in a SQL database: add, change, remove and find them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice

from afresh.stores.rows import STATUS_CODE, item_from_row, text_from_mapping
from afresh.stores.sql.database import ConnectionT, ItemCounts, Parameters, SqlGroup
from afresh.stores.store import StoredItems
from afresh.values.errors import InputError
from afresh.values.items import STATUSES, Item, ItemChange, ItemCount, NewItem
from afresh.values.storable_text import is_storable
from afresh.values.stored import Edits

_BATCH = 10_000


class SqlItems(SqlGroup[ConnectionT], StoredItems):
    """Implements ``StoredItems``, except for what the databases' different tables of items ask for."""

    file = "stored_items"

    def add(self, items: Iterable[NewItem], now_s: float) -> int:
        added, rest = 0, iter(items)
        while batch := list(islice(rest, _BATCH)):
            added += self._database.write(partial(self._add_batch, batch=batch, now_s=now_s))
        return added

    def change(self, keys: Sequence[str], change: ItemChange) -> tuple[str, ...]:
        def work(connection: ConnectionT) -> tuple[str, ...]:
            ids = self._lock_ids(connection, keys)
            given = _change_parameters(change) | {"ids": self._database.as_list(ids.values())}
            crossed = self._database.rows(connection, self._sql["crossed"], given)
            if crossed:
                raise InputError(f"item {crossed[0][0]!r}: min_interval_s would be more than max_interval_s")
            if change.status is not None:
                self._move_in_tally(connection, given, STATUS_CODE[change.status])
            for name in ("change_item", "change_state"):
                self._database.rows(connection, self._sql[name], given)
            self._note_edits(connection, list(ids.values()))
            return tuple(key for key in keys if key not in ids)

        return self._database.write(work)

    def remove(self, keys: Sequence[str], now_s: float, *, announce: bool = False) -> tuple[str, ...]:
        def work(connection: ConnectionT) -> tuple[str, ...]:
            ids = self._lock_ids(connection, keys)
            given = {"ids": self._database.as_list(ids.values()), "now_s": now_s}
            if announce:
                self._database.rows(connection, self._sql["announce_removal"], given)
            self._remove(connection, given)
            self._note_edits(connection, list(ids.values()))
            return tuple(key for key in keys if key not in ids)

        return self._database.write(work)

    def get(self, key: str) -> Item | None:
        if not is_storable(key):
            return None
        found = self._database.fetch(self._sql["get"], {"key": self._database.key_parameter(key)})
        return item_from_row(found[0]) if found else None

    def by_id(self, ids: Sequence[int]) -> list[Item]:
        found = self._database.fetch(self._sql["by_id"], {"ids": self._database.as_list(ids)})
        return [item_from_row(row) for row in found]

    def ids(self, keys: Sequence[str]) -> dict[str, int]:
        return self._database.read(lambda connection: self._ids(connection, keys))

    def due(self, now_s: float, limit: int) -> list[int]:
        found = self._database.fetch(self._sql["due"], {"now_s": now_s, "limit": limit})
        return [item_id for (item_id,) in found]

    def counts(self) -> list[ItemCount]:
        found = self._database.fetch(self._sql["counts"])
        return [ItemCount(source, group, STATUSES[code], items) for source, group, code, items in found]

    def edits(self, after: int) -> Edits:
        def work(connection: ConnectionT) -> Edits:
            ((first, last),) = self._database.rows(connection, self._sql["edit_range"], {})
            ids = self._database.rows(connection, self._sql["edits"], {"after": after})
            complete = after >= last or (first is not None and after >= first - 1)
            return Edits(last, tuple(item_id for (item_id,) in ids), complete)

        return self._database.snapshot(work)

    @abstractmethod
    def _add_batch(self, connection: ConnectionT, batch: list[NewItem], now_s: float) -> int:
        """Add those of a batch that are new, and return how many."""

    @abstractmethod
    def _remove(self, connection: ConnectionT, given: Parameters) -> None:
        """Remove the items ``ids`` and everything that belongs to them."""

    @abstractmethod
    def _note_edits(self, connection: ConnectionT, ids: list[int]) -> None:
        """Add these items to the journal of edits, and cut it at its beginning."""

    @abstractmethod
    def _lock_ids(self, connection: ConnectionT, keys: Sequence[str]) -> dict[str, int]:
        """Return the ids of the known keys, once nobody else can change these items."""

    def _ids(self, connection: ConnectionT, keys: Iterable[str]) -> dict[str, int]:
        # What cannot be stored is not there; SQLite's JSON would cut it at NUL and find another key.
        wanted = [self._database.key_parameter(key) for key in keys if is_storable(key)]
        given = {"keys": self._database.as_list(wanted)}
        return dict(self._database.rows(connection, self._sql["ids"], given))

    def _only_new(self, connection: ConnectionT, batch: list[NewItem]) -> list[NewItem]:
        """Return the items of a batch whose keys are unknown, the first of each key."""
        known = self._ids(connection, [item.key for item in batch])
        new: dict[str, NewItem] = {}
        for item in batch:
            if item.key not in known:
                new.setdefault(item.key, item)
        return list(new.values())

    def _move_in_tally(self, connection: ConnectionT, given: Parameters, status: int | None) -> None:
        """Count the items ``ids`` under another status, or no longer where it is None."""
        counts = ItemCounts()
        for source, group, old, items in self._database.rows(connection, self._sql["count_ids"], given):
            counts[source, group, old] -= items
            if status is not None:
                counts[source, group, status] += items
        self._database.add_to_tally(connection, counts)


def _change_parameters(change: ItemChange) -> dict[str, object]:
    return {
        "weight": change.weight,
        "cost": change.cost,
        "min_interval_s": change.min_interval_s,
        "max_interval_s": change.max_interval_s,
        "prior_rate_per_s": change.prior_rate_per_s,
        "labels": None if change.labels is None else text_from_mapping(change.labels),
        "selector": change.selector,
        "status": None if change.status is None else STATUS_CODE[change.status],
        "due_s": change.due_s,
    }
