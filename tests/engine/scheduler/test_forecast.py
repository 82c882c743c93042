"""What is claimed against the truth: a world of pages that change, polled by the engine's own policy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.engine.scheduler.test_picker import columns

from afresh.allocation.allocate import allocate
from afresh.engine.scheduler.forecast import Forecast
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.observed_staleness import ObservedStaleness
from afresh.engine.scheduler.ranking import Ranking, RankingStart
from afresh.engine.scheduler.row_policy import PolicyName, RowPolicy
from afresh.sources.capabilities import StalenessReport
from afresh.values.arrays import Float64s

BUDGET, BATCH = 30.0, 3


class World:
    """Pages that change at known rates, and an engine's memory of them; time goes on poll by poll."""

    def __init__(self, rates: Float64s, seed: int, name: PolicyName = "adaptive") -> None:
        self.rng, self.rates = np.random.default_rng(seed), rates
        self.item_rows = ItemRows()
        self.item_rows.load([columns(rates.size, polled_s=np.zeros(rates.size), due_s=np.zeros(rates.size))])
        self.policy = RowPolicy(Ranking(self.item_rows, RankingStart(BUDGET, "freshness", 0.0)), name)
        self.now_s, self.stale = 0.0, np.zeros(rates.size, dtype=bool)
        self.fresh_s = 0.0

    def step(self) -> None:
        """A batch of polls, as many as the budget allows in the time that passes."""
        step_s = BATCH / BUDGET
        self.now_s += step_s
        first_s = self.rng.exponential(1.0 / np.maximum(self.rates, 1e-12))
        right_s = np.where(self.stale, 0.0, np.minimum(first_s, step_s))
        self.fresh_s += float(right_s.mean())
        self.stale |= first_s < step_s
        rows = np.argsort(-self.policy.poll_values(self.now_s), kind="stable")[:BATCH]
        elapsed_s = self.now_s - self.item_rows.polled_s[rows]
        now = np.full(rows.size, self.now_s)
        self.policy.ranking.learn(rows, now, elapsed_s, self.stale[rows])
        self.item_rows.polled_s[rows], self.stale[rows] = self.now_s, False

    def freshness(self, seconds: float) -> float:
        """The true freshness on average over a while."""
        begun_s, before = self.now_s, self.fresh_s
        while self.now_s < begun_s + seconds:
            self.step()
        return (self.fresh_s - before) / (self.now_s - begun_s)


def rates_of(seed: int) -> Float64s:
    return np.random.default_rng(100 + seed).gamma(0.5, 2.0, 60)


@pytest.mark.parametrize("heaviest", [1e200, 1.7e308])
def test_a_huge_weight_counts_alone_and_overflows_nothing(heaviest: float) -> None:
    world = World(np.array([0.0, 5.0, 5.0]), 1)
    world.item_rows.weight[:2] = heaviest
    world.freshness(1.0)
    forecast = Forecast(world.policy)
    found = forecast.freshness(world.now_s)
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    assert 0.0 <= forecast.mean_age_s(world.now_s) < 1.0
    assert forecast.covered_share() == 1.0


def test_the_claimed_interval_holds_the_truth() -> None:
    covered_share, error = [], []
    for seed in range(4):
        world = World(rates_of(seed), seed)
        world.freshness(10.0)
        for _ in range(12):
            world.freshness(1.0)
            claimed, truth = Forecast(world.policy).freshness(world.now_s), 1.0 - float(world.stale.mean())
            covered_share.append(claimed.low <= truth <= claimed.high)
            error.append(claimed.value - truth)
    assert np.mean(covered_share) > 0.85  # 95 % are meant; 48 draws, not all independent
    assert abs(np.mean(error)) < 0.02


@pytest.mark.slow  # tests/engine/test_living_site.py has it with fewer polls
def test_after_learning_freshness_is_near_the_optimum_and_above_uniform() -> None:
    short, above = [], []
    for seed in range(2):
        rates = rates_of(seed)
        world, even = World(rates, seed), World(rates, seed, "uniform")
        for one in (world, even):
            one.freshness(60.0)
        reached, best = world.freshness(60.0), allocate(rates, BUDGET).freshness
        short.append(best - reached)
        above.append(reached - even.freshness(60.0))
    assert np.mean(short) < 0.02
    assert np.mean(above) > 0.01


def test_the_content_lag_is_that_of_the_world() -> None:
    world = World(rates_of(4), 4)
    world.item_rows.weight[:30] = 3.0
    world.freshness(60.0)
    claimed, true = [], []
    for _ in range(200):
        world.freshness(0.05)
        since_s = world.now_s - world.item_rows.polled_s
        claimed.append(Forecast(world.policy).content_lag_s(world.now_s))
        true.append(float(np.mean(world.item_rows.weight * 0.5 * world.rates * since_s**2)))
    assert np.mean(claimed) == pytest.approx(np.mean(true), rel=0.15)


def test_the_content_lag_of_observed_items_is_counted_from_their_first_missed_change() -> None:
    world = World(np.ones(3), 1)
    world.policy.staleness = ObservedStaleness.of(
        {
            0: StalenessReport(0.0, changed=False),
            1: StalenessReport(0.0, changed=True, stale_since_s=6.0, rate_per_s=0.5),
        }
    )
    rate = float(world.policy.ranking.adaptive.rates()[1])
    expected = [0.0, 4.0 + rate * 4.0**2 / 2, rate * 10.0**2 / 2]
    assert Forecast(world.policy).content_lag_s(10.0) == pytest.approx(np.mean(expected))
