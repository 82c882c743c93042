"""Constants of the adaptive policy, chosen with one history left out and reported on it.

``AFRESH_DATA`` names the folder of histories (see ``bench.replay``). Each is replayed with its names and with
shuffled names at several budgets (``BUDGETS``), with the value that each constant has and with others, in one
random order of the items (``AFRESH_ORDERS``: more). A row for each of these cells has the points of freshness
above uniform polling that every value gains. For each history that value is then chosen with which the other
histories capture most of the oracle's gain, all budgets together, and measured is what this history captures
with it; the ratio is to what it captures with the value of today. ``--case CAUTION`` runs one constant,
``--case docs-otel`` (several times) uses some of the histories, ``--case 0.01`` some of the budgets.
``AFRESH_RESULTS`` keeps runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np

from afresh.policy.adaptive import calibration, rate_belief, review_schedule, shocks
from bench.replay import read_history
from bench.replay_limit import poisson_world
from bench.rows import Row
from bench.trials import DAY, Results, Trial, history_key, in_random_orders, run_by_thirds

BUDGETS, BATCHES = (0.01, 0.02, 0.05), 30
CONSTANTS: dict[str, tuple[ModuleType, tuple[float, ...]]] = {
    "CAUTION": (calibration, (5.0, 10.0, 20.0)),
    "ROUNDS": (calibration, (2.0, 4.0, 16.0)),
    "REDRAWN": (rate_belief, (100.0, 300.0, 1000.0)),
    "LASTS": (rate_belief, (1.0, 3.0, 10.0)),
    "SILENT": (rate_belief, (0.005, 0.02, 0.08)),
    "shocks.ROUNDS": (shocks, (2.0, 4.0, 16.0)),
    "FIRST_MEAN": (shocks, (3e-3, 1e-2, 3e-2)),
    "SHRINK": (shocks, (10.0, 50.0, 250.0)),
    "WIDTH": (shocks, (0.03, 0.06, 0.12)),
    "MEMBER_CAUTION": (shocks, (0.1, 0.3, 1.0)),
    "EVIDENCE_OF_POLL": (shocks, (0.01, 0.03, 0.1, 0.3)),
    "GENERAL_RAISED": (shocks, (0.005, 0.02, 0.05)),
    "LARGEST_PRIOR": (shocks, (2.0, 5.0, 20.0)),
    "PATIENCE": (review_schedule, (0.1, 0.2, 0.4)),
    "LEARNING": (review_schedule, (5.0, 20.0, 80.0)),
}
Gained = dict[float, float]
"""Points of freshness above uniform polling after the warm-up, by the value of a constant."""
Trials = dict[str, list[Trial]]
"""The trials of each history, one for each budget."""


def rows(*, quick: bool, cases: Sequence[str] = ()) -> list[Row]:
    """Measure every constant, history and budget, or those that ``cases`` name."""
    chosen = [name for name in CONSTANTS if name in cases] or list(CONSTANTS)[: 1 if quick else None]
    budgets = [budget for budget in BUDGETS if str(budget) in cases] or BUDGETS[: 1 if quick else None]
    trials: Trials = {}
    for name, trial in _trials(quick, cases):
        trials[name] = [replace(trial, polls_per_day=budget) for budget in budgets]
    results, found = Results.from_environment(), []
    to_gain = {name: sum(_oracle_gain(one, results) for one in each) for name, each in trials.items()}
    for constant in chosen:
        gained: dict[str, Gained] = {}
        for name, each in trials.items():
            cells = [_gained(one, constant, results) for one in each]
            pairs = zip(each, cells, strict=True)
            found += [_cell(f"{constant}, {name}, {one.polls_per_day}", cell) for one, cell in pairs]
            gained[name] = {value: sum(sum(cell[value]) / 2 for cell in cells) for value in cells[0]}
        found += _left_out(constant, gained, to_gain)
    return found


def _cell(what: str, cell: dict[float, tuple[float, float]]) -> Row:
    """Return a row with what each value gains at one budget: with names and with shuffled names."""
    points = (f"{value:g}: {named:+.2f} {shuffled:+.2f}" for value, (named, shuffled) in cell.items())
    best = max(cell, key=lambda value: sum(cell[value]))
    return Row(f"{what}: points with names, shuffled, with {', '.join(points)}", best, "best")


def _trials(quick: bool, cases: Sequence[str]) -> Iterator[tuple[str, Trial]]:
    folder = os.environ.get("AFRESH_DATA")
    if quick or not folder:
        for seed in range(3):
            rng = np.random.default_rng(seed)
            world = poisson_world(rng.gamma(0.3, 0.03 / DAY, 60), 0.0, 500 * DAY, rng)
            yield f"made up {seed}", Trial(world, [f"{item}" for item in range(60)], BUDGETS[0], hour=None)
        return
    names = [path.name.removesuffix(".meta.json") for path in sorted(Path(folder).glob("*.meta.json"))]
    for name in [name for name in names if name in cases] or names:
        yield name, Trial(*read_history(Path(folder), name), BUDGETS[0])


def _left_out(constant: str, gained: dict[str, Gained], to_gain: dict[str, float]) -> list[Row]:
    """Return a row for each history: what it captures with the value that the others choose."""
    module, values = CONSTANTS[constant]
    today = float(getattr(module, _name(constant)))

    def captured(names: Sequence[str], value_of: Callable[[str], float]) -> float:
        total = sum(gained[name][value_of(name)] for name in names)
        return total / sum(to_gain[name] for name in names)

    choice = {}
    for name in gained:
        others = [other for other in gained if other != name]
        choice[name] = max(values, key=lambda value: captured(others, lambda _: value))
    found = []
    for name, value in [*choice.items(), ("all together", None)]:
        some = list(gained) if value is None else [name]
        with_choice, as_it_is = captured(some, choice.__getitem__), captured(some, lambda _: today)
        what = f"{constant}, {name}" + ("" if value is None else f": {value:g} chosen by the others")
        found.append(Row(what, with_choice, "captured", ratio=with_choice / as_it_is))
    return found


def _gained(trial: Trial, constant: str, results: Results) -> dict[float, tuple[float, float]]:
    """Return by value of the constant what is gained with names and with shuffled names."""
    uniform, found = _figure(trial, "uniform", results), {}
    for value in CONSTANTS[constant][1]:
        with _set(constant, value):
            named, shuffled = (
                _figure(trial, "adaptive", results, shuffled=each) - uniform for each in (False, True)
            )
        found[value] = (named, shuffled)
    return found


def _oracle_gain(trial: Trial, results: Results) -> float:
    return _figure(trial, "oracle", results) - _figure(trial, "uniform", results)


def _figure(trial: Trial, policy: str, results: Results, *, shuffled: bool = False) -> float:
    """Return the freshness after the warm-up in percent, mean over the orders of the items."""
    make, thirds = in_random_orders(replace(trial, batches_per_round=BATCHES), shuffled=shuffled), []
    values = [getattr(module, _name(constant)) for constant, (module, _) in CONSTANTS.items()]
    for order in range(int(os.environ.get("AFRESH_ORDERS", "1"))):
        settings = (policy, shuffled, order, trial.polls_per_day)
        key = history_key(trial.history, *settings, values if policy == "adaptive" else ())
        if key not in results.known:
            results.keep(key, f"{policy}, {values}, order {order}", run_by_thirds(make(order), policy))
        thirds.append(results.known[key][1:])
    return 100.0 * float(np.mean(thirds))


@contextmanager
def _set(constant: str, value: float) -> Iterator[None]:
    """Use another value of a constant for a while."""
    module, _ = CONSTANTS[constant]
    name = _name(constant)
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def _name(constant: str) -> str:
    """Return the name of a constant in its module (``CONSTANTS`` adds the module if two have the name)."""
    return constant.rpartition(".")[2]
