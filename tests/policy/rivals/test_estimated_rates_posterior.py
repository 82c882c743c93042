"""One posterior interval per item: as long as its own polls allow, all scaled to the budget."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from afresh.policy.policy import PolicyInput
from afresh.policy.rivals.estimated_rates import STALE_SHARE, PosteriorInterval, stale_interval


@given(st.floats(0.5, 1e4), st.floats(1e-3, 1e6))
def test_an_item_is_stale_for_the_wanted_share_of_its_interval(shape: float, rate: float) -> None:
    length = float(stale_interval(np.array([shape]), np.array([rate]))[0])
    fresh, _ = quad(lambda t: (1 + t / rate) ** -shape, 0.0, length)
    assert fresh / length == pytest.approx(1 - STALE_SHARE, abs=2e-4)


def test_intervals_follow_an_items_own_polls_and_spend_the_budget() -> None:
    policy = PosteriorInterval(PolicyInput.of(3, 2.0, costs=np.array([1.0, 1.0, 2.0])))
    for now in range(1, 31):
        policy.observe([0, 1, 2], float(now), [now % 2 == 0, now % 10 == 0, False])
    policy.refit(30.0)
    assert np.all(np.diff(policy.interval) > 0)
    assert (policy.items.cost / policy.interval).sum() == pytest.approx(2.0)
    # Poisson at half a change per poll, and one in ten: nearly in proportion to the rates.
    rates = -np.log([0.5, 0.9])
    assert policy.interval[1] / policy.interval[0] == pytest.approx(rates[0] / rates[1], rel=0.25)


def test_a_change_found_in_no_time_teaches_nothing() -> None:
    policy = PosteriorInterval(PolicyInput.of(1, 1.0))
    policy.observe([0], 0.0, [True])
    assert policy.shape.tolist() == [0.5]
