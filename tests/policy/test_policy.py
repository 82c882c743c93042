"""The largest values, in a stable order."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.policy.policy import largest


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(0, 45))
@settings(max_examples=100, deadline=None)
def test_best_is_a_stable_sort(values: list[int], k: int) -> None:
    value = np.array(values, dtype=float)
    want = sorted(range(len(values)), key=lambda place: (-values[place], place))[:k]
    assert largest(value, min(k, value.size)).tolist() == want
