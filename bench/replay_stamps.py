"""What stamps are worth: adaptive that is told when items changed last, against adaptive that is told bits.

Each history is replayed from a third of its record on, with its names, at 0.01 and 0.02 polls per item and
day (``BUDGETS``; others with ``--case "docs-otel, 0.05"``). With stamps, every poll tells when the item
changed last, as Last-Modified does, and every first copy tells its age: by the changes before the window, and
an item without one counts as changed when the record begins. That is what ``afresh replay --stamps`` does. A
row has the points of freshness that stamps gain, mean over random orders of the items (``AFRESH_ORDERS``)
with its standard error: in the whole window, after a warm-up of a third (the ratio, which is judged: no loss
of more than 0.1 point and two standard errors), and in the first three rounds of polls.

``AFRESH_DATA`` names the folder of histories and ``AFRESH_RESULTS`` a file that keeps the runs (see
``bench.replay``); ``--case docs-otel`` runs a part. Without ``AFRESH_DATA`` a made-up world is used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from afresh.policy.families import families_of
from afresh.policy.policy import PolicyInput
from afresh.policy.registry import make_policy
from afresh.replay.change_history import ChangeHistory
from afresh.replay.compare import FIRST_ROUNDS
from afresh.replay.policy_run import batch_for, run_policy
from afresh.replay.scores import scores_when_seen, seen_at
from afresh.values.arrays import Float64s
from bench.replay import BUDGETS as ALL_BUDGETS
from bench.replay import read_history
from bench.rows import Row
from bench.trials import (
    BATCHES,
    DAY,
    FEW_BATCHES,
    MOST_LOST,
    Results,
    Trial,
    history_key,
    in_random_orders,
    orders,
)

BUDGETS = (0.01, 0.02)
RECORDED_BEFORE = 1 / 3  # share of the record before the window, which the ages of first copies come from


@dataclass(frozen=True, slots=True)
class StampGain:
    """Points that stamps gain: a row per order; whole window, after the warm-up, first rounds."""

    name: str
    points: Float64s

    def row(self, *, judged: bool) -> Row:
        number = len(self.points)
        mean = self.points.mean(axis=0).tolist()
        error = (self.points.std(axis=0, ddof=1) / np.sqrt(number)).tolist() if number > 1 else [np.inf] * 3
        each = [f"{one:+.2f} ± {about:.2f}" for one, about in zip(mean, error, strict=True)]
        what = f"{self.name}: {each[0]}, after the warm-up {each[1]}, first rounds {each[2]}"
        least = -round(MOST_LOST + 2.0 * error[1], 3) if judged and number > 1 else None
        return Row(what, mean[0], "points", ratio=mean[1], at_least=least)


def rows(*, quick: bool, cases: Sequence[str] = ()) -> list[Row]:
    """Measure every cell whose name begins with one of ``cases``."""
    found, results = [], Results.from_environment()
    for name, trial in _cells(quick):
        usual = trial.polls_per_day in BUDGETS
        if name.startswith(tuple(cases)) if cases else usual:
            found.append(_measure(name, trial, orders(quick), results))
            sys.stderr.write(f"{found[-1].row(judged=False).name}\n")  # the table comes at the very end
    table = [gain.row(judged=not quick) for gain in found]
    if len(found) > 1:
        mean = np.mean([gain.points.mean(axis=0) for gain in found], axis=0)
        words = f"{mean[0]:+.2f}, after the warm-up {mean[1]:+.2f}, first rounds {mean[2]:+.2f}"
        table.append(Row(f"mean of all: {words}", float(mean[0]), "points", ratio=float(mean[1])))
    return table


def _cells(quick: bool) -> Iterator[tuple[str, Trial]]:
    folder = os.environ.get("AFRESH_DATA")
    if quick or not folder:
        yield "made-up world, 0.02", _made_up(100 if quick else 1500, 400.0 if quick else 1100.0)
        return
    for path in sorted(Path(folder).glob("*.meta.json")):
        name = path.name.removesuffix(".meta.json")
        history, items = read_history(Path(folder), name)
        for budget in ALL_BUDGETS:
            yield f"{name}, {budget}", Trial(history, items, budget)


def _made_up(items: int, days: float) -> Trial:
    rng = np.random.default_rng(4)
    count = rng.poisson(rng.gamma(0.5, 0.03, items) * days)
    time = rng.uniform(0.0, days * DAY, count.sum())
    history = ChangeHistory.of(items, np.repeat(np.arange(items), count), time, 0.0, days * DAY)
    few = FEW_BATCHES if items < 1000 else BATCHES
    return Trial(history, [f"i{one}" for one in range(items)], 0.02, batches_per_round=few)


def _measure(name: str, trial: Trial, count: int, results: Results) -> StampGain:
    make, points = in_random_orders(trial), []
    for number in range(count):
        ordered = make(number)
        window, last_changes = cut(ordered.history)
        told = replace(ordered, history=window)
        settings = (ordered.names, ordered.polls_per_day, ordered.batches_per_round, RECORDED_BEFORE)
        runs = []
        for kind, stamps in (("bits", None), ("stamps", last_changes)):
            key = history_key(ordered.history, kind, *settings)
            if key not in results.known:
                results.keep(key, f"{kind}, {name}, order {number}", _freshness(told, stamps))
            runs.append(results.known[key])
        points.append(100.0 * (np.array(runs[1]) - np.array(runs[0])))
    return StampGain(name, np.array(points))


def cut(history: ChangeHistory) -> tuple[ChangeHistory, Float64s]:
    """Return a tuple: the window after ``RECORDED_BEFORE`` of the record, and the time of each item's last
    change before it, or of the beginning of the record.

    >>> window, last = cut(ChangeHistory.of(2, [0, 0, 1], [1.0, 2.5, 8.0], 0.0, 9.0))
    >>> window.start, window.time.tolist(), last.tolist()
    (3.0, [8.0], [2.5, 0.0])
    """
    start = history.start + RECORDED_BEFORE * history.length
    before = history.time <= start
    last = np.full(history.items, history.start)
    last[history.change_item[before]] = history.time[before]  # of several changes the last one remains
    item, time = history.change_item[~before], history.time[~before]
    return ChangeHistory.of(history.items, item, time, start, history.end), last


def _freshness(trial: Trial, stamps: Float64s | None) -> list[float]:
    """Return the freshness in the whole window, after a warm-up of a third, and in the first rounds."""
    history = trial.history
    start = replace(
        PolicyInput.of(history.items, trial.budget, now=history.start),
        families=families_of(trial.names),
        hour=trial.hour,
    )
    batch = batch_for(history.items, trial.batches_per_round)
    policy = make_policy("adaptive", start)
    visits = run_policy(history, policy, trial.budget, stamps=stamps, batch=batch)
    seen = seen_at(history.change_item, history.time, visits.item, visits.time, history.end)
    rounds_end = min(history.start + FIRST_ROUNDS / start.mean_frequency, history.end)
    parts = ((history.start, history.end), (history.start + history.length / 3, history.end))
    each = (scores_when_seen(history, seen, *part) for part in (*parts, (history.start, rounds_end)))
    return [float(one["freshness"].mean()) for one in each]
