"""The interval of the freshness is honest from the start: while rates are hardly known it says so."""

from __future__ import annotations

import numpy as np
import pytest
from tests.slow_cases import with_slow_cases
from tests.web.quick_world import QuickWorld

CHECKS_S = (5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0)


@pytest.mark.parametrize("middle", with_slow_cases([-3.5, -1.5], kept=1))
def test_the_interval_holds_what_is_true_in_the_first_minutes(middle: float) -> None:
    held: list[bool] = []
    young: list[float] = []
    grown: list[float] = []
    for seed in range(1, 4):
        rates = np.exp(np.random.default_rng(seed).normal(middle, 1.5, 200))
        world, begun_s = QuickWorld(rates, 12.0, seed), 1e9
        for check_s in CHECKS_S:
            world.live(begun_s + check_s - world.now_s())
            found = world.scheduler.forecast.freshness(world.now_s())
            held.append(found.low <= world.right() <= found.high)
            assert found.low <= found.value <= found.high
            if check_s in (15.0, 60.0):
                (young if check_s < 20 else grown).append(found.high - found.low)
    assert np.mean(held) >= 0.85
    assert np.mean(young) > 0.3  # nothing was looked at twice
    assert np.mean(grown) < 0.2


def test_of_very_many_items_that_are_well_known_little_is_doubtful() -> None:
    rates = np.exp(np.random.default_rng(1).normal(-3.0, 1.0, 800))
    world = QuickWorld(rates, 160.0, 1)
    world.live(30.0)
    error = world.scheduler.forecast.mean_freshness(world.now_s())[1]
    found = world.scheduler.forecast.freshness(world.now_s())
    assert 2 * 1.95 * error < found.high - found.low < 2 * 1.96 * error + 0.02
