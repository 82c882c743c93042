"""The sum of uncertain rates: right for one rate, and the interval covers the true sum as it says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from afresh.rates.rate_sum import sum_rates


def test_one_rate_keeps_its_interval() -> None:
    found = sum_rates(np.array([0.7]), np.array([0.002]), np.array([40.0]), np.random.default_rng(1))
    assert found == pytest.approx((0.7, 0.002, 40.0), rel=0.01)


def test_exact_rates_add_up() -> None:
    rates = np.array([0.5, 2.0, 0.0])
    assert sum_rates(rates, rates, rates, np.random.default_rng(1)) == pytest.approx((2.5, 2.5, 2.5))
    nothing = np.empty(0)
    assert sum_rates(nothing, nothing, nothing, np.random.default_rng(1)) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("shape", [0.7, 3.0, 20.0])
def test_the_interval_covers_the_true_sum_as_often_as_it_says(shape: float) -> None:
    """Posteriors are gamma distributions of different scales; the true rates are drawn from them."""
    rng = np.random.default_rng(5)
    scale = np.array([0.1, 1.0, 1.0, 3.0, 10.0])
    low, rate, high = (np.asarray(stats.gamma.ppf(end, shape, scale=scale)) for end in (0.05, 0.5, 0.95))
    found = sum_rates(rate, low, high, rng)
    true = rng.gamma(shape, scale, (20_000, scale.size)).sum(axis=1)
    covered = float(np.mean((true >= found[1]) & (true <= found[2])))
    assert 0.87 <= covered <= 0.93
    assert 0.45 <= float(np.mean(true < found[0])) <= 0.55


def test_the_same_draws_give_the_same_rate() -> None:
    given = np.array([1.0, 2.0]), np.array([0.5, 1.0]), np.array([2.0, 5.0])
    assert sum_rates(*given, np.random.default_rng(0)) == sum_rates(*given, np.random.default_rng(0))
