"""Adaptive and its rivals on recorded histories, each policy run for the measure that it is judged by.

``AFRESH_DATA`` names the folder of histories (see ``bench.replay``). A row for each history, budget and
objective has the figure after a warm-up of a third: for freshness the points above uniform polling, for age
and lag the multiple of uniform's, where less is better. Measured is that of adaptive; the ratio is adaptive's
age or lag over the best rival's, or the points that adaptive is above the best rival. Means over the random
orders of ``AFRESH_ORDERS``; ``--case "age, docs-otel, 0.01"`` runs a part; ``AFRESH_RESULTS`` keeps runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from afresh.policy.registry import POLICIES as REGISTERED
from bench.replay import BUDGETS, read_history
from bench.replay_limit import poisson_world
from bench.rows import Row
from bench.trials import BATCHES, DAY, POLICIES, Results, Trial, in_random_orders, known_thirds, orders

RIVALS = [name for name in REGISTERED if name not in POLICIES]
OBJECTIVES = ("freshness", "age", "lag")


def rows(*, quick: bool, cases: Sequence[str] = ()) -> list[Row]:
    """Measure every cell whose name begins with one of ``cases``."""
    found, results = [], Results.from_environment()
    for name, trial in _trials(quick):
        if not cases or name.startswith(tuple(cases)):
            found.append(_row(name, trial, 1 if quick else orders(quick), results))
            sys.stderr.write(f"{found[-1].name}\n")  # the table comes at the very end
    return found


def _row(name: str, trial: Trial, count: int, results: Results) -> Row:
    make = in_random_orders(trial)
    trials = [make(number) for number in range(count)]

    def after(policy: str) -> float:
        each = [
            known_thirds(one, policy, f"{name}, {policy}, order {number}", results)[1:]
            for number, one in enumerate(trials)
        ]
        return float(np.mean(each))

    uniform, is_freshness = after("uniform"), trial.objective == "freshness"

    def judged(policy: str) -> float:
        return 100.0 * (after(policy) - uniform) if is_freshness else after(policy) / uniform

    own, others = judged("adaptive"), {rival: judged(rival) for rival in RIVALS}
    best = (max if is_freshness else min)(others.values())
    text = ", ".join(
        f"{rival} {figure:{'+.2f' if is_freshness else '.3f'}}" for rival, figure in others.items()
    )
    if is_freshness:
        return Row(f"{name}: points above uniform: {text}", own, "adaptive", ratio=own - best)
    return Row(f"{name}: of uniform's: {text}", own, "adaptive", ratio=own / best)


def _trials(quick: bool) -> Iterator[tuple[str, Trial]]:
    """Yield name and trial of every cell; a made-up world if ``quick``, or if no histories are given."""
    folder = os.environ.get("AFRESH_DATA")
    for name, whole in [_made_up()] if quick or not folder else _recorded(Path(folder)):
        for objective in OBJECTIVES:
            for budget in BUDGETS[-1:] if quick else BUDGETS:
                trial = replace(whole, polls_per_day=budget, objective=objective, batches_per_round=BATCHES)
                yield f"{objective}, {name}, {budget}", trial


def _made_up() -> tuple[str, Trial]:
    rng = np.random.default_rng(0)
    world = poisson_world(rng.gamma(0.3, 0.03 / DAY, 40), 0.0, 200 * DAY, rng)
    return "made up", Trial(world, [f"{item}" for item in range(40)], BUDGETS[0], hour=None)


def _recorded(folder: Path) -> Iterator[tuple[str, Trial]]:
    for path in sorted(folder.glob("*.meta.json")):
        name = path.name.removesuffix(".meta.json")
        yield name, Trial(*read_history(folder, name), BUDGETS[0])
