"""Renewal processes are stationary with Gamma gaps; drift forgets over its horizon."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from afresh.replay.change_process import RateDrift, renewal_events, time_of_progress


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_drift_forgets_over_its_horizon() -> None:
    logs = np.log(RateDrift(0.6, 8.0).factors(20_000, 16.0, rng()))
    assert logs.shape[1] == 8
    assert np.corrcoef(logs[:, 1], logs[:, 5])[0, 1] == pytest.approx(np.exp(-1), abs=0.03)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=20), st.floats(0, 1))
@settings(deadline=None)
def test_when_reached_inverts_the_amount_covered(steps: list[float], share: float) -> None:
    reached = np.concatenate([[0.0], np.cumsum(steps)])[None, :]
    amount = np.array([share * reached[0, -1]])
    found = time_of_progress(amount, np.array([0]), reached)
    places = np.linspace(0, 1, reached.shape[1])
    assert np.interp(found, places, reached[0]) == pytest.approx(amount, abs=1e-9)


@pytest.mark.parametrize("shape", [0.2, 1.0, 9.0])
def test_a_renewal_process_is_stationary_and_has_gamma_gaps(shape: float) -> None:
    owner, place = renewal_events(np.full(3000, 6.0), shape, rng())
    # The expected number in any stretch is its length, from the very start on (not so for a process that
    # begins with a whole gap: regular ones would then have none at first).
    inside = np.array([np.bincount(owner[place < stretch], minlength=3000) for stretch in (0.2, 1.0, 6.0)])
    error = inside.std(axis=1) / np.sqrt(3000)
    assert np.all(np.abs(inside.mean(axis=1) - [0.2, 1.0, 6.0]) < 4 * error)
    _, one = renewal_events(np.array([4000.0]), shape, rng())
    assert stats.kstest(np.diff(one), stats.gamma(shape, scale=1 / shape).cdf).pvalue > 0.01


@given(lengths=st.lists(st.floats(0, 50), max_size=12), shape=st.floats(0.05, 40), seed=st.integers(0, 10**6))
@settings(deadline=None)
def test_renewal_events_lie_in_order_inside_their_lengths(
    lengths: list[float], shape: float, seed: int
) -> None:
    ends = np.array(lengths, dtype=float)
    owner, place = renewal_events(ends, shape, rng(seed))
    assert np.all(place >= 0)
    assert np.all(place < ends[owner])
    assert np.all(np.diff(owner) >= 0)
    assert np.all(np.diff(place)[np.diff(owner) == 0] >= 0)
