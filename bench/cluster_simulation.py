"""A thousand shards under one price, simulated in virtual time with the real coordinator.

First the rates of a tenth of the shards grow tenfold, and the common price follows. Then shards die, return,
are cut off, and coordinators are replaced, while all requests of all shards are counted. The items' rates are
taken as known: what is measured is the coordination, not the learning (that is ``replay``).
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence

import numpy as np
from tests.cluster.cluster_world import ClusterWorld, Periods

from afresh.allocation.allocate import allocate
from afresh.allocation.spend_curve import SpendCurve, price_grid
from afresh.cluster.coordination import ClusterBudget, ShardReport
from afresh.values.arrays import Float64s
from bench.rows import Row

SHARDS, ITEMS = 1000, 40  # items simulated of each shard: they stand for millions
CALM_S, MINUTE_S, UNREST_S = 120.0, 60.0, 300.0
_TABLE = np.geomspace(1e-6, 60.0, 20_000)
_GAIN = -np.expm1(-_TABLE) - _TABLE * np.exp(-_TABLE)  # 1 − (1 + E)e^{−E}


class KnownShards:
    """The rates of the items of all shards (a row each), and what each shard spends and gains at a price."""

    def __init__(self, shards: int, rng: np.random.Generator) -> None:
        # The shards differ: the median rates are a factor of about three apart, the rates within by ten.
        middle = np.exp(rng.normal(0.0, 1.0, (shards, 1)))
        self.rates: Float64s = 0.05 * middle * np.exp(rng.normal(0.0, 2.0, (shards, ITEMS)))

    def plan(self, shard: int, prices: Float64s) -> tuple[Float64s, Float64s]:
        """Return what the shard spends per second at each price, and the sum of the freshness of its items.

        The poll value after E expected changes is (1 − (1 + E)e^{−E})/λ: E follows from the price."""
        rates = self.rates[shard][:, None]
        wanted = prices * rates
        expected = np.interp(wanted, _GAIN, _TABLE)
        is_polled = wanted < _GAIN[-1]
        frequency = np.where(is_polled, rates / expected, 0.0)
        fresh = np.where(is_polled, -np.expm1(-expected) / expected, 0.0)
        return np.asarray(frequency.sum(axis=0)), np.asarray(fresh.sum(axis=0))

    def curve(self, shard: int, price: float) -> SpendCurve:
        prices = price_grid(price or 1.0)
        return SpendCurve(prices, *self.plan(shard, prices))

    def freshness(self, shares: Sequence[float]) -> float:
        """Return the mean freshness if each shard spends its share in the best way."""
        prices, total = np.geomspace(1e-4, 1e4, 400), 0.0
        for shard, share in enumerate(shares):
            spend, fresh = self.plan(shard, prices)
            total += float(np.interp(share, spend[::-1], fresh[::-1]))
        return total / self.rates.size


def rows(*, quick: bool) -> list[Row]:
    shards = 60 if quick else SHARDS
    rng = np.random.default_rng(0)
    known = KnownShards(shards, rng)
    budget = ClusterBudget(2.0 * shards, 4.0 * shards, shards)
    world = ClusterWorld(budget, known.curve, rng, Periods())
    world.run_until(CALM_S)
    known.rates[: shards // 10] *= 10.0
    world.run_until(CALM_S + MINUTE_S)
    best = allocate(known.rates.ravel(), budget.rate_per_s)
    price_error = abs(world.coordinator.state.price / best.multiplier - 1.0)
    lost = 100.0 * (best.freshness - known.freshness(_rates(world)))
    sent = world.messages / world.now_s
    _unrest(world, shards, 60.0 if quick else UNREST_S)
    rounds = world.now_s / world.periods.rebalance
    return [
        Row("price off the optimum, a minute after", 100.0 * price_error, "%", at_most=1.0),
        Row("freshness below that of one engine", lost, "points", at_most=0.2),
        Row("requests over the budget, worst window", max(world.most_over_budget(), 0.0), "", at_most=0.0),
        Row("budget used while shards die and return", _used(world), "%"),
        Row("messages of all shards", sent, "/s"),
        Row("state that the coordinator saves", world.saved.bytes / world.saved.saves / shards, "B/shard"),
        Row("saves", world.saved.saves / rounds, "per round"),
        *_coordinator_costs(world),
    ]


def _coordinator_costs(world: ClusterWorld) -> list[Row]:
    """Return what the coordinator of all these shards takes, and how large a report is."""
    state, now_s = world.coordinator.state, world.now_s
    began_s = time.process_time()
    state.rebalanced(now_s)
    rebalanced_s, began_s = time.process_time() - began_s, time.process_time()
    answers = []
    for shard, run in state.runs.items():
        state, answer = state.with_report(ShardReport(shard, run), now_s)
        answers.append(answer)
    answered_s = time.process_time() - began_s
    curve = next(iter(state.curves.values()))
    return [
        Row("rebalancing, processor time", 1e3 * rebalanced_s, "ms"),
        Row("a report, processor time", 1e6 * answered_s / max(len(state.runs), 1), "µs"),
        Row("a report", len(pickle.dumps(ShardReport(0, 1))), "B"),
        Row("a report with a curve", len(pickle.dumps(ShardReport(0, 1, curve=curve))), "B"),
        Row("an answer", len(pickle.dumps(answers[-1])), "B"),
    ]


def _rates(world: ClusterWorld) -> list[float]:
    """Return the rate that each shard holds now."""
    shares = [world.current[shard].limiter.share for shard in range(world.budget.shards)]
    return [0.0 if share is None else share.rate_per_s for share in shares]


def _unrest(world: ClusterWorld, shards: int, duration_s: float) -> None:
    """Let shards die, return and be cut off, and replace the coordinator twice."""
    until_s, rng = world.now_s + duration_s, world.rng
    replaced_s = [world.now_s + duration_s * part for part in (0.3, 0.6)]
    while world.now_s < until_s:
        for shard in rng.integers(0, shards, max(shards // 200, 1)).tolist():
            chance = rng.random()
            if chance < 0.02:
                world.kill(shard)
            elif chance < 0.1:
                world.start(shard, is_old_alive=bool(chance < 0.04))
            elif chance < 0.15:
                world.current[shard].is_cut_off ^= True
            elif chance < 0.25:
                world.current[shard].is_saving ^= True
        if replaced_s and world.now_s >= replaced_s[0]:
            replaced_s.pop(0)
            world.replace_coordinator(is_old_alive=bool(replaced_s))
        world.step()


def _used(world: ClusterWorld) -> float:
    """Return the part of the budget that was used after the calm, in percent."""
    first = round((CALM_S + MINUTE_S) / world.periods.step)
    counts = world.counts[first:]
    return 100.0 * sum(counts) / (len(counts) * world.periods.step * world.budget.rate_per_s)
