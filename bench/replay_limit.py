"""How much of the oracle's gain over uniform polling can be learned at all, where names say nothing.

The oracle of ``bench.replay`` knows how often each item changes in the very window that is scored, so a part
of its gain is hindsight. Here each history is replaced by Poisson worlds with the same mean rates (items that
never change at 0.2 changes per window) and without names. Four policies are run in them: one that knows the
true rates; the oracle, which knows the counts of the window; ``ToldCounts``, which has to learn the rates but
is told more than any policy could find out; and adaptive, which learns from one bit per poll. Measured is the
gain of ``ToldCounts`` over that of the oracle, the ratio is that of adaptive; both are means over seeds. In
these worlds no policy that learns from polls can be expected to gain more than ``ToldCounts``. A second row
has the gains of the oracle and of ``ToldCounts`` on the history as it was recorded.

``AFRESH_DATA`` names the folder of histories (see ``bench.replay``); ``--case docs-otel`` runs one of them,
``--case "docs-otel, 0.02"`` one of its budgets. Without ``AFRESH_DATA`` a made-up world is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from afresh.policy.policy import Policy, PolicyInput, as_poll_arrays
from afresh.policy.ranking_policy import Oracle, RankingPolicy
from afresh.policy.registry import make_policy
from afresh.replay.change_history import UNSEEN_CHANGES, ChangeHistory, HistoryPoller
from afresh.replay.policy_run import batch_for, run_policy
from afresh.replay.scores import scores_when_seen, seen_at
from afresh.replay.uniform_polling import UniformPolling
from afresh.values.arrays import ArrayLike, Float64s
from bench.replay import BUDGETS, read_history
from bench.rows import Row
from bench.trials import BATCHES, DAY, FEW_BATCHES, orders

PER_OCTAVE = 2  # rates on the grid of ``ToldCounts``


def rows(*, quick: bool, cases: Sequence[str] = ()) -> list[Row]:
    """Measure every cell of ``AFRESH_DATA`` whose name begins with one of ``cases``."""
    found, points = [], []
    for name, history in _histories(quick):
        for budget in BUDGETS[-1:] if quick else BUDGETS:
            cell = f"{name}, {budget}"
            if cases and not cell.startswith(tuple(cases)):
                continue
            seeds = range(orders(quick))
            gain = np.mean([_gains(history, budget, seed, quick) for seed in seeds], axis=0)
            points.append(gain)
            found += [_row(cell, gain), _recorded_row(cell, history, budget, quick)]
    return [*found, _row("all together", np.sum(points, axis=0))] if found else []


def _row(name: str, gain: Float64s) -> Row:
    true, oracle, told, adaptive = gain.tolist()
    what = f"{name}: points above uniform {true:.2f} true rates, {oracle:.2f} oracle, {told:.2f} told counts"
    return Row(f"{what}, {adaptive:.2f} adaptive", told / oracle, "of the oracle", ratio=adaptive / oracle)


def _recorded_row(name: str, history: ChangeHistory, budget: float, quick: bool) -> Row:
    race = Race(history, budget, quick)
    oracle, told = race.gain(race.oracle(race.counted_rates)), race.gain(race.told(race.counted_rates))
    what = f"{name}, as recorded: points above uniform {oracle:.2f} oracle, {told:.2f} told counts"
    return Row(what, told / oracle, "of the oracle")


def _histories(quick: bool) -> Iterator[tuple[str, ChangeHistory]]:
    folder = os.environ.get("AFRESH_DATA")
    if quick or not folder:
        rng = np.random.default_rng(1)
        items, length = (100, 100 * DAY) if quick else (1500, 1000 * DAY)
        rates = rng.gamma(0.3, 0.03 / DAY, items)
        yield "made up", poisson_world(rates, 0.0, length, rng)
    else:
        for path in sorted(Path(folder).glob("*.meta.json")):
            name = path.name.removesuffix(".meta.json")
            yield name, read_history(Path(folder), name)[0]


def poisson_world(rates: Float64s, start: float, end: float, rng: np.random.Generator) -> ChangeHistory:
    """A history in which every item changes at its constant rate."""
    count = rng.poisson(rates * (end - start))
    item = np.repeat(np.arange(rates.size), count)
    return ChangeHistory.of(rates.size, item, rng.uniform(start, end, item.size), start, end)


def _gains(history: ChangeHistory, polls_per_day: float, seed: int, quick: bool) -> list[float]:
    """Points above uniform in a Poisson world: true rates, oracle, told counts, adaptive."""
    true = history.rates(UNSEEN_CHANGES)
    world = poisson_world(true, history.start, history.end, np.random.default_rng(1000 + seed))
    race = Race(world, polls_per_day, quick)
    adaptive = make_policy("adaptive", race.start)
    return [
        race.gain(policy)
        for policy in (race.oracle(true), race.oracle(race.counted_rates), race.told(true), adaptive)
    ]


class Race:
    """Runs policies on one history at one budget; scores are freshness after a warm-up of a third."""

    def __init__(self, history: ChangeHistory, polls_per_day: float, quick: bool) -> None:
        self.history, self.quick = history, quick
        self.start = PolicyInput.of(history.items, polls_per_day * history.items / DAY, now=history.start)
        self.uniform = self._freshness(UniformPolling(history).seen(self.start.budget))

    @property
    def counted_rates(self) -> Float64s:
        return self.history.rates(UNSEEN_CHANGES)

    def oracle(self, rates: Float64s) -> Policy:
        return Oracle(replace(self.start, rates=rates))

    def told(self, rates: Float64s) -> Policy:
        return ToldCounts(replace(self.start, rates=rates), self.history)

    def gain(self, policy: Policy) -> float:
        """Return by how many points the policy is above uniform polling."""
        history = self.history
        batch = batch_for(history.items, FEW_BATCHES if self.quick else BATCHES)
        run = run_policy(history, policy, self.start.budget, batch=batch)
        seen = seen_at(history.change_item, history.time, run.item, run.time, history.end)
        return self._freshness(seen) - self.uniform

    def _freshness(self, seen: Float64s) -> float:
        history = self.history
        scores = scores_when_seen(history, seen, history.start + history.length / 3, history.end)
        return float(100.0 * scores["freshness"].mean())


class ToldCounts(RankingPolicy):
    """Knows how the true rates are distributed over the items, though not which item has which, and learns
    with every poll how often the item has changed so far.

    Let N be the changes of an item from the start to its last poll, a time T later. The probability of the
    rate λ is then in proportion to (share of the items with rate λ)·λ^N·e^{−λT}. The items with the largest
    mean of the poll value (1−(1+λτ)e^{−λτ})/λ are polled, τ being the time since the last poll. One bit per
    poll tells less than N, and how often an item is polled does not change what N tells in the end, so
    nothing is gained by polls made to learn.
    """

    def __init__(self, start: PolicyInput, history: ChangeHistory) -> None:
        super().__init__(start)
        true = np.zeros(0) if start.rates is None else start.rates
        octave, share = np.unique(np.round(np.log2(true) * PER_OCTAVE), return_counts=True)
        self.rates, self.begin = np.exp2(octave / PER_OCTAVE), start.now
        self.prior = np.log(share / share.sum())
        self.poller, self.count = HistoryPoller(history), np.zeros(start.items)
        self.belief: Float64s = np.tile(share / share.sum(), (start.items, 1))

    def urgency(self, now: float) -> Float64s:
        expected = (now - self.items.last_poll)[:, None] * self.rates
        unchanged = np.exp(-expected)
        expected += 1.0
        unchanged *= expected
        np.subtract(1.0, unchanged, out=unchanged)
        unchanged /= self.rates
        return np.asarray(np.einsum("ij,ij->i", self.belief, unchanged))

    def observe(self, items: ArrayLike, now: ArrayLike, changed: ArrayLike) -> None:
        which, when, _ = as_poll_arrays(items, now, changed)
        self.items.last_poll[which] = when
        self.count[which] += self.poller.count_changes(which, when)
        watched = (when - self.begin)[:, None] * self.rates
        log = self.prior + self.count[which, None] * np.log(self.rates) - watched
        likely = np.exp(log - log.max(axis=1, keepdims=True))
        self.belief[which] = likely / likely.sum(axis=1, keepdims=True)
