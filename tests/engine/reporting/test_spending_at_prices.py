"""The spend curve of an engine: at its own price it spends its budget, within what hosts allow."""

from __future__ import annotations

import numpy as np
import pytest
from tests.engine.scheduler.test_forecast import BUDGET, World, rates_of

from afresh.engine.reporting.spending_at_prices import NEW_WITHIN_S, spend_curve
from afresh.engine.scheduler.restore import plan_shadow_price
from afresh.engine.scheduler.scheduler import Scheduler


def learned() -> Scheduler:
    """An engine that has learned a little."""
    world = World(rates_of(1), 1)
    world.freshness(20.0)
    names = {int(code): f"name {code}" for code in np.unique(world.item_rows.group)}
    return Scheduler(world.policy, names)


def test_at_the_planned_price_the_curve_spends_the_budget() -> None:
    scheduler = learned()
    price = plan_shadow_price(scheduler.policy, BUDGET)
    curve = spend_curve(scheduler, {}, price=price)
    assert curve.spend_at(np.array([price]))[0] == pytest.approx(BUDGET, rel=0.02)
    assert np.all(np.diff(curve.spend) <= 0)
    assert np.all(np.diff(curve.gain) <= 0)


def test_hosts_take_no_more_than_they_allow() -> None:
    scheduler = learned()
    limits = dict.fromkeys(scheduler.names.values(), 0.5)
    curve = spend_curve(scheduler, limits)
    groups = np.unique(scheduler.item_rows.group).size
    assert curve.spend.max() == pytest.approx(0.5 * groups)


def test_new_items_and_overhead_are_paid_at_any_price() -> None:
    scheduler = learned()
    scheduler.item_rows.polled_s[:30] = np.nan
    curve = spend_curve(scheduler, {}, overhead_per_s=2.0)
    assert curve.fixed == pytest.approx(30 / NEW_WITHIN_S + 2.0)
