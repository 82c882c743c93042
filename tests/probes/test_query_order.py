"""The best order of the queries of a round leaves the least lag."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.papers.yang.content_lag import best_order, coefficients, lag_after_round, lag_per_time
from afresh.probes.query_order import round_length

sums = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5)


@given(groups=sums)
@settings(deadline=None)
def test_no_order_leaves_less_lag(groups: list[float]) -> None:
    a = coefficients(groups, 10, 2.0)
    place = np.empty(len(groups))
    place[best_order(groups)] = np.arange(1, len(groups) + 1)
    least = min(lag_after_round(a, order) for order in permutations(range(1, len(groups) + 1)))
    assert lag_after_round(a, place) == pytest.approx(least, rel=1e-12)
    length = round_length(len(groups), 2.0)
    assert lag_per_time(groups, 10, 2.0) == pytest.approx(least / length, rel=1e-12)
