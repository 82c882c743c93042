"""The expected lag is the mean of the lag; models keep the precision of their inputs."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.papers.yang.content_lag import content_lag
from afresh.probes.update_models import deterministic_change, expected_lag
from afresh.values.errors import InputError


def test_the_expected_lag_is_the_mean_of_the_lag() -> None:
    rng = np.random.default_rng(3)
    lags = [content_lag(np.flatnonzero(rng.random(400) < 0.05) / 100, 4.0) for _ in range(4000)]
    # 0.05 per hundredth: λ = 5, changes at the grid's points 0, 0.01, …
    assert np.mean(lags) == pytest.approx(float(expected_lag(5.0, 4.0)), rel=0.02)


def test_models_keep_float32_and_scale() -> None:
    assert expected_lag(np.array([2.0], np.float32), np.array([3.0], np.float32)).dtype == np.float32
    assert deterministic_change(14.0, 7.0) == 2.0
    with pytest.raises(InputError, match="rate"):
        expected_lag([-1.0], [1.0])
