"""Looks as they come: unordered, doubled, failed, with lying stamps; and what is refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.rates.poll_table import PollTable, credible_since, polls_from_intervals, polls_from_times
from afresh.values.errors import InputError

NAN = float("nan")


def since_of(times: list[float], changed: list[bool], modified: list[float]) -> list[float]:
    polls = polls_from_times([0] * len(times), times, changed, modified=modified)
    assert polls.since is not None
    return [float(value) for value in polls.since]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50), st.booleans()), max_size=40))
@settings(deadline=None)
def test_the_order_of_rows_is_of_no_consequence(looks: list[tuple[int, int, bool]]) -> None:
    forward, backward = (
        polls_from_times(
            np.array([i for i, _, _ in rows], dtype=np.int64),
            np.array([t for _, t, _ in rows], dtype=np.float64),
            np.array([c for _, _, c in rows], dtype=bool),
            items=4,
        )
        for rows in (looks, looks[::-1])
    )
    for name in ("item", "elapsed", "changed"):
        np.testing.assert_array_equal(getattr(forward, name), getattr(backward, name))
    instants = {(i, t) for i, t, _ in looks}
    items = {i for i, _ in instants}
    assert forward.size == len(instants) - len(items)


def test_a_first_look_only_starts_the_clock() -> None:
    polls = polls_from_times([0, 1, 1], [5.0, 2.0, 3.0], [True, True, False])
    assert polls.polls_per_item().tolist() == [0, 1]
    assert polls.changes_per_item().tolist() == [0, 0]


def test_looks_at_one_instant_are_one_look() -> None:
    polls = polls_from_times(
        [0, 0, 0, 0], [0.0, 1.0, 1.0, 3.0], [False, False, True, False], count=[0, 1, 2, 0]
    )
    assert polls.elapsed.tolist() == [1.0, 2.0]
    assert polls.changed.tolist() == [True, False]
    assert polls.count is not None
    assert polls.count.tolist() == [2.0, 0.0]  # the same changes, written down twice


def test_a_failed_look_tells_nothing_and_the_copy_keeps_its_age() -> None:
    polls = polls_from_times(
        [0] * 4, [0.0, 1.0, 2.0, 3.0], [False, False, False, True], reached=[True, True, False, True]
    )
    assert polls.elapsed.tolist() == [1.0, 2.0]
    assert polls.changed.tolist() == [False, True]


def test_a_count_decides_whether_there_was_a_change() -> None:
    polls = polls_from_times([0] * 4, range(4), [False] * 4, count=[NAN, 2, 0, NAN])
    assert polls.changed.tolist() == [True, False, False]
    assert polls.changes_per_item().tolist() == [2]


def test_honest_stamps_are_used() -> None:
    assert since_of([0.0, 10.0, 20.0], [False, True, True], [NAN, 7.0, 12.0]) == [3.0, 8.0]


@pytest.mark.parametrize(
    ("stamp", "changed"),
    [(25.0, True), (20.0, True), (4.0, True), (15.0, False)],
    ids=["in the future", "always now", "older than the copy", "modified, it says, but is not"],
)
def test_lying_stamps_are_not_used(stamp: float, changed: bool) -> None:
    assert np.isnan(since_of([0.0, 10.0, 20.0], [False, False, changed], [NAN, NAN, stamp])[1])


def test_one_lie_in_ten_is_forgiven_two_are_not() -> None:
    times = np.arange(0.0, 110.0, 10.0)
    stamps = times - 2.0
    one_lie, two_lies = stamps.copy(), stamps.copy()
    one_lie[3], two_lies[[3, 5]] = 1e6, 1e6
    assert np.isnan(since_of(times.tolist(), [True] * 11, one_lie.tolist())).sum() == 1
    assert np.all(np.isnan(since_of(times.tolist(), [True] * 11, two_lies.tolist())))


def test_a_liar_does_not_discredit_others() -> None:
    item = np.array([0, 1], dtype=np.int64)
    ends, elapsed, changed = np.array([10.0, 10.0]), np.array([10.0, 10.0]), np.array([True, True])
    found = credible_since(item, ends, elapsed, changed, np.array([11.0, 6.0]), 2)
    np.testing.assert_array_equal(found, [np.nan, 4.0])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda: polls_from_intervals([1.0, 0.0], [True, True]),
            r"elapsed\[1\] is 0.0: must be a time above 0",
        ),
        (lambda: polls_from_intervals([1.0, NAN], [True, True]), r"elapsed\[1\] is nan"),
        (lambda: polls_from_times([0, 0], [0, 1e-320], [0, 1]), r"elapsed\[0\] is 1e-320: must be a time"),
        (
            lambda: polls_from_times([0, 0], [0, 9], [0, 1], count=[0, 2.5]),
            r"count\[1\] is 2.5: must be a who",
        ),
        (lambda: polls_from_times([0, 0], [0, 9], [0, 1], count=[0, 1e300]), r"count\[1\] is 1e\+300"),
        (lambda: polls_from_intervals([1.0, 2.0], [True]), "changed has 1 values for 2 polls"),
        (lambda: polls_from_intervals([1.0, 2.0], [True, True], item=[1, 0]), "sorted rows from 0 to 1"),
        (
            lambda: polls_from_intervals([1.0], [True], since=[2.0]),
            r"since\[0\] is 2.0: must be within the interval",
        ),
        (
            lambda: polls_from_intervals([1.0], [True], count=[0.0]),
            r"count\[0\] is 0.0: must be above 0 where changed",
        ),
        (lambda: polls_from_times([0, 0], [0.0, np.inf], [0, 0]), r"times\[1\] is inf: must be a finite"),
        (lambda: polls_from_times([0, 0], [0, 9], [0, 0], now=5.0), r"times\[1\] is 9.0: must be no later"),
        (lambda: polls_from_times([0, 0], [0, 9], [0, 0], count=[0, -1]), r"count\[1\] is -1.0"),
        (lambda: polls_from_times([0, 0], ["a", "b"], [0, 0]), "times is not a list of numbers"),
        (lambda: polls_from_times([0], [0.0, 1.0], [0]), "time has 2 values for 1 polls"),
        (lambda: polls_from_times([-1, -1], [0.0, 1.0], [0, 0]), r"item\[0\] is -1.0: must be a whole"),
        (lambda: polls_from_times([0.5, 1], [0.0, 1.0], [0, 0]), r"item\[0\] is 0.5: must be a whole"),
        (lambda: polls_from_times(["a", "b"], [0.0, 1.0], [0, 0]), "item is not a list of numbers"),
        (
            lambda: polls_from_times([0, 5], [0.0, 1.0], [0, 0], items=2),
            r"item\[1\] is 5: must be below the number of items, 2",
        ),
    ],
)
def test_wrong_polls_are_refused_with_the_place(wrong: object, message: str) -> None:
    assert callable(wrong)
    with pytest.raises(InputError, match=message):
        wrong()


def test_items_can_be_picked_out() -> None:
    polls = polls_from_intervals([1.0, 2.0, 3.0], [True, False, True], item=[0, 1, 2], count=[1, 0, 4])
    part = polls.of_items(np.array([True, False, True]))
    assert isinstance(part, PollTable)
    assert (part.item.tolist(), part.elapsed.tolist(), part.items) == ([0, 1], [1.0, 3.0], 2)
    assert part.changes_per_item().tolist() == [1, 4]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6), st.booleans()), max_size=40))
def test_any_order_of_looks_gives_the_same_polls(looks: list[tuple[int, int, bool]]) -> None:
    item, time, changed = (np.array(column) for column in zip(*looks, strict=True)) if looks else ([], [], [])
    shuffled = np.random.default_rng(0).permutation(len(looks))
    mixed = polls_from_times(*(np.asarray(c)[shuffled] for c in (item, time, changed)), items=4)
    expected = sorted(set(zip(np.asarray(item).tolist(), np.asarray(time).tolist(), strict=True)))
    ends = [pair for before, pair in pairwise(expected) if before[0] == pair[0]]
    assert mixed.end is not None
    assert list(zip(mixed.item.tolist(), mixed.end.tolist(), strict=True)) == ends
