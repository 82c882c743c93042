"""The promise of the coordinator: all shards together never send more than the budget allows, in any window,
whoever dies, pauses, returns or is replaced, and whichever messages are lost."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster.cluster_world import ClusterWorld, CoordinatorProcess, Periods

from afresh.allocation.spend_curve import SpendCurve, price_grid
from afresh.cluster import budget_ledger, coordination
from afresh.cluster.budget_ledger import ShardLedger
from afresh.cluster.coordination import ClusterBudget, CoordinatorState, ShardReport
from afresh.cluster.share import Share, ShareLimiter, ShareNumber
from afresh.values.errors import UsageError

SHARDS = 5
BUDGET = ClusterBudget(20.0, 100.0, SHARDS, duration_s=8.0, slack_s=0.5)
QUICK = Periods(report=1.0, curve=1.0, rebalance=1.0)
EVENTS = (
    "start",
    "start beside the old",
    "kill",
    "end",
    "pause",
    "cut off",
    "save up",
    "demand",
    "replace",
    "replace beside",
    "stop",
)
events = st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, SHARDS - 1)), min_size=5, max_size=30)


def act(world: ClusterWorld, demand: list[float], event: str, which: int) -> None:
    """Let one thing happen to the cluster."""
    if event.startswith("start"):
        world.start(which, is_old_alive=event != "start")
    elif event == "kill":
        world.kill(which)
    elif event == "end":
        world.end(which)
    elif event == "pause":
        world.current[which].is_paused ^= True
    elif event == "cut off":
        world.current[which].is_cut_off ^= True
    elif event == "save up":
        saving = not world.current[which].is_saving
        for process in world.processes:
            process.is_saving = saving
    elif event == "demand":
        demand[:] = [0.01] * SHARDS
        demand[which] = 100.0
    elif event.startswith("replace"):
        world.replace_coordinator(is_old_alive=event != "replace")
    else:
        coordinator = world.coordinators[which % len(world.coordinators)]
        coordinator.is_paused ^= True


def living(seed: int) -> tuple[ClusterWorld, list[float]]:
    demand = [1.0] * SHARDS

    def curve_of(shard: int, price: float) -> SpendCurve:
        prices = price_grid(price or 1.0)
        return SpendCurve(prices, demand[shard] / prices, np.zeros_like(prices))

    return ClusterWorld(BUDGET, curve_of, np.random.default_rng(seed), QUICK, lost=0.05), demand


@given(events, st.integers(0, 2**32))
def test_the_budget_holds_in_every_window(happenings: list[tuple[str, int]], seed: int) -> None:
    world, demand = living(seed)
    world.run_until(20.0)
    for event, which in happenings:
        act(world, demand, event, which)
        world.run_until(world.now_s + float(world.rng.uniform(0.0, 10.0)))
    for process in world.processes:  # whatever was saved up is spent at once
        process.is_saving = process.is_paused = False
    world.run_until(world.now_s + 20.0)
    assert world.most_over_budget() <= 1e-6
    assert all(rate <= 20.0 + 1e-9 and burst <= 100.0 + 1e-9 for rate, burst in world.committed)


def demand_moves(seed: int, *, loss: bool) -> float:
    """By how much the budget is exceeded if the whole demand moves from shard to shard, which save up in
    between; with ``loss``, each shard that loses its share is cut off before it hears of it."""
    world, demand = living(seed)
    world.lost = 0.0
    for number in range(6):
        shard = number % SHARDS
        act(world, demand, "demand", shard)
        for process in world.processes:
            process.is_saving = True
        world.run_until(world.now_s + 30.0)
        if loss:
            world.current[shard].is_cut_off = True
        for process in world.processes:
            process.is_saving = False
        act(world, demand, "demand", (shard + 1) % SHARDS)
        world.run_until(world.now_s + 6.0)
        if number == 3:
            world.replace_coordinator()
        world.run_until(world.now_s + 4.0)
        world.current[shard].is_cut_off = False
    return world.most_over_budget()


def test_the_budget_holds_while_the_demand_moves() -> None:
    assert demand_moves(1, loss=False) <= 1e-6
    assert demand_moves(2, loss=True) <= 1e-6


def test_without_the_two_steps_it_would_not_hold() -> None:
    def latest(self: ShardLedger) -> tuple[float, float]:
        return (0.0, 0.0) if self.share is None else (self.share.rate_per_s, self.share.burst)

    with patch.object(budget_ledger.ShardLedger, "most", property(latest)):
        assert demand_moves(2, loss=True) > 0


def test_with_bursts_that_move_along_it_would_not_hold() -> None:
    hold = ShareLimiter.hold

    def generous(self: ShareLimiter, share: Share, now_s: float, until_s: float) -> bool:
        before = self.share
        held = hold(self, share, now_s, until_s)
        if held and before is not None and share.burst > before.burst:
            self._tokens += share.burst - before.burst
        return held

    with patch.object(ShareLimiter, "hold", generous):
        assert demand_moves(1, loss=False) > 0


def test_shares_follow_the_curves() -> None:
    world, demand = living(3)
    demand[:] = [1.0, 2.0, 3.0, 4.0, 10.0]
    world.run_until(60.0)
    shares = [world.coordinator.state.share_of(shard) for shard in range(SHARDS)]
    assert [share.rate_per_s for share in shares if share] == pytest.approx([1, 2, 3, 4, 10], rel=5e-3)
    assert world.coordinator.state.price == pytest.approx(1.0, rel=1e-3)  # 20/μ = 20


def test_a_dead_shard_leaves_its_share_to_the_others_and_gets_it_back() -> None:
    world, _ = living(4)
    world.run_until(40.0)
    world.kill(0)
    world.run_until(60.0)
    assert sum(world.counts[-20:]) == pytest.approx(20.0 * 5, rel=0.1)
    assert world.coordinator.state.live_shards(world.now_s) == [1, 2, 3, 4]
    world.start(0)
    world.run_until(80.0)
    share = world.coordinator.state.share_of(0)
    assert share is not None
    assert share.rate_per_s == pytest.approx(4.0, rel=1e-2)


def test_a_second_coordinator_ends_the_first() -> None:
    world, _ = living(5)
    world.run_until(10.0)
    world.replace_coordinator(is_old_alive=True)
    first, second = world.coordinators
    world.run_until(12.0)
    assert (first.is_over, second.is_over) == (True, False)
    assert second.state.term == first.state.term + 1


def test_a_coordinator_that_cannot_save_stops_answering() -> None:
    world, _ = living(6)
    world.run_until(10.0)
    coordinator: CoordinatorProcess = world.coordinator
    saved_s = coordinator.saved_s
    report = ShardReport(0, world.current[0].run)
    assert coordinator.answer(report, saved_s + 7.9) is not None
    assert coordinator.answer(report, saved_s + 8.0) is None


def test_an_old_run_of_a_shard_is_told_that_it_is_replaced() -> None:
    state = CoordinatorState(BUDGET)
    state, first = state.with_report(ShardReport(2), 0.0)
    state, second = state.with_report(ShardReport(2), 1.0)
    assert (first.run, second.run) == (1, 2)
    same, answer = state.with_report(ShardReport(2, run=1), 2.0)
    assert answer.is_replaced
    assert same is state


def test_a_new_run_waits_until_the_share_of_the_old_one_has_ended() -> None:
    budget = ClusterBudget(10.0, 10.0, 1, duration_s=8.0, slack_s=0.5)
    state, _ = CoordinatorState(budget).with_report(ShardReport(0), 0.0)
    state = state.rebalanced(0.0)
    state, answer = state.with_report(ShardReport(0, run=1), 1.0)
    assert answer.share is not None
    assert answer.share.rate_per_s == pytest.approx(10.0)
    state, again = state.with_report(ShardReport(0), 2.0)
    for now_s, expected in ((9.4, 0.0), (9.6, 10.0)):  # the old share may be held until 1 + 8 + 0.5
        share = state.rebalanced(now_s).share_of(0)
        assert share is not None
        assert share.rate_per_s == pytest.approx(expected, abs=1e-6)
    assert again.run == 2


def test_a_run_after_one_that_ended_in_order_spends_at_once() -> None:
    """Such a run made a quarter of its polls: the shares of the one before were counted for a minute."""
    world, _ = living(8)
    world.run_until(40.0)
    for shard in range(SHARDS):
        world.end(shard)
    world.replace_coordinator()
    for shard in range(SHARDS):
        world.start(shard)
    world.run_until(50.0)
    assert sum(world.counts[-20:]) >= 0.8 * 20.0 * 5
    assert world.most_over_budget() <= 1e-6


def test_a_share_number_of_a_new_coordinator_is_larger() -> None:
    state = CoordinatorState(BUDGET, term=3, epoch=7)
    resumed = CoordinatorState.resumed(state.pack(), BUDGET, 100.0)
    assert ShareNumber(resumed.term, 0) > ShareNumber(state.term, 10**9)


def test_what_was_saved_counts_until_it_must_have_ended() -> None:
    state, _ = CoordinatorState(BUDGET).with_report(ShardReport(0), 0.0)
    packed = state.rebalanced(0.0).pack()
    resumed = CoordinatorState.resumed(packed, BUDGET, 50.0)
    assert resumed.committed(50.0 + 16.4)[0] == pytest.approx(20.0)
    assert resumed.committed(50.0 + 16.6)[0] == 0.0


def test_too_small_a_burst_is_refused() -> None:
    with pytest.raises(UsageError, match="8 shards need a burst of at least 8 requests"):
        ClusterBudget(2.0, 2.0, 8)


def test_the_floor_keeps_every_shard_polling() -> None:
    world, demand = living(7)
    demand[0] = 0.0
    world.run_until(40.0)
    share = world.coordinator.state.share_of(0)
    assert share is not None
    assert share.rate_per_s == pytest.approx(coordination.FLOOR * 20.0 / SHARDS, rel=0.01)
