"""One look serves everybody, seldom enough; who asks after a long while is not told what was long ago."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.sources.polling import SetClock
from tests.web.serving import engine_of

from afresh.values.errors import StoreError, StoreLockedError
from afresh.web.watching import Watcher


def test_looks_are_shared_and_taken_anew_when_they_are_old(tmp_path: Path) -> None:
    clock = SetClock()
    with engine_of(tmp_path, clock=clock) as engine:
        watcher = Watcher(engine)
        first = watcher.look()
        assert watcher.look() is first
        clock.time_s += 1.5
        assert watcher.look().number == 1  # a quick one is taken at once
        watcher.forget()
        assert watcher.look().number == 2


def test_a_slow_look_is_taken_behind_but_who_is_patient_waits_for_it(tmp_path: Path) -> None:
    clock = SetClock()
    with engine_of(tmp_path, clock=clock) as engine:
        watcher = Watcher(engine)
        slow = replace(watcher.look(), took_s=1.0)
        watcher._last, watcher._again_s = slow, clock.time_s + 20.0
        clock.time_s += 21.0
        before = set(threading.enumerate())
        assert watcher.look() is slow  # a moment too old: good enough while a new one is taken
        for thread in set(threading.enumerate()) - before:
            thread.join(60)
        assert watcher.look().number == 1
        watcher._last, watcher._again_s = slow, clock.time_s + 20.0
        clock.time_s += 3600.0
        assert watcher.look(patient=True).time_s == clock.time_s


def test_a_program_is_told_what_is_now_where_looking_takes_little(tmp_path: Path) -> None:
    clock = SetClock()
    with engine_of(tmp_path, clock=clock) as engine:
        watcher = Watcher(engine)
        first = watcher.look()
        watcher._last = replace(first, took_s=0.2)  # too long to be quick, short enough to wait for
        clock.time_s += 6.0
        assert watcher.look(patient=True).time_s == clock.time_s


def test_a_store_that_fails_keeps_what_was_known_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked() -> object:
        raise StoreLockedError("the disk has gone")

    clock = SetClock()
    with engine_of(tmp_path, clock=clock) as engine:
        watcher = Watcher(engine)
        with monkeypatch.context() as patch:
            patch.setattr(engine.store.items, "counts", locked)
            with pytest.raises(StoreError, match="the disk has gone"):
                watcher.look()
        assert watcher.look().state == "none"
        monkeypatch.setattr(engine.store.items, "counts", locked)
        clock.time_s += 2.0
        assert (watcher.look().state, watcher.look().problem) == ("no store", "the disk has gone")
