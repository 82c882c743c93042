"""Drift forgets over its horizon."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.replay.worlds.rate_drift import RateDrift, time_of_progress


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_drift_forgets_over_its_horizon() -> None:
    logs = np.log(RateDrift(0.6, 8.0).factors(20_000, 16.0, rng()))
    assert logs.shape[1] == 8
    assert np.corrcoef(logs[:, 1], logs[:, 5])[0, 1] == pytest.approx(np.exp(-1), abs=0.03)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=20), st.floats(0, 1))
@settings(max_examples=100, deadline=None)
def test_when_reached_inverts_the_amount_covered(steps: list[float], share: float) -> None:
    reached = np.concatenate([[0.0], np.cumsum(steps)])[None, :]
    amount = np.array([share * reached[0, -1]])
    found = time_of_progress(amount, np.array([0]), reached)
    places = np.linspace(0, 1, reached.shape[1])
    assert np.interp(found, places, reached[0]) == pytest.approx(amount, abs=1e-9)
