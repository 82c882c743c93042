"""How much of the oracle's gain over uniform polling can be learned at all, where names say nothing.

The oracle of ``bench.replay`` knows how often each item changes in the very window that is scored, so a part
of its gain is hindsight. Here each history is replaced by Poisson worlds with the same mean rates (items that
never change at 0.2 changes per window) and without names. Four policies are run in them: one that knows the
true rates; the oracle, which knows the counts of the window; ``ToldCounts``, which has to learn the rates but
is told more than any policy could find out; and adaptive, which learns from one bit per poll. Measured is the
gain of ``ToldCounts`` over that of the oracle, the ratio is that of adaptive; both are means over seeds. In
these worlds no policy that learns from polls can be expected to gain more than ``ToldCounts``. A second row
has the gains of the oracle and of ``ToldCounts`` on the history as it was recorded. The last rows pool the
cells, for each budget and all together.

``AFRESH_DATA`` names the folder of histories (see ``bench.replay``); ``--case docs-otel`` runs one of them,
``--case "docs-otel, 0.02"`` one of its budgets. ``AFRESH_RESULTS`` may name a file that keeps the gains, as
for ``bench.replay``, so that it can be run in parts. Without ``AFRESH_DATA`` a made-up world is used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
from bench.trials import BATCHES, DAY, FEW_BATCHES, Results, history_key, orders

PER_OCTAVE = 2  # rates on the grid of ``ToldCounts``


@dataclass(frozen=True, slots=True)
class Cell:
    """Points above uniform at one budget. ``poisson`` are those of true rates, oracle, told counts and
    adaptive, mean over the worlds; ``recorded`` those of oracle and told counts on the history itself."""

    name: str
    polls_per_day: float
    poisson: Float64s
    recorded: Float64s

    def rows(self) -> list[Row]:
        true, oracle, told, adaptive = self.poisson.tolist()
        points = f"points above uniform {true:.2f} true rates, {oracle:.2f} oracle, {told:.2f} told counts"
        of, ratio = "of the oracle", adaptive / oracle
        worlds = Row(f"{self.name}: {points}, {adaptive:.2f} adaptive", told / oracle, of, ratio=ratio)
        oracle, told = self.recorded.tolist()
        points = f"points above uniform {oracle:.2f} oracle, {told:.2f} told counts"
        return [worlds, Row(f"{self.name}, as recorded: {points}", told / oracle, of)]


def rows(*, quick: bool, cases: Sequence[str] = ()) -> list[Row]:
    """Measure every cell of ``AFRESH_DATA`` whose name begins with one of ``cases``."""
    cells, results = [], Results.from_environment()
    for name, history in _histories(quick):
        for budget in BUDGETS[-1:] if quick else BUDGETS:
            cell = f"{name}, {budget}"
            if not cases or cell.startswith(tuple(cases)):
                cells.append(_measure(cell, history, budget, quick, results))
                sys.stderr.write(f"{cells[-1].rows()[0].name}\n")  # the table comes at the very end
    found = [row for cell in cells for row in cell.rows()]
    for budget in BUDGETS:
        some = [cell for cell in cells if cell.polls_per_day == budget]
        if len(some) > 1:
            found += _pool(f"all together, {budget}", some).rows()
    return [*found, *_pool("all together", cells).rows()] if cells else []


def _measure(cell: str, history: ChangeHistory, budget: float, quick: bool, results: Results) -> Cell:
    """Run the policies, or take what is known of them."""
    made: list[list[float]] = []
    for world in [*range(orders(quick)), "recorded"]:
        key = history_key(history, budget, quick, world)
        if key not in results.known:
            gains = _recorded if isinstance(world, str) else partial(_gains, seed=world)
            results.keep(key, f"{cell}, told counts, {world}", gains(history, budget, quick=quick))
        made.append(results.known[key])
    return Cell(cell, budget, np.mean(made[:-1], axis=0), np.array(made[-1]))


def _pool(name: str, cells: Sequence[Cell]) -> Cell:
    """The sums over several cells."""
    poisson, recorded = (
        np.sum([getattr(cell, kind) for cell in cells], axis=0) for kind in ("poisson", "recorded")
    )
    return Cell(name, 0.0, poisson, recorded)


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


def _recorded(history: ChangeHistory, polls_per_day: float, *, quick: bool) -> list[float]:
    """Points above uniform on the history as it was recorded: oracle, told counts."""
    race = Race(history, polls_per_day, quick)
    return [race.gain(race.oracle(race.counted_rates)), race.gain(race.told(race.counted_rates))]


def _gains(history: ChangeHistory, polls_per_day: float, *, seed: int, quick: bool) -> list[float]:
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
