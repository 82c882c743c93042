"""What may happen to a file: full disk, no rights, another writer, damage. Said in words, nothing lost."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.nobody import as_nobody
from tests.stores.backends import copy_of, new_items, poll, seen

from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.errors import translate_error
from afresh.stores.sqlite.store import SqliteStore
from afresh.stores.store import Store
from afresh.values.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreMissingError,
    StoreReadOnlyError,
)


def noise(seed: int, size: int) -> bytes:
    """Bytes that do not compress."""
    return random.Random(seed).randbytes(size)


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """As on a full disk: writes beyond ``size`` bytes fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_full_disk_stops_one_commit_and_no_more(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store.db") as store:
        store.items.add(new_items(2), 0.0)
        poll(store, "k0", 1.0, new_copy=copy_of(b"before"))
        (lease,) = store.leases.take([2], 2.0, 60.0)
        outcome = seen(lease, 3.0, new_copy=copy_of(noise(1, 3_000_000)))
        with files_no_larger_than(1_000_000):
            for _ in range(3):
                with pytest.raises(StoreFullError, match=r"store\.db has no space left"):
                    store.commit([outcome])
            copy = store.copies.get(1)
            assert copy is not None
            assert copy.content == b"before"
        assert store.upkeep.check() == []
        assert store.copies.get(2) is None
        assert store.commit([outcome]) == []
        copy = store.copies.get(2)
        assert copy is not None
        assert copy.content == noise(1, 3_000_000)
        assert store.upkeep.check() == []


def test_a_backup_on_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    with SqliteStore(tmp_path / "store.db") as store:
        store.items.add(new_items(1), 0.0)
        poll(store, "k0", 1.0, new_copy=copy_of(noise(2, 500_000)))
        with files_no_larger_than(100_000), pytest.raises(StoreFullError, match="no space left"):
            store.upkeep.backup(tmp_path / "to" / "backup.db")
        assert list((tmp_path / "to").iterdir()) == []
        store.upkeep.backup(tmp_path / "to" / "backup.db")


def test_a_full_disk_on_opening_leaves_no_half_store(tmp_path: Path) -> None:
    with files_no_larger_than(8192), pytest.raises(StoreFullError, match="no space left"):
        SqliteStore(tmp_path / "store.db")
    with SqliteStore(tmp_path / "store.db") as store:
        assert store.items.add(new_items(1), 0.0) == 1


def test_a_file_without_the_right_to_write_can_be_read(open_folder: Path) -> None:
    path = open_folder / "store.db"
    with SqliteStore(path) as store:
        store.items.add(new_items(1), 0.0)
        poll(store, "k0", 1.0, new_copy=copy_of(b"kept"))
    path.chmod(0o444)
    open_folder.chmod(0o555)
    with as_nobody():
        with (
            pytest.raises(StoreReadOnlyError, match="may be read but not written"),
            SqliteStore(path) as store,
        ):
            store.items.add(new_items(2), 0.0)
        with SqliteStore(path, read_only=True) as store:
            copy = store.copies.get(1)
            assert copy is not None
            assert copy.content == b"kept"
            assert [columns.id.tolist() for columns in store.plan.columns()] == [[1]]
            with pytest.raises(StoreReadOnlyError, match="opened for reading only"):
                store.items.add(new_items(2), 0.0)
            with pytest.raises(StoreReadOnlyError, match="opened for reading only"):
                store.upkeep.vacuum()


@pytest.mark.parametrize("log", [None, b""])
def test_a_file_in_a_folder_without_the_right_to_write_can_be_read(
    open_folder: Path, log: bytes | None
) -> None:
    path = open_folder / "store.db"
    with SqliteStore(path) as store:
        store.items.add(new_items(1), 0.0)
    if log is not None:
        path.with_name("store.db-wal").write_bytes(log)
    path.chmod(0o666)
    open_folder.chmod(0o555)
    with as_nobody():
        with pytest.raises(StoreReadOnlyError, match="may be read but not written"):
            SqliteStore(path)
        with SqliteStore(path, read_only=True) as store:
            assert store.items.get("k0") is not None
            assert store.upkeep.check() == []
            os.seteuid(os.getuid())
            # Somebody who may write does: what is read next is not what was read first.
            open_folder.chmod(0o755)
            with SqliteStore(path) as other:
                other.items.add(new_items(3), 0.0)
                assert store.items.get("k2") is not None
            assert store.items.get("k2") is not None


def test_a_log_that_cannot_be_joined_is_said(open_folder: Path) -> None:
    path, log = open_folder / "store.db", open_folder / "store.db-wal"
    with SqliteStore(path) as store:
        store.items.add(new_items(1), 0.0)
        kept = log.read_bytes()
    log.write_bytes(kept)
    path.chmod(0o666)
    open_folder.chmod(0o555)
    with as_nobody(), pytest.raises(StoreReadOnlyError, match=r"store\.db-wal has changes that are not yet"):
        SqliteStore(path, read_only=True)


def test_a_folder_that_cannot_be_written_is_said(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    with as_nobody(), pytest.raises(StoreMissingError, match="cannot be opened"):
        SqliteStore(open_folder / "store.db")
    open_folder.chmod(0o700)
    with as_nobody(), pytest.raises(StoreMissingError, match="cannot be"):
        SqliteStore(open_folder / "store.db", read_only=True)


def test_what_is_not_there_is_not_made_unasked(tmp_path: Path) -> None:
    for given in ({"create": False}, {"read_only": True}):
        with pytest.raises(StoreMissingError, match="there is no store at"):
            SqliteStore(tmp_path / "store.db", **given)  # type: ignore[arg-type]
    with pytest.raises(StoreMissingError, match="cannot be opened"):
        SqliteStore(tmp_path / "nowhere" / "store.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("back", ["the same file", "a backup"])
def test_a_file_that_went_is_said_at_once_and_taken_up_when_it_is_back(tmp_path: Path, back: str) -> None:
    path, aside = tmp_path / "s.db", tmp_path / "aside.db"
    with SqliteStore(path) as store:
        store.items.add(new_items(3), 0.0)
        store.upkeep.backup(tmp_path / "backup.db")
        path.rename(aside)
        with pytest.raises(StoreMissingError, match="deleted or moved"):
            store.items.counts()
        with pytest.raises(StoreMissingError, match="deleted or moved"):
            store.items.add(new_items(4), 1.0)
        assert not path.exists()
        if back == "a backup":
            aside = tmp_path / "backup.db"
            shutil.copy(aside, path)
            with pytest.raises(StoreMissingError, match=r"remove s\.db-wal and s\.db-shm"):
                store.items.counts()
            for ending in ("", "-wal", "-shm"):
                (tmp_path / f"s.db{ending}").unlink()
        aside.rename(path)
        assert sum(count.items for count in store.items.counts()) == 3
        store.items.add(new_items(4), 1.0)
        assert sum(count.items for count in store.items.counts()) == 4
        assert store.upkeep.check() == []


def test_a_process_that_goes_elsewhere_keeps_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with SqliteStore(Path("s.db")) as store:
        monkeypatch.chdir("/")
        store.items.add(new_items(3), 0.0)
        assert sum(count.items for count in store.items.counts()) == 3


def test_a_reader_sees_what_a_writer_commits(tmp_path: Path) -> None:
    with (
        SqliteStore(tmp_path / "store.db") as store,
        SqliteStore(tmp_path / "store.db", read_only=True) as reader,
    ):
        store.items.add(new_items(1), 0.0)
        assert reader.items.ids(["k0"]) == {"k0": 1}


def test_another_writer_is_waited_for_and_then_named(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SqliteStore(path, timeout_s=0.05) as store, closing(sqlite3.connect(path)) as other:
        store.items.add(new_items(1), 0.0)
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLockedError, match="locked by another process"):
            store.items.add(new_items(2), 0.0)
        with pytest.raises(StoreLockedError, match="locked by another process"):
            store.leases.take([1], 0.0, 1.0)
        assert store.items.ids(["k0"]) == {"k0": 1}  # reading goes on
        other.execute("ROLLBACK")
        assert store.items.add(new_items(2), 0.0) == 1


def test_a_file_of_something_else_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"not a database " * 1000)
    with pytest.raises(StoreCorruptError, match="not a store of afresh"):
        SqliteStore(path)
    assert path.read_bytes() == b"not a database " * 1000


def filled(path: Path) -> None:
    """A store of some pages."""
    with SqliteStore(path) as store:
        store.items.add(new_items(2000), 0.0)
        for number in range(20):
            poll(store, f"k{number}", 1.0, new_copy=copy_of(noise(number, 5000)))


def everything(store: Store) -> None:
    """Read all of it."""
    for batch in store.plan.columns():
        for item_id in batch.id.tolist():
            store.copies.get(item_id)


def test_a_truncated_file_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    filled(path)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(StoreCorruptError, match=r"store\.db is damaged"):
        SqliteStore(path)


def test_overwritten_pages_are_found_out(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    filled(path)
    with path.open("r+b") as file:
        # Beyond the pages of the schema, so that the store still opens.
        for page in range(40, path.stat().st_size // 4096, 3):
            file.seek(page * 4096)
            file.write(noise(page, 4096))
    with SqliteStore(path) as store:
        assert any("damaged" in problem for problem in store.upkeep.check())
        with pytest.raises(StoreCorruptError):
            everything(store)


def test_a_content_changed_behind_our_back_is_not_handed_out(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    filled(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute(
            "UPDATE payload SET data = (SELECT data FROM payload WHERE content_id = 2) WHERE content_id = 1"
        )
        other.execute("UPDATE payload SET data = x'00' WHERE content_id = 3")
        other.commit()
    with SqliteStore(path) as store:
        with pytest.raises(StoreCorruptError, match="is not what was stored"):
            store.copies.get(1)
        with pytest.raises(StoreCorruptError, match="cannot be unpacked"):
            store.copies.get(3)
        assert len(store.upkeep.check()) == 2
        assert len(store.upkeep.check(sample=5)) <= 2


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("UPDATE tally SET items = items + 1", "items counted"),
        ("UPDATE content SET refs = 7 WHERE id = 1", "content 1 is counted as used 7 times, it is 1"),
        ("UPDATE state SET version = 9 WHERE item_id = 1", "the newest copy of item 1 is not there"),
        ("DELETE FROM payload WHERE content_id = 2", "content 2 has no bytes"),
        ("DELETE FROM state WHERE item_id = 5", "item 5 has no state"),
        ("DELETE FROM item WHERE id = 5", "refers to a item that is not there"),
    ],
)
def test_contradictions_are_found(tmp_path: Path, damage: str, words: str) -> None:
    path = tmp_path / "store.db"
    filled(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute(damage)
        other.commit()
    with SqliteStore(path) as store:
        problems = store.upkeep.check()
    assert any(words in problem for problem in problems)


def test_every_error_of_sqlite_becomes_one_of_ours() -> None:
    for code, kind in {
        sqlite3.SQLITE_BUSY_SNAPSHOT: StoreLockedError,
        sqlite3.SQLITE_READONLY_DIRECTORY: StoreReadOnlyError,
        sqlite3.SQLITE_FULL: StoreFullError,
        sqlite3.SQLITE_IOERR_WRITE: StoreFullError,
        sqlite3.SQLITE_IOERR_FSYNC: StoreError,
        sqlite3.SQLITE_CORRUPT_INDEX: StoreCorruptError,
        sqlite3.SQLITE_CANTOPEN_ISDIR: StoreMissingError,
        sqlite3.SQLITE_CONSTRAINT_NOTNULL: StoreError,
    }.items():
        error = sqlite3.OperationalError("what SQLite says")
        error.sqlite_errorcode = code
        assert type(translate_error(error, Path("store.db"))) is kind
    told = translate_error(sqlite3.ProgrammingError("no code"), Path("store.db"))
    assert type(told) is StoreError
    assert "no code" in str(told)


@pytest.mark.parametrize(("failures", "is_read"), [(2, True), (3, False)])
def test_a_read_that_could_not_begin_is_tried_again(tmp_path: Path, failures: int, is_read: bool) -> None:
    """SQLite says so where other processes open the store and end, one after another."""
    database, tries = SqliteDatabase(tmp_path / "store.db"), 0

    def work(connection: sqlite3.Connection) -> int:
        nonlocal tries
        tries += 1
        if tries <= failures:
            error = sqlite3.OperationalError("locking protocol")
            error.sqlite_errorcode = sqlite3.SQLITE_PROTOCOL
            raise error
        return int(connection.execute("SELECT 7").fetchone()[0])

    if is_read:
        assert database.read(work) == 7
    else:
        with pytest.raises(StoreLockedError, match="try again"):
            database.read(work)
    assert tries == 3
    assert database.read(lambda connection: connection.execute("SELECT 8").fetchone()) == (8,)
    database.close()


def test_commits_are_synced_to_disk_and_leases_need_not_be(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "store.db")
    for durable, level in ((True, 2), (False, 1), (True, 2)):
        with database.transaction(durable=durable) as connection:
            assert connection.execute("PRAGMA synchronous").fetchone() == (level,)
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    database.close()
