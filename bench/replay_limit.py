"""How much of the oracle's gain over uniform polling can be learned at all, where names say nothing.

The oracle of ``bench.replay`` knows how often each item changes in the very window that is scored, so a part
of its gain is hindsight. Here each history is replaced by Poisson worlds with the same mean rates (items that
never change at 0.2 changes per window) and without names. Three policies are run in them: one that knows the
true rates, the oracle, which knows the counts of the window, and adaptive, which has its bits. Measured is
the gain of the true rates over that of the oracle, the ratio is that of adaptive; both are means over seeds.
In these worlds a policy that has to learn the rates cannot be expected to do better than the true rates.

``AFRESH_DATA`` names the folder of histories (see ``bench.replay``), ``--case docs-otel`` some of them;
without it a made-up world is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from afresh.policy.policy import PolicyInput
from afresh.policy.registry import make_policy
from afresh.replay.change_history import UNSEEN_CHANGES, ChangeHistory
from afresh.replay.policy_run import batch_for, run_policy
from afresh.replay.scores import scores_when_seen, seen_at
from afresh.replay.uniform_polling import UniformPolling
from afresh.values.arrays import Float64s
from bench.replay import BUDGETS, read_history
from bench.rows import Row
from bench.trials import BATCHES, DAY, FEW_BATCHES, orders


def rows(*, quick: bool, cases: Sequence[str] = ()) -> list[Row]:
    """Measure every history of ``AFRESH_DATA`` whose name begins with one of ``cases``."""
    found, points = [], []
    for name, history in _histories(quick):
        if cases and not name.startswith(tuple(cases)):
            continue
        for budget in BUDGETS[-1:] if quick else BUDGETS:
            seeds = range(orders(quick))
            gain = np.mean([_gains(history, budget, seed, quick) for seed in seeds], axis=0)
            points.append(gain)
            found.append(_row(f"{name}, {budget}", gain))
    return [*found, _row("all together", np.sum(points, axis=0))] if found else []


def _row(name: str, gain: Float64s) -> Row:
    true, oracle, adaptive = gain.tolist()
    what = f"{name}: points above uniform {true:.2f} true rates, {oracle:.2f} oracle, {adaptive:.2f} adaptive"
    return Row(what, true / oracle, "of the oracle", ratio=adaptive / oracle)


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
    """Points above uniform after a warm-up of a third: true rates, oracle, adaptive."""
    true = history.rates(UNSEEN_CHANGES)
    world = poisson_world(true, history.start, history.end, np.random.default_rng(1000 + seed))
    start = PolicyInput.of(world.items, polls_per_day * world.items / DAY, now=world.start)
    batch, begin = batch_for(world.items, FEW_BATCHES if quick else BATCHES), world.start + world.length / 3

    def freshness(seen: Float64s) -> float:
        return float(100.0 * scores_when_seen(world, seen, begin, world.end)["freshness"].mean())

    uniform, gains = freshness(UniformPolling(world).seen(start.budget)), []
    for policy, rates in (("oracle", true), ("oracle", world.rates(UNSEEN_CHANGES)), ("adaptive", None)):
        run = run_policy(world, make_policy(policy, replace(start, rates=rates)), start.budget, batch=batch)
        seen = seen_at(world.change_item, world.time, run.item, run.time, world.end)
        gains.append(freshness(seen) - uniform)
    return gains
