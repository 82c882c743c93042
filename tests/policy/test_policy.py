"""The largest values in a stable order, and windows in which polling is allowed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.policy.policy import OpenTime, largest
from afresh.values.errors import InputError


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(0, 45))
@settings(deadline=None)
def test_best_is_a_stable_sort(values: list[int], k: int) -> None:
    value = np.array(values, dtype=float)
    want = sorted(range(len(values)), key=lambda place: (-values[place], place))[:k]
    assert largest(value, min(k, value.size)).tolist() == want


def test_polling_is_allowed_inside_the_windows_only() -> None:
    open_time = OpenTime.of([0.0, 10.0], [2.0, 13.0])
    moments = (-1.0, 0.0, 1.5, 2.0, 9.9, 10.0, 12.9, 13.0)
    assert [open_time.is_open(now) for now in moments] == [now in (0.0, 1.5, 10.0, 12.9) for now in moments]
    with pytest.raises(InputError, match="follow each other"):
        OpenTime.of([0.0, 1.0], [2.0, 3.0])
