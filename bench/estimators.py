"""All estimators on real histories polled at a fixed pace: error of the rate, freshness of the plan.

The first half of a history is polled every ``pace``, one bit per poll unless a row says more. The second half
is for evaluation: rates are compared with the changes counted then, plans are run on those changes.
``AFRESH_DATA`` names the folder with ``NAME.items.csv.gz`` and ``NAME.changes.csv.gz``; without it a
simulated history is used. ``python -m bench.estimators`` prints the table of docs/estimators.md.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pyarrow import csv

from afresh.allocation.allocate import allocate
from afresh.rates.estimator import ESTIMATORS, estimate_polls
from afresh.rates.poll_table import PollTable, polls_from_times
from afresh.values.arrays import Float64s, Floats, Ints
from bench.rows import Row

DAY = 86400.0
PACES = (20.0, 180.0)  # days
BUDGET = 0.05  # refreshes per item and day
ALWAYS = 1e6  # per day: replaces the infinite rates of some methods


@dataclass(frozen=True, slots=True)
class Cell:
    """One estimator on one history.

    ``error`` is the mean of |ln((rate+ε)/(true+ε))|, ε one change in the half; ``regret`` is what the plan
    loses to the one made from the true rates.
    """

    history: str
    pace_days: float
    method: str
    error: float
    freshness: float
    regret: float


@dataclass(frozen=True, slots=True)
class History:
    """Changes of all items in days from the start, sorted by item and time."""

    name: str
    item: Ints
    time: Float64s
    items: int
    days: float


def read_history(folder: Path, name: str) -> History:
    """Read one history, from its first change to its last."""
    names = csv.read_csv(folder / f"{name}.items.csv.gz")["item"].to_pylist()
    row = {item: index for index, item in enumerate(names)}
    changes = csv.read_csv(folder / f"{name}.changes.csv.gz")
    item = np.array([row[i] for i in changes["item"].to_pylist()], dtype=np.int64)
    time = changes["time"].to_numpy().astype(np.float64) / DAY
    order = np.lexsort((time, item))
    start = float(time.min())
    return History(name, item[order], time[order] - start, len(names), float(time.max()) - start)


def poll_history(history: History, pace: float, until: float) -> PollTable:
    """Poll every item each ``pace`` days up to ``until``, at its own phase, with time stamps and counts."""
    phase = pace * ((np.arange(history.items) * 0.6180339887) % 1.0)
    number = np.floor((until - phase) / pace).astype(np.int64) + 1
    first = np.cumsum(number) - number
    item = np.repeat(np.arange(history.items), number)
    looks = phase[item] + pace * (np.arange(item.size) - first[item])
    # Poll k finds the changes between polls k−1 and k.
    finder = np.ceil((history.time - phase[history.item]) / pace).astype(np.int64)
    inside = (finder > 0) & (finder < number[history.item])
    look = first[history.item[inside]] + finder[inside]
    count = np.bincount(look, minlength=item.size).astype(np.float64)
    modified = np.full(item.size, np.nan)
    modified[look] = history.time[inside]  # sorted, so the last change counts
    return polls_from_times(item, looks, count > 0, items=history.items, modified=modified, count=count)


def freshness_on(history: History, frequency: Floats, begin: float) -> float:
    """Return the mean freshness over the rest of the history if items are refreshed at even intervals."""
    later = history.time >= begin
    item, time = history.item[later], history.time[later] - begin
    length = history.days - begin
    interval = 1.0 / np.maximum(frequency, 1e-9)
    phase = interval * ((np.arange(history.items) * 0.7548776662) % 1.0)
    turn = np.ceil((time - phase[item]) / interval[item])
    until = np.minimum(phase[item] + turn * interval[item], length)
    first = np.ones(item.size, dtype=bool)  # only the first change of an interval makes the copy stale
    first[1:] = (item[1:] != item[:-1]) | (turn[1:] != turn[:-1])
    return 1.0 - float(np.sum((until - time)[first])) / (length * history.items)


def compare(history: History, pace: float) -> list[Cell]:
    """Evaluate every estimator on one history at one pace, beside the best plan in hindsight and uniform."""
    half = history.days / 2.0
    polls = poll_history(history, pace, half)
    true = np.bincount(history.item[history.time >= half], minlength=history.items) / half
    budget = BUDGET * history.items
    best = freshness_on(history, allocate(true, budget).frequency, half)
    rates: dict[str, Floats] = {"(true rates)": true, "(uniform)": np.ones(history.items)}
    bits = replace(polls, since=None, count=None)
    for method in ESTIMATORS:
        told = {"last-modified": replace(polls, count=None), "counts": polls}.get(method, bits)
        found = estimate_polls(told, method=method).rate
        rates[method] = np.where(np.isinf(found), ALWAYS, found)
    rates["grid, with stamps"] = estimate_polls(replace(polls, count=None), method="grid").rate
    rates["grid, with counts"] = estimate_polls(polls, method="grid").rate
    for method in ("gamma", "grid"):
        rates[f"{method}, to plan with"] = estimate_polls(bits, method=method, interval=1.0 / BUDGET).rate
    cells = []
    for method, rate in rates.items():
        error = float(np.mean(np.abs(np.log((rate + 1 / half) / (true + 1 / half)))))
        policy = "uniform" if method == "(uniform)" else "optimal"
        plan = allocate(rate, budget, policy=policy)
        freshness = freshness_on(history, plan.frequency, half)
        cells.append(Cell(history.name, pace, method, error, freshness, best - freshness))
    return cells


def simulate_history(items: int) -> History:
    """Simulate three years of items that change as Poisson processes with gamma-distributed rates."""
    rng, days = np.random.default_rng(5), 1100.0
    count = rng.poisson(rng.gamma(0.5, 0.02, items) * days)
    item = np.repeat(np.arange(items), count)
    time = rng.uniform(0.0, days, item.size)
    order = np.lexsort((time, item))
    return History("made", item, time[order], items, days)


def table(folder: Path) -> list[Cell]:
    """Evaluate all histories in a folder at all paces."""
    names = sorted(path.name.removesuffix(".changes.csv.gz") for path in folder.glob("*.changes.csv.gz"))
    return [cell for name in names for pace in PACES for cell in compare(read_history(folder, name), pace)]


def rows(*, quick: bool) -> list[Row]:
    """Return what plans made from the rates of the default method gain over uniform ones."""
    folder = os.environ.get("AFRESH_DATA")
    if folder and not quick:
        cells = table(Path(folder))
    else:
        history = simulate_history(100 if quick else 2000)
        cells = [cell for pace in PACES for cell in compare(history, pace)]
    found = {(cell.history, cell.pace_days, cell.method): cell.freshness for cell in cells}
    return [
        Row(
            f"{name}, {pace:g} d, grid less uniform",
            100 * (freshness - found[name, pace, "(uniform)"]),
            "points",
            at_least=None if quick else -0.1,
        )
        for (name, pace, method), freshness in found.items()
        if method == "grid"
    ]


def main() -> None:
    """Print the table as Markdown."""
    print("| history | polled every | method | error of the rate | freshness | regret |")
    print("| --- | ---: | --- | ---: | ---: | ---: |")
    for row in table(Path(os.environ["AFRESH_DATA"])):
        print(
            f"| {row.history} | {row.pace_days:g} d | {row.method} | {row.error:.3f} "
            f"| {row.freshness:.4f} | {row.regret:+.4f} |"
        )


if __name__ == "__main__":
    main()
