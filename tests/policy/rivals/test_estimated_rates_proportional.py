"""Proportional polls as often as it estimates that items change."""

from __future__ import annotations

import numpy as np

from afresh.policy.policy import PolicyInput
from afresh.policy.rivals.estimated_rates import Proportional


def test_proportional_polls_as_often_as_it_thinks_things_change() -> None:
    policy = Proportional(PolicyInput.of(2, 1.0))
    for now in range(1, 41):
        policy.observe([0, 1], float(now), [now % 2 == 0, now % 10 == 0])
    policy.refit(40.0)
    rate = policy.rates()
    np.testing.assert_allclose(rate, [-np.log(20.5 / 40.5), -np.log(36.5 / 40.5)])
    np.testing.assert_allclose(policy.interval[1] / policy.interval[0], rate[0] / rate[1])
    np.testing.assert_allclose((1 / policy.interval).sum(), 1.0)
