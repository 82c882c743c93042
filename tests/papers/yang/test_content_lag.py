"""The search of the paper finds the closed form."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.papers.yang.content_lag import interval_for, lag_per_time, search_interval

sums = st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=5)


@given(groups=sums, alpha=st.floats(1e-6, 1e6))
@settings(deadline=None)
def test_the_papers_search_finds_the_closed_form(groups: list[float], alpha: float) -> None:
    closed = interval_for(groups, 7, alpha)
    assert search_interval(groups, 7, alpha) == pytest.approx(closed, rel=1e-9)
    assert lag_per_time(groups, 7, closed) == pytest.approx(alpha, rel=1e-9)
