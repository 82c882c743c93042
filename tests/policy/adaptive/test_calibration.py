"""Calibration follows what polls find, class by class."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.policy.adaptive.calibration import Calibration


def test_calibration_follows_what_polls_find_by_class() -> None:
    calibration = Calibration(20, 1.0)
    busy, idle = np.arange(10), np.arange(10, 20)
    for _ in range(300):
        calibration.classify(busy, np.full(10, 3.0), np.ones(10, dtype=bool))
        calibration.classify(idle, np.full(10, 0.01), np.zeros(10, dtype=bool))
        own_share = np.repeat([0.75, 0.25], 10)
        calibration.record(np.arange(20), np.full(20, 0.5), np.ones(20, dtype=bool), own_share, 20)
    assert calibration.factors(busy)[0] == pytest.approx(1.36, abs=0.08)  # 1.5 but for the doubt
    assert calibration.factors(idle)[0] == pytest.approx(0.64, abs=0.08)
    # If families meant nothing, every change found would be the item's own: twice what was expected.
    assert calibration.both_factors(idle)[1, 0] == pytest.approx(1.8, abs=0.2)
