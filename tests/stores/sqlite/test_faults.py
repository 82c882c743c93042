"""Every call of SQLite, and every operation of SQLite on its files, fails once: nothing is lost or doubled.

A script of store operations is repeated, and each time the next call fails: with an I/O error, without
memory, or on a full disk. What failed raises a ``StoreError`` that names the file and is tried again, as the
engine does it. In the end the store must be the same as after the script without any failure.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest
from tests.slow_cases import with_slow_cases
from tests.stores.backends import copy_of, new_items, seen
from tests.stores.sqlite.faults import KINDS, Faults, Kind, failing_calls, failing_files

from afresh.stores.sqlite.store import SqliteStore
from afresh.stores.store import PLANNER, Retention
from afresh.values.errors import StoreCorruptError, StoreError, StoreVersionError
from afresh.values.items import ItemChange, ItemQuery
from afresh.values.lease import Lease
from afresh.values.outcome import Spent
from afresh.values.stored import Worker

Ways = Callable[[Faults], AbstractContextManager[None]]
_RETENTION = Retention(versions=2)


class Attempts:
    """Calls functions again until they succeed, as the engine does; ``errors`` is what failed."""

    def __init__(self, path: Path) -> None:
        self._path, self.errors = path, list[str]()

    def __call__(self, work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        for _ in range(3):
            try:
                return work(*given, **named)
            except (StoreCorruptError, StoreVersionError):
                raise  # the engine gives up
            except StoreError as error:
                assert_names(error, self._path)
                self.errors.append(str(error))
        raise AssertionError(f"a call fails again and again: {self.errors}")


def assert_names(error: StoreError, path: Path) -> None:
    assert path.name in str(error)


def run_script(path: Path) -> list[str]:
    """Add items, poll them three times, tell hooks, and share a fleet's claims; return what failed."""
    attempt = Attempts(path)
    store: SqliteStore = attempt(SqliteStore, path, retention=_RETENTION)
    try:
        attempt(store.items.add, new_items(3), 0.0)
        attempt(store.items.change, ["k2"], ItemChange(weight=2.0))
        attempt(store.fleet.beat, Worker("w", "host", 1.0, 1.0))
        attempt(store.fleet.take, [PLANNER, "g"], "w", 1.0, 60.0)
        attempt(store.notices.add, [1, 2], "feed", 1.0)
        for turn in range(3):
            attempt(poll_all, store, 10.0 * (turn + 1))
            attempt(store.fleet.reserve, 2, 0.5, 0.1, 10.0 * (turn + 1))
            attempt(store.ledger.add, "web", 10.0 * turn, Spent(1))
            attempt(tell_hooks, store, 10.0 * (turn + 1))
            assert attempt(store.copies.get, 1).content.startswith(b"k0")
            assert len(attempt(store.items.page, ItemQuery(), 10).items) == 3
            assert attempt(store.leases.open, 0.0) == []
        attempt(store.items.remove, ["k1"], 40.0)
        attempt(store.state.set, {"name": b"value"})
    finally:
        store.close()
    return attempt.errors


def poll_all(store: SqliteStore, now_s: float) -> None:
    """Lease and commit, each of which may fail; a commit is repeated with the same leases."""
    attempt = Attempts(Path(store.database.name))
    leases: list[Lease] = attempt(store.leases.take, [1, 2, 3], now_s, 5.0)
    assert len(leases) == 3, "leases are lost"
    more: dict[str, Any] = {"changed": True, "event": "changed", "belief": b"b", "spent": Spent(1)}
    outcomes = [
        seen(lease, now_s, due_s=now_s, new_copy=copy_of(f"{lease.key} {now_s}".encode() * 200), **more)
        for lease in leases
    ]
    assert attempt(store.commit, outcomes, {"last": b"%d" % now_s}) == []


def tell_hooks(store: SqliteStore, now_s: float) -> None:
    attempt = Attempts(Path(store.database.name))
    events = attempt(store.events.take, now_s, 10, 60.0)
    attempt(store.events.done, [event.id for event in events])


def contents_of(path: Path) -> list[str]:
    """What is in the store, but for the number that each new feed draws for its cursors."""
    with closing(sqlite3.connect(path)) as connection:
        return [re.sub(r"'epoch',\d+", "'epoch',0", line) for line in connection.iterdump()]


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store without items, so that scripts need not make the schema."""
    path = tmp_path_factory.mktemp("empty") / "store.db"
    SqliteStore(path).close()
    return path


def run_on_copy(start: Path, folder: Path, ways: Ways, faults: Faults) -> tuple[list[str], list[str]]:
    """Run the script on a copy of a file; return the errors, and the contents of the store at the end."""
    folder.mkdir()
    path = folder / "store.db"
    shutil.copy(start, path)
    with ways(faults):
        errors = run_script(path)
    with SqliteStore(path) as store:
        assert store.upkeep.check() == []
    found = contents_of(path)
    shutil.rmtree(folder)
    return errors, found


def first_of_each(names: Sequence[str], step: int) -> Iterator[int]:
    """Yield where each name occurs first, and besides every ``step``-th place."""
    known: set[str] = set()
    for place, name in enumerate(names):
        if name not in known or place % step == 0:
            yield place
        known.add(name)


@pytest.mark.parametrize("ways", [failing_calls, failing_files])
def test_what_fails_once_is_said_and_repeated(empty_store: Path, tmp_path: Path, ways: Ways) -> None:
    """Each statement, and each kind of operation on a file, fails once, with the kinds of errors in turn."""
    clean = Faults()
    errors, wanted = run_on_copy(empty_store, tmp_path / "clean", ways, clean)
    assert errors == []
    places = [*first_of_each(clean.names, 17)]
    assert len(places) > 20
    said = 0
    for turn, place in enumerate(places):
        said += walk_one(empty_store, tmp_path, ways, (place, KINDS[turn % 3]), wanted)
    assert said > len(places) / 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ways", [failing_calls, failing_files])
def test_everything_fails_once(empty_store: Path, tmp_path: Path, ways: Ways, kind: Kind) -> None:
    clean = Faults()
    _, wanted = run_on_copy(empty_store, tmp_path / "clean", ways, clean)
    for place in range(len(clean.names)):
        walk_one(empty_store, tmp_path, ways, (place, kind), wanted)


def walk_one(start: Path, folder: Path, ways: Ways, fault: tuple[int, Kind], wanted: Sequence[str]) -> bool:
    """Let one call fail; return whether the store said so. SQLite itself repeats or ignores some failures,
    such as those of a checkpoint, which loses nothing."""
    faults = Faults(*fault)
    errors, found = run_on_copy(start, folder / "faulty", ways, faults)
    assert faults.has_failed
    assert found == wanted, f"{fault}: {faults.names[fault[0]]!r}"
    return bool(errors)


@pytest.mark.parametrize("kind", with_slow_cases(KINDS, kept=1))
@pytest.mark.parametrize("ways", [failing_calls, failing_files])
def test_a_store_whose_creation_fails_is_made_at_the_next_attempt(
    tmp_path: Path, ways: Ways, kind: Kind
) -> None:
    clean = Faults()
    with ways(clean):
        SqliteStore(tmp_path / "clean.db").close()
    wanted = contents_of(tmp_path / "clean.db")
    for place in range(0, len(clean.names), 1 if kind != KINDS[0] else 9):
        path, faults = tmp_path / "store.db", Faults(place, kind)
        with ways(faults):
            Attempts(path)(SqliteStore, path).close()
        assert faults.has_failed
        assert contents_of(path) == wanted, faults.names[place]
        path.unlink()
