"""Polls of a history, when changes are seen, and what is not a history."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.replay.change_history import ChangeHistory, HistoryPoller
from afresh.replay.scores import seen_at
from afresh.values.errors import InputError

ITEMS, END = 3, 12
EVENTS = st.lists(st.tuples(st.integers(0, ITEMS - 1), st.integers(1, END)), max_size=20, unique=True)


def columns(events: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([e[0] for e in events], dtype=np.int64), np.array([e[1] for e in events], dtype=float)


@given(EVENTS, EVENTS)
@settings(deadline=None)
def test_bits_and_seen_times(changes: list[tuple[int, int]], visits: list[tuple[int, int]]) -> None:
    history = ChangeHistory.of(ITEMS, *columns(changes), 0.0, float(END))
    watch = HistoryPoller(history)
    last = dict.fromkeys(range(ITEMS), 0)
    for item, moment in sorted(visits, key=lambda visit: visit[1]):
        bit = watch.poll(np.array([item]), np.array([float(moment)]))
        assert bit[0] == any(i == item and last[item] < t <= moment for i, t in changes)
        last[item] = moment
    seen = seen_at(history.change_item, history.time, *columns(visits), history.end)
    for change_item, change_time, when in zip(history.change_item, history.time, seen, strict=True):
        later = [t for i, t in visits if i == change_item and t >= change_time]
        assert when == min(later, default=END)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((0, [], [], 0.0, 1.0), "needs items"),
        ((2, [0], [0.5], 1.0, 1.0), "window is empty"),
        ((2, [0], [7.0], 0.0, 1.0), "outside the window"),
        ((2, [0, 1], [0.5], 0.0, 1.0), "as many items as times"),
        ((2, [5], [0.5], 0.0, 1.0), "numbered from 0 to 1"),
    ],
)
def test_what_is_no_history_is_refused(arguments: tuple[object, ...], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        ChangeHistory.of(*arguments)  # type: ignore[arg-type]
