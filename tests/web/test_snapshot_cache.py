"""One snapshot serves all readers; a reader that comes after a long while gets a new one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sources.polling import SetClock
from tests.web.serving import engine_of

from afresh.engine.engine import Engine
from afresh.values.errors import StoreError, StoreLockedError
from afresh.web.snapshot_cache import SnapshotCache


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def engine(tmp_path: Path, clock: SetClock) -> Iterator[Engine]:
    with engine_of(tmp_path, clock=clock) as engine:
        yield engine


def slow_down(patch: pytest.MonkeyPatch, engine: Engine, clock: SetClock, seconds: float) -> None:
    """Let so much time pass whenever a snapshot is read."""
    due = engine.store.items.due

    def slow_due(now_s: float, k: int) -> list[int]:
        clock.time_s += seconds
        return due(now_s, k)

    patch.setattr(engine.store.items, "due", slow_due)


def test_a_snapshot_is_shared_and_read_again_when_it_is_old(engine: Engine, clock: SetClock) -> None:
    snapshots = SnapshotCache(engine)
    first = snapshots.get()
    assert snapshots.get() is first
    clock.time_s += 1.5
    assert snapshots.get().number == 1  # reading is quick, so that it is done at once
    snapshots.expire()
    assert snapshots.get().number == 2


def test_a_slow_snapshot_is_read_in_the_background_but_a_program_waits(
    engine: Engine, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshots = SnapshotCache(engine)
    with monkeypatch.context() as patch:
        slow_down(patch, engine, clock, 1.0)
        slow = snapshots.get()
    assert slow.took_s == 1.0
    clock.time_s += 21.0
    before = set(threading.enumerate())
    assert snapshots.get() is slow  # a moment too old: good enough while a new one is read
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
    assert snapshots.get().number == 1
    with monkeypatch.context() as patch:
        slow_down(patch, engine, clock, 1.0)
        snapshots.expire()
        assert snapshots.get().took_s == 1.0
    clock.time_s += 3600.0
    assert snapshots.get(wait=True).time_s == clock.time_s


def test_a_program_waits_for_the_present_state_where_reading_takes_little(
    engine: Engine, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshots = SnapshotCache(engine)
    with monkeypatch.context() as patch:
        slow_down(patch, engine, clock, 0.2)  # too long to be quick, short enough to wait for
        assert snapshots.get().took_s == pytest.approx(0.2)
    clock.time_s += 6.0
    assert snapshots.get(wait=True).time_s == clock.time_s


def test_a_store_that_fails_keeps_the_last_snapshot_and_says_why(
    engine: Engine, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked() -> object:
        raise StoreLockedError("the disk has gone")

    snapshots = SnapshotCache(engine)
    with monkeypatch.context() as patch:
        patch.setattr(engine.store.items, "counts", locked)
        with pytest.raises(StoreError, match="the disk has gone"):
            snapshots.get()
    assert snapshots.get().state == "none"
    monkeypatch.setattr(engine.store.items, "counts", locked)
    clock.time_s += 2.0
    assert (snapshots.get().state, snapshots.get().problem) == ("no store", "the disk has gone")
