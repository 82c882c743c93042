"""Workers on one store have its time, also when the clock of a worker's machine is set."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from tests.stores.backends import schema_url
from tests.waiting import until

from afresh.stores.postgres.store import PostgresStore
from afresh.stores.shared_time import SharedClock
from afresh.stores.sqlite.memory_store import MemoryStore
from afresh.stores.store import Fleet
from afresh.values.clock import Clock, SystemClock


class SetClock(SystemClock):
    """The machine's clock, set forward by ``by_s``."""

    by_s = 0.0

    def now_s(self) -> float:
        return super().now_s() + self.by_s


@pytest.mark.parametrize("by_s", [7200.0, 3.0, -7200.0])
def test_a_clock_that_is_set_does_not_change_the_time_of_a_database(
    postgres_url: str, tmp_path: Path, by_s: float
) -> None:
    right = SystemClock()
    with PostgresStore(schema_url(postgres_url, tmp_path)) as store:
        machine = SetClock()
        shared = SharedClock(machine, store.fleet)
        for machine.by_s in (by_s, 0.0, 2 * by_s):
            assert shared.now_s() == pytest.approx(right.now_s(), abs=0.5)
        # The database is asked meanwhile, so that the difference is known.
        until(lambda: shared.now_s() and abs(shared.ahead_s + 2 * by_s) < 0.5, "the difference is measured")
        assert shared.now_s() == pytest.approx(right.now_s(), abs=0.5)


def test_a_database_that_does_not_answer_leaves_the_time_as_it_was(postgres_url: str, tmp_path: Path) -> None:
    store = PostgresStore(schema_url(postgres_url, tmp_path))
    machine = SetClock()
    shared = SharedClock(machine, store.fleet)
    store.close()
    machine.by_s = 7200.0
    for _ in range(3):
        assert shared.now_s() == pytest.approx(SystemClock().now_s(), abs=0.5)


def test_a_file_has_the_time_of_the_machine() -> None:
    machine = SetClock()
    shared = SharedClock(machine, MemoryStore().fleet)
    machine.by_s = 7200.0
    assert shared.now_s() == pytest.approx(machine.now_s(), abs=0.5)


@pytest.mark.parametrize("sets", [1, 5])
def test_a_clock_that_is_set_while_the_database_answers_is_measured_again(sets: int) -> None:
    """Else the old difference would count for the new time, for ever."""
    machine = SetClock()
    right = SystemClock()

    class SlowFleet(MemoryStore):
        """A database with the right time. While it answers, the machine's clock is set, ``sets`` times."""

        has_own_clock = True
        left = 0

        def ahead_s(self, clock: Clock) -> float:
            ahead_s = right.now_s() - clock.now_s()
            if self.left:
                self.left -= 1
                machine.by_s += 3600.0
            return ahead_s

    fleet = SlowFleet()
    shared = SharedClock(machine, cast(Fleet, fleet))
    fleet.left = sets
    shared.measure()
    until(lambda: abs(shared.now_s() - right.now_s()) < 0.5 and abs(shared.ahead_s + machine.by_s) < 0.5)
