"""Policies: the speed of replays, decisions and re-keying, and the gain captured on real histories.

Speed is in CPU seconds, so that other processes do not count. ``AFRESH_DATA`` may name a folder of
``NAME.items.csv.gz``, ``NAME.changes.csv.gz`` and ``NAME.meta.json`` (window ``start`` and ``end``, Unix
seconds): then every history in it is replayed at 0.02, 0.05 and 0.14 polls per item and day, one bit each,
and the share of the oracle's gain after a warm-up of a third is printed, all cells together.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from pyarrow import csv

from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.families import families_of
from afresh.policy.policy import PolicyInput
from afresh.policy.registry import make_policy
from afresh.replay.change_history import ChangeHistory
from afresh.replay.compare import captured, replay
from afresh.replay.policy_run import run_policy
from afresh.values.arrays import Ints
from bench.rows import Row

DAY = 86400.0
BUDGETS = (0.02, 0.05, 0.14)
BATCH = 1000


def rows(*, quick: bool) -> list[Row]:
    """Measure speed; and, where ``AFRESH_DATA`` is set and ``quick`` is not, the gain captured."""
    found = [*_replay_speed(quick), *_decisions(quick)]
    folder = os.environ.get("AFRESH_DATA")
    if folder and not quick:
        found += _captured(Path(folder))
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


def _captured(folder: Path) -> list[Row]:
    cells, found = [], []
    for path in sorted(folder.glob("*.meta.json")):
        name = path.name.removesuffix(".meta.json")
        history, names = read_history(folder, name)
        families = families_of(names)
        for budget in BUDGETS:
            whole = budget * history.items / DAY
            start = replace(PolicyInput.of(history.items, whole, now=history.start), families=families)
            uniform, oracle, adaptive = replay(history, ["uniform", "oracle", "adaptive"], start)
            three = tuple(one.after.scores.freshness for one in (adaptive, uniform, oracle))
            cells.append((three[0], three[1], three[2]))
            found.append(Row(f"captured, {name}, {budget}/item/d", captured(cells[-1:]), ""))
    return [*found, Row("captured, all together", captured(cells), "", at_least=0.8)]


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
