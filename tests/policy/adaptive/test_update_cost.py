"""The poll value with the cost of updates leads to the best interval of the income model."""

from __future__ import annotations

import numpy as np
import pytest

import afresh
from afresh.policy.adaptive.update_cost import UpdateCostValue


@pytest.mark.parametrize(("rate", "update"), [(0.1, 0.0), (0.1, 3.0), (0.5, 1.0), (3.0, 1.0)])
def test_an_item_is_polled_at_its_best_interval(rate: float, update: float) -> None:
    """Benefit 4 per time, a check for 1: the poll value reaches that cost at the best interval."""
    rates, one = np.array([rate]), np.ones((1, 1))
    value = UpdateCostValue("freshness", rates, np.array([update / 4.0]))
    found = value.exact_time_to_reach(one, rates[None], np.array([1.0 / 4.0]), 1e9)
    best = afresh.best_interval(rate, 4.0, 1.0, update_cost=update)
    assert np.isinf(found[0]) == best.futile
    if not best.futile:
        assert found[0] == pytest.approx(best.interval, rel=0.02)
