"""Care for stores, and stores as a whole."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.stores.backends import Backend, copy_of, ids_of, new_items, poll

from afresh.stores.opening import open_store
from afresh.stores.store import Retention, Store
from afresh.values.errors import InputError, OutputError, StoreError, UsageError
from afresh.values.outcome import Spent


def test_stats_count_what_is_there(store: Store) -> None:
    store.items.add(new_items(3), 0.0)
    poll(store, "k0", 1.0, new_copy=copy_of(b"x" * 5000), event="new")
    store.notices.add([2], 1.0)
    store.leases.take([3], 1.0, 9.0)
    stats = store.upkeep.stats()
    assert (stats.items, stats.leases, stats.versions, stats.contents) == (3, 1, 1, 1)
    assert (stats.content_bytes, stats.events, stats.notices) == (5000, 1, 1)
    assert 0 < stats.stored_bytes <= 5000


def contents_of(store: Store) -> list[list[bytes]]:
    """The contents of the kept versions of each item, oldest first."""
    ids = sorted(store.items.ids([f"k{number}" for number in range(9)]).values())
    found = []
    for item_id in ids:
        numbers = [version.number for version in reversed(store.copies.versions(item_id))]
        copies = [store.copies.get(item_id, number) for number in numbers]
        found.append([copy.content for copy in copies if copy is not None])
    return found


def test_old_versions_are_dropped_oldest_first_but_never_the_newest(store: Store) -> None:
    store.items.add(new_items(3), 0.0)
    payloads = [random.Random(number).randbytes(2000) for number in range(5)]
    for time_s, (key, payload) in enumerate(zip(["k0", "k1", "k0", "k1", "k2"], payloads, strict=True), 1):
        poll(store, key, float(time_s), new_copy=copy_of(payload))
    assert store.upkeep.drop_old_versions(0) == 0
    assert store.upkeep.drop_old_versions(1) == 1
    assert contents_of(store) == [[payloads[2]], [payloads[1], payloads[3]], [payloads[4]]]
    assert store.upkeep.drop_old_versions(10**9) == 1
    assert store.upkeep.drop_old_versions(10**9) == 0
    assert contents_of(store) == [[payloads[2]], [payloads[3]], [payloads[4]]]
    assert (store.upkeep.stats().versions, store.upkeep.stats().contents) == (3, 3)
    poll(store, "k0", 9.0, new_copy=copy_of(b"later"))
    assert contents_of(store)[0] == [payloads[2], b"later"]


def test_used_bytes_grow_with_copies_and_shrink_when_these_are_dropped(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    empty = store.upkeep.used_bytes()
    contents = [random.Random(number).randbytes(300_000) for number in range(2)]
    for time_s, content in enumerate(contents, 1):
        poll(store, "k0", float(time_s), new_copy=copy_of(content))
    both = store.upkeep.used_bytes()
    assert 590_000 <= both - empty < 750_000
    store.upkeep.drop_old_versions(1)
    assert 270_000 <= both - store.upkeep.used_bytes() <= 330_000


def test_vacuum_leaves_everything_as_it_was(store: Store) -> None:
    store.items.add(new_items(50), 0.0)
    for number in range(50):
        poll(store, f"k{number}", 1.0, new_copy=copy_of(bytes([number]) * 1000))
    store.items.remove(ids_of(store, [f"k{number}" for number in range(1, 50)]), 2.0)
    store.upkeep.vacuum()
    assert store.upkeep.stats().free_bytes == 0
    copy = store.copies.get(1)
    assert copy is not None
    assert copy.content == b"\0" * 1000


def test_a_backup_is_a_store(backend: Backend, store: Store, tmp_path: Path) -> None:
    store.items.add(new_items(3), 0.0)
    poll(store, "k0", 1.0, new_copy=copy_of(b"kept"))
    target = tmp_path / "backup.db"
    if not backend.can_back_up:
        with pytest.raises(StoreError, match="no file to copy"):
            store.upkeep.backup(target)
        return
    target.write_bytes(b"an older file")
    store.upkeep.backup(target)
    poll(store, "k0", 2.0, new_copy=copy_of(b"later"))
    assert {path.name for path in tmp_path.iterdir() if "backup" in path.name} == {"backup.db"}
    with open_store(str(target), create=False) as restored:
        copy = restored.copies.get(1)
        assert copy is not None
        assert copy.content == b"kept"
        assert restored.upkeep.check() == []
    with pytest.raises(OutputError, match="cannot be written"):
        store.upkeep.backup(tmp_path / "nowhere" / "backup.db")
    if (tmp_path / "store.db").exists():
        with pytest.raises(InputError, match="the store itself"):
            store.upkeep.backup(tmp_path / "store.db")


def test_what_was_written_is_there_when_opened_again(backend: Backend, tmp_path: Path) -> None:
    with backend.open(tmp_path, Retention()) as store:
        store.items.add(new_items(2), 0.0)
        poll(store, "k0", 1.0, new_copy=copy_of(b"a"), belief=b"b")
        (lease,) = store.leases.take([2], 1.0, 60.0)
    with backend.open(tmp_path, Retention()) as store:
        if not backend.persistent:
            assert store.items.counts() == []
            return
        copy = store.copies.get(1)
        assert copy is not None
        assert copy.content == b"a"
        assert store.leases.take([2], 2.0, 60.0) == []
        (newer,) = store.leases.take([2], 61.0, 60.0)
        assert newer.token > lease.token


def test_a_closed_store_says_so(store: Store, backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = backend.open(tmp_path / "other", Retention())
    other.close()
    other.close()
    for use in (
        lambda: other.items.get("k"),
        lambda: other.items.add(new_items(1), 0.0),
        lambda: list(other.plan.columns()),
        lambda: other.commit([]),
        lambda: other.upkeep.stats(),
    ):
        with pytest.raises(StoreError, match="closed"):
            use()
    assert store.items.counts() == []


def test_threads_share_a_store_and_never_an_item(store: Store) -> None:
    store.items.add(new_items(200), 0.0)

    def work(worker: int) -> list[int]:
        done: list[int] = []
        while due := store.items.due(1.0, 7):
            for lease in store.leases.take(due, 1.0, 60.0):
                poll_time = 2.0 + worker
                done.append(lease.item_id)
                item = store.items.get(lease.key)
                assert item is not None
                store.ledger.add("web", poll_time, Spent(requests=1))
        return done

    with ThreadPoolExecutor(4) as pool:
        done = [item_id for ids in pool.map(work, range(4)) for item_id in ids]
    assert sorted(done) == list(range(1, 201))
    assert store.ledger.total(0.0, 60.0).requests == 200


def test_a_store_in_memory_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store("memory:") as store:
        store.items.add(new_items(1), 0.0)
    assert list(tmp_path.iterdir()) == []


def test_addresses_open_the_store_they_name(tmp_path: Path) -> None:
    for url in ("a.db", "sqlite:b.db", f"sqlite://{tmp_path}/c.db"):
        with open_store(url, base=tmp_path) as store:
            assert store.items.counts() == []
    assert {path.name for path in tmp_path.glob("*.db")} == {"a.db", "b.db", "c.db"}
    for url in ("mysql://user:secret@host/db", "memory:x", "sqlite:"):
        with pytest.raises(UsageError, match="sqlite:PATH, postgresql") as caught:
            open_store(url)
        assert "secret" not in str(caught.value)
