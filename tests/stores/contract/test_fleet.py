"""What workers share, as every store keeps it."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stores.backends import new_items, seen

from afresh.stores.shared_time import ReservationState, SharedClock
from afresh.stores.store import PLANNER, Store, group_claim
from afresh.values.clock import SystemClock
from afresh.values.errors import InputError
from afresh.values.stored import Claim, RequestWindow, Worker


def test_workers_are_seen_by_their_beats(store: Store) -> None:
    store.fleet.beat(Worker("b", "host1", 10.0, 10.0))
    store.fleet.beat(Worker("a", "host2", 11.0, 11.0))
    store.fleet.beat(Worker("b", "elsewhere", 20.0, 20.0))
    assert store.fleet.workers(0.0) == [Worker("a", "host2", 11.0, 11.0), Worker("b", "host1", 10.0, 20.0)]
    assert [worker.name for worker in store.fleet.workers(11.5)] == ["b"]
    store.fleet.leave("b")
    store.fleet.leave("nobody")
    assert [worker.name for worker in store.fleet.workers(0.0)] == ["a"]


def test_a_name_belongs_to_one_worker_until_its_claim_runs_out(store: Store) -> None:
    fleet = store.fleet
    assert fleet.take(["y", "x", "x"], "one", 0.0, 10.0) == ("y", "x")
    assert fleet.take(["x", "z"], "two", 9.9, 10.0) == ("z",)
    assert fleet.claims(5.0) == [Claim("x", "one", 10.0), Claim("y", "one", 10.0), Claim("z", "two", 19.9)]
    assert fleet.take(["x", "y"], "two", 10.0, 10.0) == ("x", "y")
    assert fleet.take(["x"], "one", 10.0, 10.0) == ()
    assert fleet.take([], "one", 10.0, 10.0) == ()
    assert fleet.claims(19.95) == [Claim("x", "two", 20.0), Claim("y", "two", 20.0)]


def test_claims_are_renewed_unless_others_took_them(store: Store) -> None:
    fleet = store.fleet
    fleet.take(["a", "b"], "one", 0.0, 10.0)
    assert fleet.renew("one", 5.0, 10.0) == ("a", "b")
    assert fleet.take(["a"], "two", 14.0, 10.0) == ()
    assert fleet.take(["a"], "two", 15.0, 10.0) == ("a",)
    assert fleet.renew("one", 16.0, 10.0) == ("b",)
    assert fleet.renew("nobody", 16.0, 10.0) == ()
    assert [(claim.name, claim.worker, claim.until_s) for claim in fleet.claims(16.0)] == [
        ("a", "two", 25.0),
        ("b", "one", 26.0),
    ]


def test_what_is_given_up_or_left_behind_is_free_at_once(store: Store) -> None:
    fleet = store.fleet
    fleet.take(["a", "b", "c"], "one", 0.0, 10.0)
    fleet.release(["a", "c", "none", "\ud800"], "two")
    assert fleet.take(["a"], "two", 1.0, 10.0) == ()
    fleet.release(["a"], "one")
    assert fleet.take(["a", "b"], "two", 1.0, 10.0) == ("a",)
    fleet.leave("one")
    assert fleet.take(["b", "c"], "two", 1.0, 10.0) == ("b", "c")


def test_what_a_worker_was_polling_is_free_when_it_leaves(store: Store) -> None:
    store.items.add(new_items(3), 0.0)
    (mine,) = store.leases.take([1], 0.0, 60.0, worker="one")
    store.leases.take([2], 0.0, 60.0, worker="two")
    (lent,) = store.leases.take([3], 0.0, 60.0)
    assert (mine.worker, lent.item_id, lent.worker) == ("one", 3, "")
    store.fleet.leave("one")
    assert [store.leases.until_s(item_id, 5.0) for item_id in (1, 2, 3, 99)] == [None, 60.0, 60.0, None]
    assert store.leases.until_s(2, 60.0) is None
    assert [lease.item_id for lease in store.leases.take([1, 2, 3], 5.0, 60.0)] == [1]
    # Whoever takes what has run out takes it whole.
    store.leases.take([2], 61.0, 60.0)
    store.fleet.leave("two")
    assert store.leases.until_s(2, 62.0) == 121.0
    assert store.commit([seen(mine, 6.0)]) != []


def test_one_of_many_is_elected_and_replaced_when_it_dies(store: Store) -> None:
    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(lambda name: store.fleet.take([PLANNER], name, 0.0, 30.0), "abcd"))
    assert sorted(won) == [(), (), (), (PLANNER,)]
    # The elected one is heard of no more.
    assert [bool(store.fleet.take([PLANNER], "e", time, 30.0)) for time in (29.9, 30.0)] == [False, True]
    assert group_claim("role:planner") != PLANNER


@pytest.mark.parametrize("name", ["\0", "\ud800"])
def test_names_that_no_store_can_hold_are_refused(store: Store, name: str) -> None:
    for use in (
        lambda: store.fleet.take([name], "one", 0.0, 1.0),
        lambda: store.fleet.take(["a"], name, 0.0, 1.0),
        lambda: store.fleet.beat(Worker(name, "host", 0.0, 0.0)),
    ):
        with pytest.raises(InputError, match="name is"):
            use()
    assert store.fleet.claims(0.0) == []


def test_windows_follow_each_other_and_idle_time_is_not_hoarded(store: Store) -> None:
    fleet = store.fleet
    assert fleet.reserve(5, 2.0, 0.5, 100.0) == RequestWindow(100.0, 108.5)
    assert fleet.reserve(1, 2.0, 0.0, 101.0) == RequestWindow(110.5, 110.5)
    assert fleet.reserve(1, 4.0, 0.0, 102.0) == RequestWindow(
        114.5, 114.5
    )  # a budget made smaller holds at once
    assert fleet.reserve(2, 2.0, 0.0, 500.0) == RequestWindow(500.0, 502.0)


def test_debts_are_paid_before_the_next_window_and_one_after_the_other(store: Store) -> None:
    fleet = store.fleet
    assert fleet.owe(5.0, 100.0) == 105.0
    assert fleet.owe(2.0, 101.0) == 107.0
    assert fleet.owe(0.0, 101.0) == 107.0
    assert fleet.reserve(1, 1.0, 0.0, 101.0) == RequestWindow(107.0, 107.0)
    assert fleet.reserve(1, 1.0, 0.0, 101.0) == RequestWindow(108.0, 108.0)
    assert fleet.owe(3.0, 200.0) == 203.0


def test_a_clock_that_was_set_back_takes_windows_and_debts_with_it(store: Store) -> None:
    store.fleet.reserve(3, 1.0, 0.0, 1e9)
    assert store.fleet.reserve(1, 1.0, 0.0, 10_000.0).first_s == 10_003.0
    store.fleet.owe(1e7, 10_001.0)
    assert store.fleet.reserve(1, 1.0, 0.0, 5000.0).first_s == 5000.0 + 1e7
    # One that read its clock some minutes before the last came in between is late, and no more.
    assert store.fleet.reserve(1, 1.0, 0.0, 4500.0).first_s == 5001.0 + 1e7


def test_windows_that_are_days_apart_never_overlap_however_many_wait(store: Store) -> None:
    week_s = 7 * 86400.0
    first_s = [store.fleet.reserve(1, week_s, 0.0, 100.0).first_s for _ in range(5)]
    assert np.diff(first_s).min() >= week_s


@pytest.mark.parametrize(
    ("count", "spacing_s", "slack_s"), [(0, 1.0, 0.0), (1, -1.0, 0.0), (1, math.inf, 0.0), (1, 1.0, math.nan)]
)
def test_windows_that_make_no_sense_are_refused(
    store: Store, count: int, spacing_s: float, slack_s: float
) -> None:
    with pytest.raises(InputError, match="must be"):
        store.fleet.reserve(count, spacing_s, slack_s, 0.0)
    with pytest.raises(InputError, match="must be"):
        store.fleet.owe(-1.0, 0.0)
    assert store.fleet.reserve(1, 1.0, 0.0, 7.0) == RequestWindow(7.0, 7.0)


def test_slots_of_the_past_are_given_out_as_far_as_the_burst_reaches(store: Store) -> None:
    fleet = store.fleet
    assert fleet.next_slot_s(1.0, 100.0, 3.0) == 97.0
    assert fleet.reserve(2, 1.0, 0.0, 100.0, 3.0) == RequestWindow(97.0, 98.0)
    assert fleet.reserve(4, 1.0, 0.0, 100.0, 3.0) == RequestWindow(99.0, 102.0)
    assert fleet.next_slot_s(1.0, 100.0, 3.0) == 103.0


def test_slots_are_given_back_unless_others_reserved_since(store: Store) -> None:
    fleet = store.fleet
    first = fleet.reserve(4, 1.0, 0.0, 100.0)
    fleet.give_back(first.until_s, 101.0)
    second = fleet.reserve(1, 1.0, 0.0, 100.0)
    assert second == RequestWindow(102.0, 102.0)
    fleet.give_back(first.until_s, 100.0)
    assert fleet.next_slot_s(1.0, 100.0, 0.0) == 103.0


def test_workers_that_reserve_at_once_get_windows_apart(store: Store) -> None:
    def reserve(_: int) -> RequestWindow:
        return store.fleet.reserve(3, 0.1, 0.05, 50.0)

    with ThreadPoolExecutor(4) as pool:
        windows = sorted(pool.map(reserve, range(40)), key=lambda window: window.first_s)
    assert windows[0].first_s == 50.0
    for before, after in pairwise(windows):
        assert after.first_s - before.until_s >= 0.1
        assert after.first_s - before.until_s == pytest.approx(0.1)


@settings(max_examples=60, deadline=None)
@given(
    asked=st.lists(
        st.tuples(
            st.integers(1, 50),
            st.floats(1e-4, 1e6),
            st.floats(0.0, 10.0),
            st.floats(0.0, 1e3),
            st.floats(0.0, 50.0),
        ),
        min_size=2,
        max_size=20,
    ),
    start_s=st.floats(0.0, 2e9),
)
def test_windows_never_overlap(asked: list[tuple[int, float, float, float, float]], start_s: float) -> None:
    pace, now_s, until_s = ReservationState(), start_s, -math.inf
    for count, spacing_s, slack_s, passed_s, owed_s in asked:
        now_s += passed_s
        owing = pace.owe(owed_s, now_s)
        window, pace = owing.reserve(count, spacing_s, slack_s, now_s)
        assert window.first_s >= max(now_s, owing.debt_s)
        assert window.first_s - until_s >= spacing_s
        assert window.until_s >= window.first_s
        until_s = window.until_s


def test_the_shared_clock_of_this_machine_is_its_own(store: Store) -> None:
    clock = SharedClock(SystemClock(), store.fleet)
    assert clock.ahead_s == 0.0
    clock.measure()
    assert abs(clock.now_s() - SystemClock().now_s()) < 60.0
    assert clock.elapsed_s() <= clock.elapsed_s()
