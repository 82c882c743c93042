"""What the engine saves by the model: right where rates are known, wide where they are not."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.engine.scheduler.test_forecast import BUDGET, World, rates_of
from tests.slow_cases import with_slow_cases
from tests.web.serving import engine_of, filled

from afresh.allocation.allocate import allocate
from afresh.engine.reporting.plan_sample import RatePosteriors
from afresh.engine.reporting.savings import compare_with_uniform, uniform_needs
from afresh.engine.scheduler.forecast import Forecast
from afresh.engine.scheduler.restore import plan_shadow_price
from afresh.model.freshness import freshness

LADDER = 2.0 ** np.arange(-8.0, 4.0)


def beliefs(mass: np.ndarray) -> RatePosteriors:
    flat = np.full(LADDER.size, 1 / LADDER.size)
    likely = mass / mass.sum(axis=1, keepdims=True)
    return RatePosteriors(LADDER, flat, likely, np.tile(LADDER, (len(mass), 1)))


def test_uniform_polling_with_so_many_requests_is_as_fresh_by_the_model() -> None:
    rng = np.random.default_rng(1)
    which = rng.integers(0, LADDER.size, 200)
    known = beliefs(np.eye(LADDER.size)[which])
    cost, share = rng.choice([1.0, 3.0], 200), rng.dirichlet(np.ones(200))
    plan = allocate(LADDER[which], 100.0, weights=share, costs=cost)
    found = compare_with_uniform(known, share, cost, np.asarray(plan.frequency, dtype=np.float64))
    same = found.value * 100.0 / cost.sum()
    assert share @ freshness(LADDER[which], np.full(200, same)) == pytest.approx(plan.freshness, abs=1e-3)
    assert found.low <= found.value <= found.high
    assert found.high - found.low < 0.05


def test_a_plan_that_polls_all_alike_saves_nothing() -> None:
    told_nothing = beliefs(np.full((50, LADDER.size), 1 / LADDER.size))
    found = compare_with_uniform(told_nothing, np.full(50, 0.02), np.ones(50), np.full(50, 0.3))
    assert [found.value, found.low, found.high] == pytest.approx([1.0, 1.0, 1.0])


def test_the_interval_is_wide_while_polls_have_told_little() -> None:
    vague, sharp = (
        beliefs(np.array([np.exp(-0.5 * ((np.arange(12) - at) / width) ** 2) for at in (2, 6, 10) * 20]))
        for width in (3.0, 0.5)
    )
    frequency = np.array([0.02, 0.3, 0.01] * 20)
    spans = []
    for one in (vague, sharp):
        mass = RatePosteriors(
            one.ladder, one.prior, one.mass / one.mass.sum(axis=1, keepdims=True), one.rates
        )
        found = compare_with_uniform(mass, np.full(60, 1 / 60), np.ones(60), frequency)
        spans.append(math.log(found.high / found.low))
    assert spans[0] > 1.5 * spans[1]


@pytest.mark.parametrize("seed", with_slow_cases([1, 2, 3, 4], kept=1))
def test_what_is_claimed_is_so(seed: int) -> None:
    """Pages polled by the engine's own policy for eighteen rounds, whose true rates are known here."""
    world = World(rates_of(seed), seed)
    world.freshness(36.0)
    policy, rows = world.policy, np.arange(world.rates.size)
    policy.record_pick(plan_shadow_price(policy, BUDGET))
    found = uniform_needs(policy, Forecast(policy))
    frequency = 1.0 / policy.intervals_s(rows)
    factors = np.geomspace(0.25, 4.0, 1000) * frequency.mean()
    uniform = [freshness(world.rates, np.full(rows.size, each)).mean() for each in factors]
    same = np.interp(freshness(world.rates, frequency).mean(), uniform, factors) / frequency.mean()
    assert found.low - 0.02 < same < found.high + 0.02
    assert found.low > 1.0


def test_the_status_of_a_store_says_it(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine:
        assert math.isnan(engine.status().uniform_needs.value)
        filled(engine)
        needs = engine.status().uniform_needs
        assert 0 < needs.low <= needs.value <= needs.high < 256
