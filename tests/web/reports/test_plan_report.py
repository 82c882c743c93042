"""What the slider promises of a large jump of the budget is what the plan says then, and what comes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.web.quick_world import QuickWorld

from afresh.cli.proving.demo.changing_site import cho_pages
from afresh.web.schemas import BudgetPointOut

LOW, HIGH = 5.0, 40.0  # requests per second: more than four times, where an engine that starts re-lays
RATES = 3.0 * cho_pages(200, np.random.default_rng(1))


def interval(point: BudgetPointOut) -> tuple[float, float, float]:
    """Return the freshness that a budget is said to give, between the ends of its interval."""
    assert point.freshness_low is not None
    assert point.freshness is not None
    assert point.freshness_high is not None
    return point.freshness_low, point.freshness, point.freshness_high


def width(point: BudgetPointOut) -> float:
    """Return the width of that interval."""
    low, _, high = interval(point)
    return high - low


def test_promise_plan_status_and_what_comes_agree() -> None:
    world = QuickWorld(RATES, LOW, seed=1)
    world.live(45.0)  # hardly a second look at anything
    young = world.web.compare_budget("freshness", HIGH).then
    world.live(105.0)
    before = world.web.current_snapshot().status.freshness.value
    promised = world.web.compare_budget("freshness", HIGH).then
    # A young engine says how little it knows.
    assert width(young) > 0.3
    assert width(promised) < 0.5 * width(young)
    assert interval(young)[0] < interval(promised)[1] < interval(young)[2]
    world.ask_budget(HIGH)
    today = world.web.report_plan("freshness").today
    assert today == promised
    assert world.web.current_snapshot().status.freshness.value == pytest.approx(before, abs=0.005)
    world.live(40.0)
    came = world.live(60.0)
    then, status = world.web.report_plan("freshness"), world.web.current_snapshot().status
    assert interval(promised)[0] <= came <= interval(promised)[2]
    assert width(then.today) < 0.1
    assert then.today.freshness == pytest.approx(came, abs=0.025)
    assert status.freshness.value == pytest.approx(
        world.scheduler.forecast.mean_freshness(world.now_s())[0], abs=0.02
    )
    assert status.freshness.value == pytest.approx(then.today.freshness, abs=0.04)
