"""An item that is moved to another store, of any kind, keeps everything that was known of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.stores.backends import BACKENDS, copy_of, ids_of, new_items, poll
from tests.stores.reference.store import ReferenceStore

from afresh.stores.moving import drop_moved, read_records, write_records
from afresh.stores.store import Retention, Store
from afresh.values.errors import UsageError
from afresh.values.items import ItemChange, ItemQuery, NewItem

KINDS = {backend.name: backend for backend in BACKENDS}
RETENTION = Retention(versions=3)


@pytest.fixture
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """Two stores of the given kinds."""
    server = request.getfixturevalue("postgres_url") if "postgres" in request.param else ""
    folders = [tmp_path / name for name in ("from", "to")]
    for folder in folders:
        folder.mkdir()
    opened = [
        KINDS[kind].make(folder, RETENTION, server)
        for kind, folder in zip(request.param, folders, strict=True)
    ]
    with opened[0] as first, opened[1] as second:
        yield first, second
        assert first.upkeep.check() == []
        assert second.upkeep.check() == []


def filled(store: Store) -> None:
    """Items with copies, observations, failures and beliefs; some are paused."""
    store.items.add(new_items(6, weight=2.0, labels={"a": "b"}), 5.0)
    for number in range(5):
        content = f"page {number}".encode()
        poll(store, "k0", 100.0 * (number + 1), changed=True, new_copy=copy_of(content), belief=b"known")
    for number in range(70):  # more than one run of observations
        poll(store, "k1", 10.0 * number + 10.0, validators={"etag": "x"}, new_copy=copy_of(b"page 4"))
    store.items.change(ids_of(store, ["k2"]), ItemChange(status="paused"))


def known(store: Store, key: str) -> dict[str, Any]:
    """Everything about an item but its id."""
    item = store.items.get(key)
    assert item is not None
    seen = list(store.observations.read([item.id]))
    versions = store.copies.versions(item.id)
    (columns,) = [store.plan.columns_of([item.id])]
    copies = [store.copies.get(item.id, version.number) for version in versions]
    (lease,) = store.leases.take([item.id], 1e6, 1.0, any_status=True)
    return {
        "item": {name: getattr(item, name) for name in item.__slots__ if name != "id"},
        "seen": [np.stack([each.time_s, each.elapsed_s, each.changed]).tolist() for each in seen],
        "versions": [(version.number, version.time_s, version.hash) for version in versions],
        "contents": [copy.content for copy in copies if copy],
        "belief": columns.beliefs,
        "validators": lease.validators,
    }


MOVES = (("sqlite", "sqlite"), ("sqlite", "postgres"), ("postgres", "sqlite"), ("memory", "memory"))


@pytest.mark.parametrize("stores", MOVES, indirect=True, ids="-".join)
def test_everything_that_is_known_of_items_moves_along(stores: tuple[Store, Store]) -> None:
    old, new = stores
    filled(old)
    new.items.add([NewItem("other", "shop", "host9")], 0.0)
    poll(new, "other", 7.0, new_copy=copy_of(b"page 4"))  # content that both stores have
    keys = ["k0", "k1", "k2", "k3"]
    before = {key: known(old, key) for key in keys[:3]}  # "k3" was never polled: it is new there too
    ids = ids_of(old, keys)
    assert write_records(new, read_records(old, ids), 1000.0) == 4
    told = len(old.feed.read().entries)
    drop_moved(old, ids)
    assert len(old.feed.read().entries) == told  # for those who follow the feed, nothing was removed
    assert {key: known(new, key) for key in keys[:3]} == before
    counts = {(count.group, count.status): count.items for count in new.items.counts()}
    assert counts["host2", "paused"] == 1
    assert [item.key for item in old.items.page(ItemQuery(), 10).items] == ["k4", "k5"]


@pytest.mark.parametrize("stores", [("sqlite", "sqlite")], indirect=True, ids="-".join)
def test_a_move_that_was_interrupted_is_done_again(stores: tuple[Store, Store]) -> None:
    old, new = stores
    filled(old)
    records = read_records(old, ids_of(old, ["k0", "k1"]))
    new.items.add(new_items(1), 0.0)  # as if the process had ended before it wrote what is known
    assert write_records(new, records, 1000.0) == 2
    poll(new, "k0", 2000.0)
    assert write_records(new, records, 3000.0) == 0  # the item was polled here since
    item = new.items.get("k0")
    assert item is not None
    assert (item.polls, item.polled_s) == (6, 2000.0)


def test_other_stores_cannot_move_items() -> None:
    with ReferenceStore() as store, pytest.raises(UsageError, match="only between stores in SQLite"):
        read_records(store, [1])
