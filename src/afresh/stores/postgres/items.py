"""Which items there are: register, change, remove, find."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any

from afresh.stores.polls import Tally
from afresh.stores.postgres.arrays import arrays
from afresh.stores.postgres.contents import Growth, drop_contents, keep_growth
from afresh.stores.postgres.counters import take_numbers
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.names import name_ids
from afresh.stores.postgres.pages import page
from afresh.stores.postgres.queries import load_blocks
from afresh.stores.postgres.tally import add_to_tally
from afresh.stores.rows import ACTIVE, STATUS_CODE, Row, item_from_row, text_from_mapping
from afresh.stores.store import EDITS_KEPT
from afresh.stores.texts import is_storable
from afresh.values.errors import InputError
from afresh.values.items import STATUSES, Item, ItemChange, ItemCount, ItemPage, ItemQuery, NewItem
from afresh.values.stored import Edits

_SQL = load_blocks("items.sql")
_BATCH = 10_000
_NEW = (
    "ids",
    "keys",
    "hashes",
    "sources",
    "groups",
    "weights",
    "costs",
    "least",
    "most",
    "priors",
    "labels",
    "selectors",
)


class PostgresItems:
    """``Items`` in PostgreSQL."""

    def __init__(self, database: PostgresDatabase) -> None:
        """On one database."""
        self._database = database

    def add(self, items: Iterable[NewItem], now_s: float) -> int:
        """Register the unknown ones."""
        new, rest = 0, iter(items)
        while batch := list(islice(rest, _BATCH)):
            new += self._database.write(lambda c, batch=batch: _add_batch(c, batch, now_s))  # type: ignore[misc]
        return new

    def change(self, keys: Sequence[str], change: ItemChange) -> tuple[str, ...]:
        """Apply one change to many."""

        def work(connection: Connection) -> tuple[str, ...]:
            ids = _locked(connection, keys)
            given = _parameters(change, list(ids.values()))
            crossed = rows(connection, _SQL["crossed"], given)
            if crossed:
                raise InputError(f"item {crossed[0][0]!r}: min_interval_s would be more than max_interval_s")
            if change.status is not None:
                _move_in_tally(connection, given["ids"], STATUS_CODE[change.status])
            rows(connection, _SQL["change_items"], given)
            rows(connection, _SQL["change_states"], given)
            _note_edits(connection, given["ids"])
            return tuple(key for key in keys if key not in ids)

        return self._database.write(work)

    def remove(self, keys: Sequence[str], now_s: float, *, announce: bool = False) -> tuple[str, ...]:
        """Forget items, their copies and their history."""

        def work(connection: Connection) -> tuple[str, ...]:
            ids = _locked(connection, keys)
            given = {"ids": list(ids.values()), "now_s": now_s}
            if announce:
                rows(connection, _SQL["announce_removal"], given)
            growth = Growth()
            dropped = [content_id for (content_id,) in rows(connection, _SQL["drop_versions"], given)]
            growth.versions -= len(dropped)
            drop_contents(connection, dropped, growth)
            _move_in_tally(connection, list(ids.values()), None)
            rows(connection, _SQL["drop_rest"], given)
            keep_growth(connection, growth)
            _note_edits(connection, list(ids.values()))
            return tuple(key for key in keys if key not in ids)

        return self._database.write(work)

    def get(self, key: str) -> Item | None:
        """By key."""
        if not is_storable(key):
            return None
        given = {"hash": key_hash(key)}
        found = self._database.read(lambda connection: rows(connection, _SQL["get"], given))
        return item_from_row(found[0]) if found else None

    def by_id(self, ids: Sequence[int]) -> list[Item]:
        """By id."""
        given = {"ids": list(ids)}
        return [item_from_row(row) for row in self._database.read(lambda c: rows(c, _SQL["by_id"], given))]

    def ids(self, keys: Sequence[str]) -> dict[str, int]:
        """Ids of keys."""
        return self._database.read(lambda connection: _ids(connection, keys))

    def page(self, query: ItemQuery, limit: int, cursor: str | None = None) -> ItemPage:
        """A page."""
        return page(self._database, query, limit, cursor)

    def due(self, now_s: float, limit: int) -> list[int]:
        """The longest due."""
        given = {"now_s": now_s, "limit": limit}
        return [item_id for (item_id,) in self._database.read(lambda c: rows(c, _SQL["due"], given))]

    def counts(self) -> list[ItemCount]:
        """From the tally."""
        found = self._database.read(lambda connection: rows(connection, _SQL["counts"]))
        return [ItemCount(source, group, STATUSES[code], items) for source, group, code, items in found]

    def edits(self, after: int) -> Edits:
        """From the journal of edits."""

        def work(connection: Connection) -> Edits:
            ((first, last),) = rows(connection, _SQL["edit_range"])
            ids = rows(connection, _SQL["edits"], {"after": after})
            complete = after >= last or (first is not None and after >= first - 1)
            return Edits(last, tuple(item_id for (item_id,) in ids), complete)

        return self._database.snapshot(work)


def key_hash(key: str) -> bytes:
    """What a key is found by: BLAKE2b, 128 bits.

    >>> key_hash("").hex()
    'cae66941d9efbd404e4d88758ea67670'
    """
    return blake2b(key.encode(), digest_size=16).digest()


def _add_batch(connection: Connection, batch: list[NewItem], now_s: float) -> int:
    known = _ids(connection, [item.key for item in batch])
    fresh: dict[str, NewItem] = {}
    for item in batch:
        if item.key not in known:
            fresh.setdefault(item.key, item)
    if not fresh:
        return 0
    names = name_ids(
        connection, {item.source for item in fresh.values()} | {item.group for item in fresh.values()}
    )
    ids = sorted(item_id for (item_id,) in rows(connection, _SQL["take_ids"], {"number": len(fresh)}))
    table = {item_id: _row(item_id, item, names) for item_id, item in zip(ids, fresh.values(), strict=True)}
    given = arrays(_NEW, list(table.values())) | {"now_s": now_s}
    # What another worker registered meanwhile is its own.
    added = sorted(item_id for (item_id,) in rows(connection, _SQL["add_items"], given))
    states = [(item_id, table[item_id][3], table[item_id][4]) for item_id in added]
    rows(connection, _SQL["add_states"], arrays(("ids", "sources", "groups"), states) | {"now_s": now_s})
    add_to_tally(connection, Tally((source, group, ACTIVE) for _, source, group in states))
    return len(added)


def _row(item_id: int, item: NewItem, names: dict[str, int]) -> Row:
    labels = text_from_mapping(item.labels) if item.labels else None
    place = (item_id, item.key, key_hash(item.key), names[item.source], names[item.group])
    limits = (item.min_interval_s, item.max_interval_s, item.prior_rate_per_s)
    return (*place, item.weight, item.cost, *limits, labels, item.selector)


def _ids(connection: Connection, keys: Sequence[str]) -> dict[str, int]:
    hashes = [key_hash(key) for key in keys if is_storable(key)]
    return dict(rows(connection, _SQL["ids"], {"hashes": hashes}))


def _locked(connection: Connection, keys: Sequence[str]) -> dict[str, int]:
    """The ids of the known keys, looked up again once nobody else can touch their items."""
    ids = list(_ids(connection, keys).values())
    rows(connection, _SQL["lock"], {"ids": ids})
    return _ids(connection, keys)


def _parameters(change: ItemChange, ids: list[int]) -> dict[str, Any]:
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
        "ids": ids,
    }


def _move_in_tally(connection: Connection, ids: list[int], status: int | None) -> None:
    """These items are about to get another status, or to go."""
    tally = Tally()
    for source, group, old, items in rows(connection, _SQL["count_ids"], {"ids": ids}):
        tally[source, group, old] -= items
        if status is not None:
            tally[source, group, status] += items
    add_to_tally(connection, tally)


def _note_edits(connection: Connection, ids: list[int]) -> None:
    if ids:
        last = take_numbers(connection, "edit", len(ids))
        numbers = list(range(last - len(ids) + 1, last + 1))
        rows(connection, _SQL["add_edits"], {"numbers": numbers, "ids": ids})
        rows(connection, _SQL["trim_edits"], {"last": last, "kept": EDITS_KEPT})
