"""The poll value under a stated decay leads to the best interval of the income model under that decay."""

from __future__ import annotations

import numpy as np
import pytest

import afresh
from afresh.policy.adaptive.decayed_value import DecayedValue
from afresh.policy.adaptive.poll_value import PollValue
from afresh.policy.adaptive.update_cost import UpdateCostValue

DECAYS = ["exponential", "linear", "weibull:0.7", "weibull:2", "gamma:2", "gamma:0.5", "lomax:1.5", "lomax:3"]
EXPECTED = np.geomspace(1e-3, 20.0, 30)[:, None]


def test_the_exponential_decay_is_that_of_the_plain_value() -> None:
    rates, one, ratio = np.array([0.3]), np.ones((30, 1)), np.full(30, 0.4)
    plain, decayed = PollValue("freshness", rates), DecayedValue("exponential", rates)
    assert decayed.mean(one, EXPECTED, rates[None]) == pytest.approx(plain.mean(one, EXPECTED, rates[None]))
    assert decayed.highest(rates) == pytest.approx(plain.highest(rates))
    dear = UpdateCostValue("freshness", rates, ratio).mean(one, EXPECTED, rates[None])
    found = DecayedValue("exponential", rates, ratio).mean(one, EXPECTED, rates[None])
    assert found == pytest.approx(dear, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize(("rate", "update"), [(0.1, 0.0), (0.1, 3.0), (0.5, 0.0), (0.5, 1.0), (9.0, 1.0)])
def test_an_item_is_polled_at_its_best_interval(decay: str, rate: float, update: float) -> None:
    """Benefit 4 per time, a check for 1: the poll value reaches that cost at the best interval."""
    rates, one = np.array([rate]), np.ones((1, 1))
    value = DecayedValue(decay, rates, np.array([update / 4.0]))
    found = value.exact_time_to_reach(one, rates[None], np.array([1.0 / 4.0]), 1e9)
    best = afresh.best_interval(rate, 4.0, 1.0, update_cost=update, decay=decay)
    assert np.isinf(found[0]) == best.futile
    if not best.futile:
        assert found[0] == pytest.approx(best.interval, rel=0.03)
