"""What the slider promises of a large jump of the budget is what the plan says then, and what comes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.web.quick_world import QuickWorld

from afresh.cli.demo_site import cho_pages
from afresh.web.plan_view import BudgetPoint

LOW, HIGH = 5.0, 40.0  # requests per second: more than four times, where an engine that starts re-lays
RATES = 3.0 * cho_pages(200, np.random.default_rng(1))


def width(point: BudgetPoint) -> float:
    """Of the interval of the freshness that a budget is said to give."""
    return point.freshness_high - point.freshness_low


def test_promise_plan_status_and_what_comes_agree() -> None:
    world = QuickWorld(RATES, LOW, seed=1)
    world.live(45.0)  # hardly a second look at anything
    young = world.web.other("freshness", HIGH).then
    world.live(105.0)
    before = world.web.look().status.freshness.value
    promised = world.web.other("freshness", HIGH).then
    # A young engine says how little it knows.
    assert width(young) > 0.3
    assert width(promised) < 0.5 * width(young)
    assert young.freshness_low < promised.freshness < young.freshness_high
    world.ask_budget(HIGH)
    today = world.web.plan("freshness").today
    assert today == promised
    assert world.web.look().status.freshness.value == pytest.approx(before, abs=0.005)
    world.live(40.0)
    came = world.live(60.0)
    then, status = world.web.plan("freshness"), world.web.look().status
    assert promised.freshness_low <= came <= promised.freshness_high
    assert width(then.today) < 0.1
    assert then.today.freshness == pytest.approx(came, abs=0.025)
    assert status.freshness.value == pytest.approx(
        world.scheduler.forecast.mean_freshness(world.now_s())[0], abs=0.02
    )
    assert status.freshness.value == pytest.approx(then.today.freshness, abs=0.04)
