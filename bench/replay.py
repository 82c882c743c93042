"""Policies: the speed of replays, decisions and re-keying, and the gain captured on real histories.

Speed is in CPU seconds, so that other processes do not count. ``AFRESH_DATA`` may name a folder of
``NAME.items.csv.gz``, ``NAME.changes.csv.gz`` and ``NAME.meta.json`` (window ``start`` and ``end``, Unix
seconds): then every history in it is replayed at 0.01, 0.02, 0.05 and 0.14 polls per item and day, one bit
each, with its names and with names shuffled, and with its names for the objectives age and lag. Each row is
the mean over random orders of the items (``bench.trials``) after a warm-up of a third: freshness of adaptive,
uniform and oracle, the standard error of the gain in points, the gain in each third of the window, the share
of the oracle's gain captured, how many times the requests uniform polling needs for the same freshness, and,
as the ratio judged, the gain in points. No cell may be below uniform by more than 0.1 point and two standard
errors (0.3 where an item gets fewer than ten polls), nor have an age or a lag more than 2 % above that of
uniform.

``--case NAME`` (may be given again; the beginning of a name is enough) runs some of them: ``speed``,
``docs-istio``, ``docs-istio, 0.02``, ``docs-istio, 0.02, shuffled``, ``age, docs-istio``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from pyarrow import csv

from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.policy import PolicyInput
from afresh.policy.registry import make_policy
from afresh.replay.change_history import ChangeHistory
from afresh.replay.policy_run import run_policy
from afresh.values.arrays import Ints
from bench.rows import Row
from bench.trials import Figures, Maker, Results, Trial, in_random_orders, measure, orders, pooled

BUDGETS = (0.01, 0.02, 0.05, 0.14)
BATCH = 1000
LEAST_CAPTURED = {"names": 0.95, "shuffled": 0.7}


def rows(*, quick: bool, cases: Sequence[str] = ()) -> list[Row]:
    """Measure speed and, where ``AFRESH_DATA`` is set and ``quick`` is not, freshness on its histories."""
    found = []
    if not cases or "speed" in cases:
        found += [*_replay_speed(quick), *_decisions(quick)]
    folder = os.environ.get("AFRESH_DATA")
    if folder and not quick:
        found += _histories(Path(folder), tuple(cases))
    return found


def _replay_speed(quick: bool) -> list[Row]:
    """Measure a million polls over a hundred thousand items in families of ten."""
    items = 2000 if quick else 100_000
    history = _poisson(items, 100.0)
    start = replace(PolicyInput.of(items, 0.1 * items), families=_tens(items), hour=None)
    spent = {}
    for name in ("uniform", "adaptive"):
        begin = time.process_time()
        run_policy(history, make_policy(name, start), start.budget)
        spent[name] = time.process_time() - begin
    polls = f"{10 * items:.0e} polls of {items:.0e} items"
    return [
        Row(f"replay, uniform, {polls}", spent["uniform"], "s"),
        Row(f"replay, adaptive, {polls}", spent["adaptive"], "s", at_most=20.0),
        Row("adaptive to uniform", spent["adaptive"] / spent["uniform"], "×"),
    ]


def _decisions(quick: bool) -> list[Row]:
    """Measure decisions (next and observe) in batches of a thousand, and re-keying all items."""
    items = 20_000 if quick else 1_000_000
    policy = Adaptive(replace(PolicyInput.of(items, 0.1 * items), families=_tens(items), hour=None))
    rng = np.random.default_rng(2)
    now, batches, timed = 0.0, 30 if quick else 1500, 10 if quick else 400
    begin = time.process_time()
    for batch in range(batches):
        if batch == batches - timed:  # not the first round, in which all items are alike
            begin = time.process_time()
        now += BATCH / (0.1 * items)
        chosen = policy.next(now, BATCH)
        policy.observe(chosen, now, rng.random(chosen.size) < 0.1)
    speed = timed * BATCH / (time.process_time() - begin)
    begin = time.process_time()
    policy.rekey(now)
    rekeying = (time.process_time() - begin) * 1e6 / items
    return [
        Row(f"decisions, {items:.0e} items", speed, "/s", at_least=None if quick else 1e5),
        Row("re-keying a million items", rekeying, "s", at_most=None if quick else 1.0),
    ]


def _histories(folder: Path, cases: tuple[str, ...]) -> list[Row]:
    """Return the rows of all cells whose names begin with one of ``cases``, and what they make together."""
    found, results = [], Results.from_environment()
    cells: dict[str, list[Figures]] = {kind: [] for kind in LEAST_CAPTURED}
    for name, kind, make in _cells(folder):
        if cases and not name.startswith(cases):
            continue
        figures = measure(name, make, orders(quick=False), results)
        found.append(figures.row(name, with_needs=True))
        cells.get(kind, []).append(figures)
    for kind, least in LEAST_CAPTURED.items():
        found += pooled(f"all together, {kind}", cells[kind], least)
    return found


def _cells(folder: Path) -> Iterator[tuple[str, str, Maker]]:
    """Yield name, kind and maker of every cell: names or shuffled for freshness, or another objective."""
    for path in sorted(folder.glob("*.meta.json")):
        name = path.name.removesuffix(".meta.json")
        history, items = read_history(folder, name)
        for budget in BUDGETS:
            trial = Trial(history, items, budget)
            yield f"{name}, {budget}, names", "names", in_random_orders(trial)
            yield f"{name}, {budget}, shuffled", "shuffled", in_random_orders(trial, shuffled=True)
            for objective in ("age", "lag"):
                other = replace(trial, objective=objective)
                yield f"{objective}, {name}, {budget}", objective, in_random_orders(other)


def read_history(folder: Path, name: str) -> tuple[ChangeHistory, list[str]]:
    """Read a history and the names of its items."""
    names = csv.read_csv(folder / f"{name}.items.csv.gz")["item"].to_pylist()
    row = {item: index for index, item in enumerate(names)}
    changes = csv.read_csv(folder / f"{name}.changes.csv.gz")
    item = np.array([row[one] for one in changes["item"].to_pylist()], dtype=np.int64)
    when = changes["time"].to_numpy().astype(np.float64)
    window = json.loads((folder / f"{name}.meta.json").read_text())
    return ChangeHistory.of(len(names), item, when, window["start"], window["end"]), names


def _poisson(items: int, length: float) -> ChangeHistory:
    rng = np.random.default_rng(1)
    count = rng.poisson(rng.gamma(0.5, 0.1, items) * length)
    moment = rng.uniform(0.0, length, count.sum())
    return ChangeHistory.of(items, np.repeat(np.arange(items), count), moment, 0.0, length)


def _tens(items: int) -> Ints:
    return (np.arange(items) // 10)[:, None]
