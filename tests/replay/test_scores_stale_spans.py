"""The course of freshness against a slow, obvious simulation."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.replay.scores import freshness_course, stale_spans

ITEMS, END = 4, 20
EVENTS = st.lists(st.tuples(st.integers(0, ITEMS - 1), st.integers(1, END)), max_size=25)


def arrays(events: list[tuple[int, int]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    return (
        np.array([item for item, _ in events], dtype=np.int64),
        np.array([time for _, time in events], dtype=float),
    )


@given(changes=EVENTS, visits=EVENTS, weights=st.lists(st.integers(0, 3), min_size=ITEMS, max_size=ITEMS))
@settings(deadline=None)
def test_the_course_is_what_stepping_through_time_finds(
    changes: list[tuple[int, int]], visits: list[tuple[int, int]], weights: list[int]
) -> None:
    weight = np.array(weights, dtype=float)
    fresh = np.ones((ITEMS, END))
    for item in range(ITEMS):
        right = True
        for moment in range(END):  # at a moment changes come first, then visits
            right = right and (item, moment) not in changes
            right = right or (item, moment) in visits
            fresh[item, moment] = right
    spans = stale_spans(*arrays(changes), *arrays(visits), float(END))
    edges = np.array([0.0, 1, 4, 5, 13, END])
    found = freshness_course(spans, edges, weight)
    parts = [fresh[:, int(a) : int(b)].mean(axis=1) for a, b in pairwise(edges)]
    wanted = [np.average(part, weights=weight) if weight.sum() else 1.0 for part in parts]
    assert found == pytest.approx(wanted, abs=1e-12)


def test_unix_times_lose_no_digits() -> None:
    start = 1.7e9
    spans = stale_spans(
        np.array([0]), np.array([start + 1]), np.array([0]), np.array([start + 1.5]), start + 4
    )
    course = freshness_course(spans, start + np.array([0.0, 2.0, 4.0]), np.ones(1))
    assert course.tolist() == [0.75, 1.0]


def test_without_any_event_all_is_fresh() -> None:
    none = np.zeros(0, dtype=np.int64)
    spans = stale_spans(none, np.zeros(0), none, np.zeros(0), 1.0)
    assert freshness_course(spans, np.array([0.0, 1.0]), np.ones(3)).tolist() == [1.0]
