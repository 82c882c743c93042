"""Rates are distributed as asked."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from afresh.replay.change_process import CHO_INTERVALS_D, CHO_SHARES, cho_rates, gamma_rates, power_law_rates


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_rates_are_distributed_as_asked() -> None:
    mixed = cho_rates(50_000, rng())
    shares = [np.mean(mixed == 1 / days) for days in CHO_INTERVALS_D]
    assert shares == pytest.approx(CHO_SHARES, abs=0.01)
    drawn = gamma_rates(50_000, rng(), mean=3.0, cv=0.5)
    assert stats.kstest(drawn, stats.gamma(4.0, scale=0.75).cdf).pvalue > 0.01
    assert gamma_rates(3, rng(), mean=3.0, cv=0.0).tolist() == [3.0] * 3


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 1.0, 1.0 + 1e-12, 1.7, 3.0])
def test_a_power_law_has_its_exponent(exponent: float) -> None:
    drawn = power_law_rates(30_000, rng(), low=0.1, high=10.0, exponent=exponent)
    power = 1 - exponent
    if abs(power) < 1e-9:
        places = np.log(drawn / 0.1) / np.log(100)
    else:
        places = (drawn**power - 0.1**power) / (10**power - 0.1**power)
    assert stats.kstest(places, "uniform").pvalue > 0.01
