"""Allowances under caps are never saved up for a burst."""

from __future__ import annotations

import numpy as np

from afresh.policy.caps import CapAllowances


def test_allowances_never_hoard() -> None:
    caps = CapAllowances.of(np.zeros(5, dtype=np.int64), np.array([1.0]), np.ones(5), 0.0)
    five = np.arange(5)
    assert caps.allowed(five, 0.0).tolist() == [True, False, False, False, False]
    caps.spend(five[:1])
    assert caps.allowed(five, 100.0).sum() == 5  # a batch for a long time
    assert caps.allowed(five, 100.0).sum() == 5  # asked again at once, it is still there
    assert caps.allowed(five, 100.5).sum() == 1  # unspent, it is gone
