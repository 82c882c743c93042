"""Moves items from one store to another, with everything that is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from afresh.stores.item_record import ItemRecord
from afresh.stores.sql.moves import SqlMoves
from afresh.stores.store import Store
from afresh.values.errors import UsageError

AT_ONCE = 200
"""How many items are moved in one step: their copies are in memory meanwhile."""


def read_records(store: Store, ids: Sequence[int]) -> list[ItemRecord]:
    """Return everything that the store knows of these items; unknown ids are left out."""
    return _moves(store).read(ids)


def write_records(store: Store, records: Sequence[ItemRecord], now_s: float) -> int:
    """Add items with everything that is known of them, and return how many were written. An item that was
    polled in this store stays as it is. No run may poll the items meanwhile."""
    return _moves(store).write(records, now_s)


def drop_moved(store: Store, ids: Sequence[int]) -> None:
    """Remove items that another store has now. For those who follow the feed, they are not removed."""
    _moves(store).drop(ids)


def _moves(store: Store) -> SqlMoves[Any]:
    found = getattr(store, "moves", None)
    if not isinstance(found, SqlMoves):
        raise UsageError("items can be moved only between stores in SQLite and PostgreSQL")
    return found
