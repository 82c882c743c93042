"""Poll values are the marginals of allocation, and due times are where they cross a value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.allocation.objectives import objective_for
from afresh.model.curves import g
from afresh.model.index import poisson_due
from afresh.policy.adaptive.poll_value import PollValue
from afresh.values.objective_names import OBJECTIVE_NAMES


@pytest.mark.parametrize("objective", OBJECTIVE_NAMES)
@given(st.floats(1e-6, 1e3))
@settings(max_examples=30, deadline=None)
def test_worth_is_the_marginal_of_allocation(objective: str, expected: float) -> None:
    poll_value = PollValue(objective, np.array([1.0]))
    want = objective_for(objective, "fixed").marginal(np.array([[expected]]))
    np.testing.assert_allclose(poll_value.marginal(np.array([[expected]])), want, rtol=3e-7)


def test_due_times_are_where_the_index_crosses() -> None:
    rates = np.exp2(np.arange(-10, 6) / 1.0)
    poll_value = PollValue("freshness", rates)
    certain = np.eye(rates.size, dtype=np.float32)
    level = np.full(rates.size, 0.3)
    due, want = poll_value.time_to_reach(certain, level), poisson_due(rates, 0.3)
    np.testing.assert_array_equal(np.isinf(due), np.isinf(want))
    seen = np.isfinite(want)
    np.testing.assert_allclose(due[seen], want[seen], rtol=0.12)
    assert np.all(g(rates[seen] * due[seen]) / rates[seen] > 0.25)


def test_what_hardly_changes_is_due_late_and_what_changes_too_fast_never() -> None:
    rates = np.exp2(np.arange(-24.0, 6.0))
    poll_value = PollValue("freshness", rates)
    rows = np.eye(rates.size)[[0, 12, 29]]
    after = poll_value.exact_time_to_reach(rows, np.tile(rates, (3, 1)), np.full(3, 0.5), 1e12)
    assert np.isinf(after[2])  # at most 1/λ = 1/32
    for place, row in ((0, 0), (1, 12)):
        expected = rates[row] * after[place]
        gain = poll_value.marginal(np.array([[expected]]))[0, 0] / rates[row]
        assert gain == pytest.approx(0.5, rel=0.05)
