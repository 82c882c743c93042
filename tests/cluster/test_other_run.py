"""A second run of a project is refused, and one that follows a killed run goes on."""

from __future__ import annotations

import pytest

from afresh.cluster.layout import ClusterView, LastSeen, read_last_seen, save_last_seen
from afresh.cluster.other_run import refuse_second_run
from afresh.cluster.ray_session import ClusterError
from afresh.stores.sqlite.memory_store import MemoryStore

NOTHING = ClusterView(0.0, 1.0, ())


class Waited:
    """A clock that a wait moves on, and what another run does meanwhile."""

    def __init__(self, store: MemoryStore, is_alive: bool) -> None:
        self.time_s, self.store, self.is_alive, self.waits = 1e9, store, is_alive, 0
        self.see()

    def now_s(self) -> float:
        return self.time_s

    elapsed_s = now_s

    def see(self) -> None:
        save_last_seen(self.store, LastSeen("127.0.0.1:6379", self.time_s, NOTHING))

    def wait(self, time_s: float) -> None:
        self.time_s, self.waits = self.time_s + time_s, self.waits + 1
        if self.is_alive and self.waits == 3:
            self.see()


def test_a_run_that_goes_on_is_left_alone() -> None:
    with MemoryStore() as store:
        clock = Waited(store, is_alive=True)
        with pytest.raises(ClusterError, match=r"goes on already, with Ray at 127\.0\.0\.1:6379: stop it"):
            refuse_second_run(store, clock, clock.wait)
        assert clock.waits == 3


def test_after_a_run_that_was_killed_the_next_one_goes_on() -> None:
    with MemoryStore() as store:
        clock = Waited(store, is_alive=False)
        refuse_second_run(store, clock, clock.wait)
        assert read_last_seen(store, clock.now_s()) is None
        assert 15 < clock.time_s - 1e9 < 25


def test_after_a_run_that_ended_in_order_nothing_is_waited_for() -> None:
    with MemoryStore() as store:
        clock = Waited(store, is_alive=False)
        save_last_seen(store, None)
        refuse_second_run(store, clock, clock.wait)
        assert clock.waits == 0
