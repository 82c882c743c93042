"""Copies in a folder or an object store, with SQLite and PostgreSQL: written first, deleted last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest
from tests.stores.backends import BACKENDS, Backend, copy_of, ids_of, new_items, seen

from afresh.stores.codecs import content_hash
from afresh.stores.object_copies import ObjectCopies
from afresh.stores.opening import CopiesPlace, open_store
from afresh.stores.sql.store_parts import SqlStore
from afresh.stores.sql.unnamed_objects import DELETING, pack_deletion
from afresh.stores.store import Retention, Store
from afresh.values.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreMissingError,
    StoreReadOnlyError,
    UsageError,
)

GRACE_S = 3600.0
NOW_S = 4e9  # the objects of these tests are written now, and this is long afterwards


@pytest.fixture(
    params=[each for each in BACKENDS if each.name in ("sqlite", "postgres")], ids=lambda b: b.name
)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore]:  # type: ignore[type-arg]
    backend: Backend = request.param
    server = request.getfixturevalue("postgres_url") if backend.name == "postgres" else ""
    with backend.make(tmp_path, Retention(versions=1), server) as opened:
        assert isinstance(opened, SqlStore)
        opened.keep_copies_in(ObjectCopies("file:copies", base=tmp_path, grace_s=GRACE_S))
        opened.items.add(new_items(2), 0.0)
        yield opened


def save(store: Store, key: str, content: bytes, time_s: float) -> int:
    """Commit a new copy of an item, and return the item's id."""
    (item_id,) = ids_of(store, [key])
    (lease,) = store.leases.take([item_id], time_s, 60.0)
    assert store.commit([seen(lease, time_s, changed=True, new_copy=copy_of(content))]) == []
    return item_id


def objects_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "copies").rglob("*.zst")}


def test_a_copy_is_an_object_under_its_hash(store: Store, tmp_path: Path) -> None:
    first, second = save(store, "k0", b"same" * 1000, 1.0), save(store, "k1", b"same" * 1000, 2.0)
    (name,) = objects_in(tmp_path)
    assert name == f"{content_hash(b'same' * 1000).hex()}.zst"
    for item_id in (first, second):
        copy = store.copies.get(item_id)
        assert copy is not None
        assert copy.content == b"same" * 1000
    sizes = store.upkeep.stats()
    assert (sizes.contents, sizes.content_bytes, sizes.stored_bytes) == (1, 4000, 0)
    assert store.upkeep.check() == []


def test_an_object_that_is_lost_or_damaged_is_found(store: Store, tmp_path: Path) -> None:
    item_id = save(store, "k0", b"a page", 1.0)
    (path,) = (tmp_path / "copies").rglob("*.zst")
    whole = path.read_bytes()
    path.write_bytes(whole[:-2] + b"xx")
    assert any("content" in line for line in store.upkeep.check())
    path.unlink()
    (problem,) = store.upkeep.check()
    assert "the copies in file:copies: an object is missing" in problem
    with pytest.raises(StoreCorruptError, match="an object is missing"):
        store.copies.get(item_id)


def test_an_object_is_deleted_when_nothing_has_named_it_for_the_grace_period(
    store: Store, tmp_path: Path
) -> None:
    save(store, "k0", b"old", 1.0)
    save(store, "k0", b"new", 2.0)
    save(store, "k1", b"other", 3.0)
    delete = store.upkeep.delete_unnamed_copies
    assert delete(tmp_path.stat().st_mtime) == 0, "young objects may be those of a commit under way"
    assert delete(NOW_S) == 0, "it was named a moment ago"
    assert delete(NOW_S + GRACE_S / 2) == 0
    assert len(objects_in(tmp_path)) == 3
    assert delete(NOW_S + GRACE_S) == 1
    assert objects_in(tmp_path).keys() == {f"{content_hash(each).hex()}.zst" for each in (b"new", b"other")}
    assert store.upkeep.check() == []
    assert store.state.get(DELETING) is None


