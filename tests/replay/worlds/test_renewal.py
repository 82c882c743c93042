"""Renewal processes are stationary and have Gamma gaps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from afresh.replay.worlds.renewal import renewal_events


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


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
@settings(max_examples=60, deadline=None)
def test_renewal_events_lie_in_order_inside_their_lengths(
    lengths: list[float], shape: float, seed: int
) -> None:
    ends = np.array(lengths, dtype=float)
    owner, place = renewal_events(ends, shape, rng(seed))
    assert np.all(place >= 0)
    assert np.all(place < ends[owner])
    assert np.all(np.diff(owner) >= 0)
    assert np.all(np.diff(place)[np.diff(owner) == 0] >= 0)
