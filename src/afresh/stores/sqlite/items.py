"""Which items there are: register, change, remove, search."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import islice

from afresh.stores.polls import Tally
from afresh.stores.rows import ACTIVE, STATUS_CODE, item_from_row, text_from_mapping
from afresh.stores.sqlite.contents import drop_contents
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.names import name_ids
from afresh.stores.sqlite.pages import page
from afresh.stores.sqlite.queries import load_blocks
from afresh.stores.sqlite.rows import json_list
from afresh.stores.sqlite.tally import add_to_tally
from afresh.stores.store import EDITS_KEPT
from afresh.stores.texts import is_storable
from afresh.values.errors import InputError
from afresh.values.items import (
    STATUSES,
    Item,
    ItemChange,
    ItemCount,
    ItemPage,
    ItemQuery,
    NewItem,
)
from afresh.values.stored import Edits

_SQL = load_blocks("items.sql")
_BATCH = 10_000


class SqliteItems:
    """``Items`` in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        """On one database."""
        self._database = database

    def add(self, items: Iterable[NewItem], now_s: float) -> int:
        """Register the unknown ones."""
        new, rest = 0, iter(items)
        while batch := list(islice(rest, _BATCH)):
            with self._database.write() as connection:
                new += _add_batch(connection, batch, now_s)
        return new

    def change(self, keys: Sequence[str], change: ItemChange) -> tuple[str, ...]:
        """Apply one change to many."""
        with self._database.write() as connection:
            ids = _ids(connection, keys)
            wanted = json_list(ids.values())
            _check_intervals(connection, wanted, change)
            if change.status is not None:
                _move_in_tally(connection, wanted, STATUS_CODE[change.status])
            connection.execute(_SQL["change_state"], _parameters(change, wanted))
            if change.labels is not None or change.selector is not None:
                labels = None if change.labels is None else text_from_mapping(change.labels)
                given = {"labels": labels, "selector": change.selector, "ids": wanted}
                connection.execute(_SQL["change_item"], given)
            _note_edits(connection, wanted)
        return tuple(key for key in keys if key not in ids)

    def remove(self, keys: Sequence[str], now_s: float, *, announce: bool = False) -> tuple[str, ...]:
        """Forget items, their copies and their history."""
        with self._database.write() as connection:
            ids = _ids(connection, keys)
            wanted = json_list(ids.values())
            if announce:
                connection.execute(_SQL["announce_removal"], {"now_s": now_s, "ids": wanted})
            _move_in_tally(connection, wanted, None)
            drop_contents(
                connection, [row[0] for row in connection.execute(_SQL["drop_versions"], (wanted,))]
            )
            connection.execute(_SQL["drop_items"], (wanted,))
            _note_edits(connection, wanted)
        return tuple(key for key in keys if key not in ids)

    def get(self, key: str) -> Item | None:
        """By key."""
        with self._database.read() as connection:
            row = connection.execute(_SQL["get"], (key,)).fetchone() if is_storable(key) else None
        return None if row is None else item_from_row(row)

    def by_id(self, ids: Sequence[int]) -> list[Item]:
        """By id."""
        with self._database.read() as connection:
            return [item_from_row(row) for row in connection.execute(_SQL["by_id"], (json_list(ids),))]

    def ids(self, keys: Sequence[str]) -> dict[str, int]:
        """Ids of keys."""
        with self._database.read() as connection:
            return _ids(connection, keys)

    def page(self, query: ItemQuery, limit: int, cursor: str | None = None) -> ItemPage:
        """A page."""
        return page(self._database, query, limit, cursor)

    def due(self, now_s: float, limit: int) -> list[int]:
        """The longest due."""
        with self._database.read() as connection:
            return [row[0] for row in connection.execute(_SQL["due"], (now_s, now_s, limit))]

    def counts(self) -> list[ItemCount]:
        """From the tally."""
        with self._database.read() as connection:
            rows = connection.execute(_SQL["counts"]).fetchall()
        return [ItemCount(source, group, STATUSES[code], items) for source, group, code, items in rows]

    def edits(self, after: int) -> Edits:
        """From the journal of edits."""
        with self._database.read() as connection:
            first, last = connection.execute(_SQL["edit_range"]).fetchone()
            ids = connection.execute(_SQL["edits"], (after,)).fetchall()
        complete = after >= last or (first is not None and after >= first - 1)
        return Edits(last, tuple(row[0] for row in ids), complete)


def _add_batch(connection: sqlite3.Connection, batch: list[NewItem], now_s: float) -> int:
    names = name_ids(connection, {item.source for item in batch} | {item.group for item in batch})
    known = _ids(connection, [item.key for item in batch])
    fresh: dict[str, NewItem] = {}
    for item in batch:
        if item.key not in known:
            fresh.setdefault(item.key, item)
    first_id = connection.execute(_SQL["last_id"]).fetchone()[0] + 1
    tally = Tally()
    keys, states = [], []
    for item_id, item in enumerate(fresh.values(), first_id):
        source, group = names[item.source], names[item.group]
        tally[source, group, ACTIVE] += 1
        numbers = (item.weight, item.cost, item.min_interval_s, item.max_interval_s, item.prior_rate_per_s)
        labels = text_from_mapping(item.labels) if item.labels else None
        keys.append((item_id, item.key, labels, now_s, item.selector))
        states.append((item_id, source, group, ACTIVE, *numbers, now_s))
    connection.executemany(_SQL["add_item"], keys)
    connection.executemany(_SQL["add_state"], states)
    add_to_tally(connection, tally)
    return len(fresh)


def _ids(connection: sqlite3.Connection, keys: Sequence[str]) -> dict[str, int]:
    # What cannot be stored is not there; SQLite's JSON would end it at NUL and find another key.
    wanted = json_list(key for key in keys if is_storable(key))
    return dict(connection.execute(_SQL["ids"], (wanted,)).fetchall())


def _check_intervals(connection: sqlite3.Connection, ids: str, change: ItemChange) -> None:
    row = connection.execute(_SQL["crossed"], (ids, change.min_interval_s, change.max_interval_s)).fetchone()
    if row is not None:
        raise InputError(f"item {row[0]!r}: min_interval_s would be more than max_interval_s")


def _parameters(change: ItemChange, ids: str) -> dict[str, object]:
    return {
        "weight": change.weight,
        "cost": change.cost,
        "min_interval_s": change.min_interval_s,
        "max_interval_s": change.max_interval_s,
        "prior_rate_per_s": change.prior_rate_per_s,
        "status": None if change.status is None else STATUS_CODE[change.status],
        "due_s": change.due_s,
        "ids": ids,
    }


def _move_in_tally(connection: sqlite3.Connection, ids: str, status: int | None) -> None:
    """These items are about to get another status, or to go."""
    tally = Tally()
    for source, group, old, items in connection.execute(_SQL["count_ids"], (ids,)):
        tally[source, group, old] -= items
        if status is not None:
            tally[source, group, status] += items
    add_to_tally(connection, tally)


def _note_edits(connection: sqlite3.Connection, ids: str) -> None:
    connection.execute(_SQL["add_edits"], (ids,))
    connection.execute(_SQL["trim_edits"], (EDITS_KEPT,))