def test_a_content_that_came_back_is_kept(store: Store) -> None:
    save(store, "k0", b"old", 1.0)
    save(store, "k0", b"new", 2.0)
    assert store.upkeep.delete_unnamed_copies(NOW_S) == 0
    save(store, "k1", b"old", 3.0)
    assert store.upkeep.delete_unnamed_copies(NOW_S + 2 * GRACE_S) == 0
    assert store.upkeep.check() == []


def test_a_commit_waits_while_its_object_is_deleted(store: Store, tmp_path: Path) -> None:
    """Between the look at the rows and the deletion a writer brings the content back."""
    store.state.set({DELETING: pack_deletion([content_hash(b"back")], NOW_S)})
    with pytest.raises(StoreLockedError, match="are being deleted: try again"):
        save(store, "k0", b"back", 1.0)
    save(store, "k1", b"another", 2.0)
    assert store.upkeep.delete_unnamed_copies(NOW_S + 1) == 0, "another process deletes"
    assert len(objects_in(tmp_path)) == 2
    # The process that began was killed: a later pass ends what it began, and commits go on.
    store.upkeep.delete_unnamed_copies(NOW_S + 3600)
    assert len(objects_in(tmp_path)) == 1
    (item_id,) = ids_of(store, ["k0"])
    (lease,) = store.leases.take([item_id], 100.0, 60.0)
    store.commit([seen(lease, 100.0, changed=True, new_copy=copy_of(b"back"))])
    assert store.upkeep.check() == []


def test_nothing_is_committed_when_objects_cannot_be_written(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item_id = save(store, "k0", b"first", 1.0)

    def refuse(*_: object, **__: object) -> None:
        raise obstore.exceptions.GenericError("LocalFileSystem error: No space left on device (os error 28)")

    monkeypatch.setattr(obstore, "put", refuse)
    with pytest.raises(StoreFullError, match="the copies in file:copies: no space is left"):
        save(store, "k0", b"second", 2.0)
    monkeypatch.undo()
    copy = store.copies.get(item_id)
    assert copy is not None
    assert copy.content == b"first"
    (item,) = store.items.by_id([item_id])
    assert item is not None
    assert item.polls == 1
    assert len(objects_in(tmp_path)) == 1


def test_without_the_setting_objects_cannot_be_read(tmp_path: Path) -> None:
    place = CopiesPlace("file:copies", GRACE_S)
    with open_store("sqlite:a.db", base=tmp_path, copies=place) as opened:
        opened.items.add(new_items(1), 0.0)
        item_id = save(opened, "k0", b"page", 1.0)
    with open_store("sqlite:a.db", base=tmp_path) as opened:
        with pytest.raises(StoreMissingError, match=r"set \[store\] copies to its address"):
            opened.copies.get(item_id)
        assert len(opened.upkeep.check()) == 1
        assert opened.upkeep.delete_unnamed_copies(NOW_S) == 0
    with open_store("sqlite:a.db", base=tmp_path, copies=place) as opened:
        assert opened.upkeep.check() == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Permission denied (os error 13)", StoreReadOnlyError),
        ("Client error 403: AccessDenied", StoreReadOnlyError),
        ("QuotaExceeded", StoreFullError),
        ("Connection refused", StoreError),
    ],
)
def test_errors_of_object_stores_are_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, kind: type[StoreError]
) -> None:

    def fail(*_: object, **__: object) -> None:
        raise obstore.exceptions.GenericError(text)

    objects = ObjectCopies("file:copies", base=tmp_path)
    monkeypatch.setattr(obstore, "put", fail)
    with pytest.raises(StoreError, match="the copies in file:copies") as raised:
        objects.put({bytes(32): b"data"})
    assert type(raised.value) is kind


def test_wrong_addresses_are_refused(tmp_path: Path) -> None:
    for address in ("copies", "ftp://host/x", "s3://", "file:"):
        with pytest.raises(
            UsageError, match=r"\[store\] copies '.*': give s3://BUCKET/PREFIX or file:FOLDER"
        ):
            ObjectCopies(address, base=tmp_path)
