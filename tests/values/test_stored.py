"""Which observations still count."""

from __future__ import annotations

import numpy as np

from afresh.values.outcome import STARTS_AGAIN
from afresh.values.stored import ObservationColumns


def columns(item: list[int], time_s: list[float], elapsed_s: list[float]) -> ObservationColumns:
    unknown, no = np.full(len(item), np.nan), np.zeros(len(item), dtype=bool)
    return ObservationColumns(np.array(item), np.array(time_s), np.array(elapsed_s), no, unknown, unknown, no)


def test_polls_before_a_new_start_do_not_count_for_this_item_alone() -> None:
    seen = columns([1, 1, 2, 2, 2], [0, 9, 0, 9, 18], [0, 9, 0, 9, STARTS_AGAIN])
    found = seen.still_counting()
    assert list(zip(found.item_id.tolist(), found.time_s.tolist(), strict=True)) == [(1, 0), (1, 9), (2, 18)]


def test_polls_in_a_time_that_a_later_poll_covers_do_not_count() -> None:
    seen = columns([1] * 5, [0, 10, 20, 30, 40], [0, 10, 10, 20, 10])
    assert seen.still_counting().time_s.tolist() == [0, 10, 30, 40]


def test_usual_polls_all_count_although_their_times_are_rounded() -> None:
    seen = columns([1] * 3, [0.0, 10.0, 20.0], [0.0, 10.0000004, 10.0000004])
    assert seen.still_counting() is seen
