"""The adaptive policy over very many items."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.policy.adaptive import Adaptive
from afresh.policy.policy import Start


def test_what_is_due_is_valued_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    whole, parts = Adaptive(Start.of(500, 5.0)), Adaptive(Start.of(500, 5.0))
    monkeypatch.setattr("afresh.policy.adaptive.AT_ONCE", 64)
    for turn in range(1, 4):
        changed = rng.random(500) < 0.3
        for policy in (whole, parts):
            policy.observe(np.arange(500), 100.0 * turn, changed)
    chosen = parts.next(1e4, 40)  # after a long time, when all are due
    monkeypatch.setattr("afresh.policy.adaptive.AT_ONCE", 10_000)
    np.testing.assert_array_equal(chosen, whole.next(1e4, 40))
