"""Scores are what stepping through time finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.replay.change_history import ChangeHistory
from afresh.replay.scores import item_scores

ITEMS, END = 3, 12
EVENTS = st.lists(st.tuples(st.integers(0, ITEMS - 1), st.integers(1, END)), max_size=20, unique=True)


def columns(events: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([e[0] for e in events], dtype=np.int64), np.array([e[1] for e in events], dtype=float)


def value_at(item: int, moment: int) -> float:
    """Some value, up and down."""
    return float((7 * moment + 3 * item) % 11)


@given(EVENTS, EVENTS, st.integers(0, END - 1))
@settings(deadline=None)
def test_scores_are_what_stepping_through_time_finds(
    changes: list[tuple[int, int]], visits: list[tuple[int, int]], begin: int
) -> None:
    values = [value_at(item, moment) for item, moment in changes]
    history = ChangeHistory.of(
        ITEMS,
        *columns(changes),
        0.0,
        float(END),
        values=values,
        initial=[value_at(i, 0) for i in range(ITEMS)],
    )
    found = item_scores(history, *columns(visits), float(begin))
    want = {name: np.zeros(ITEMS) for name in found}
    for item in range(ITEMS):
        lacking: list[int] = []
        value = copy = value_at(item, 0)
        for moment in range(END):
            if (item, moment) in changes:
                lacking.append(moment)
                value = value_at(item, moment)
            if (item, moment) in visits:
                lacking, copy = [], value
            if moment < begin:
                continue
            # Over (moment, moment + 1]: constant counts, ages that grow by one.
            want["freshness"][item] += not lacking
            want["age"][item] += moment + 0.5 - lacking[0] if lacking else 0.0
            want["missed"][item] += len(lacking)
            want["lag"][item] += sum(moment + 0.5 - t for t in lacking)
            want["harmonic"][item] += sum(1 / (n + 1) for n in range(len(lacking)))
            want["error"][item] += abs(value - copy)
    for name, means in found.items():
        np.testing.assert_allclose(means, want[name] / (END - begin), atol=1e-12, err_msg=name)
