"""The adaptive policy where it was not tuned: other windows, budgets, items and names, and simulated worlds.

Every case is the mean over several seeds of a world, or random orders of the items of a history, and prints
and judges what ``bench.replay`` does: freshness of adaptive, uniform and oracle after a warm-up of a third,
its gain over uniform in each third of the window, and, as the ratio judged, by how many points adaptive is
above uniform: never more than 0.1 and two standard errors below, or 0.3 where an item gets fewer than ten
polls or even the oracle is below uniform. Cases for age and lag are judged by the ratio to uniform, which may
be 1.02. ``--case NAME`` (may be given again; the beginning of a name is enough) runs some of them. Small
sizes are too noisy to judge.

Worlds need no data. With ``AFRESH_DATA`` (see ``bench.replay``) every history in the folder is run too:
halves of its window, its first four rounds, an ample budget, random halves of its items.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from afresh.rates.season import HOURS, Season
from afresh.replay.change_history import ChangeHistory
from afresh.replay.change_process import RateDrift, cho_rates, gamma_rates, power_law_rates
from afresh.replay.simulated_world import MassEdits, WorldBehaviour, simulate_world, working_hours
from afresh.values.arrays import Float64s
from bench.replay import read_history
from bench.rows import Row
from bench.trials import BATCHES, DAY, FEW_BATCHES, Results, Trial, in_random_orders, measure, orders

OFFICE = (13, 16)  # the only hours in which a strongly daily world changes
GROUP = 20


WorldMaker = Callable[[bool, int], Trial]
"""Makes the trial of a case: whether it is to be small, and the number of its seed or order."""


def rows(*, quick: bool, cases: Sequence[str] = ()) -> list[Row]:
    """Return one row for each case whose name begins with one of ``cases``, or for all."""
    found, results = [], Results.from_environment()
    for name, make in (*WORLDS.items(), *_recorded()):
        if cases and not name.startswith(tuple(cases)):
            continue
        figures = measure(name, partial(_trial, make, quick), orders(quick), results)
        # Without seasons it is only for comparison.
        found.append(figures.row(name, judged=not quick and figures.trial.hour is not None))
    return found


def _trial(make: WorldMaker, quick: bool, number: int) -> Trial:
    return replace(make(quick, number), batches_per_round=FEW_BATCHES if quick else BATCHES)


def _world(
    nature: WorldBehaviour,
    rates_per_day: Callable[[int, np.random.Generator], Float64s],
    polls_per_day: float,
    *,
    days: float = 730.0,
    items: int = 1500,
    hour: float | None = 3600.0,
    shuffled: bool = False,
    objective: str = "freshness",
    active: float = 1.0,
) -> WorldMaker:
    """Another world for each seed; items change only in a share ``active`` of the window, at one stretch."""

    def make(quick: bool, seed: int) -> Trial:
        rng = np.random.default_rng(7 + seed)
        number, length = (items // 10, days / 4) if quick else (items, days)
        # In random order: else uniform would poll a whole group at once, and its score would be chance.
        group = rng.permutation(number) // GROUP
        rates = rates_per_day(number, rng) / active / DAY
        world = simulate_world(rates, 0.0, length * DAY, nature, rng, group=group)
        names = [f"g{of}/i{one}" for one, of in enumerate(group)]
        wakes = rng.uniform(-active, 1.0, number) * length * DAY
        since = world.time - wakes[world.item]
        kept = (since >= 0.0) & (since < active * length * DAY) if active < 1.0 else since == since
        history = ChangeHistory.of(number, world.item[kept], world.time[kept], world.start, world.end)
        trial = Trial(history, names, polls_per_day, objective, hour)
        return trial.with_names_shuffled(rng) if shuffled else trial

    return make


def _gamma(mean: float, cv: float) -> Callable[[int, np.random.Generator], Float64s]:
    return lambda items, rng: gamma_rates(items, rng, mean=mean, cv=cv)


def _heavy(items: int, rng: np.random.Generator) -> Float64s:
    return power_law_rates(items, rng, low=1e-4, high=20.0, exponent=1.3)


def _daily() -> Season:
    profile = np.zeros(HOURS)
    profile[(np.arange(HOURS) % 24 >= OFFICE[0]) & (np.arange(HOURS) % 24 < OFFICE[1])] = 1.0
    return Season(profile / profile.mean(), 3600.0)


_USUAL = _gamma(0.05, 2.0)
_OFTEN = _gamma(1.0, 1.5)
_EDITS = WorldBehaviour(mass_edits=MassEdits(12 / (365.25 * DAY), 0.7))
WORLDS: dict[str, WorldMaker] = {
    "poisson": _world(WorldBehaviour(), _USUAL, 0.05),
    "poisson, equal rates": _world(WorldBehaviour(), _gamma(0.05, 0.0), 0.05),
    "heavy tail": _world(WorldBehaviour(), _heavy, 0.05),
    "heavy tail, scarce": _world(WorldBehaviour(), _heavy, 0.01),
    "cho": _world(WorldBehaviour(), cho_rates, 1 / 30),
    "regular": _world(WorldBehaviour(shape=4.0), _USUAL, 0.05),
    "bursty": _world(WorldBehaviour(shape=0.3), _USUAL, 0.05),
    "very bursty": _world(WorldBehaviour(shape=0.1), _USUAL, 0.05),
    "drifting": _world(WorldBehaviour(drift=RateDrift(1.0, 90 * DAY)), _USUAL, 0.05),
    "drifting fast": _world(WorldBehaviour(drift=RateDrift(1.5, 20 * DAY)), _USUAL, 0.05),
    "mass edits": _world(_EDITS, _gamma(0.01, 2.0), 0.05),
    "mass edits, names shuffled": _world(_EDITS, _gamma(0.01, 2.0), 0.05, shuffled=True),
    "births": _world(WorldBehaviour(births=0.6), _USUAL, 0.05),
    "births and deaths": _world(WorldBehaviour(births=0.3, deaths=0.3), _USUAL, 0.05),
    "resting": _world(WorldBehaviour(), _USUAL, 0.05, active=0.15),
    "resting, mass edits, names shuffled": _world(_EDITS, _gamma(0.01, 2.0), 0.05, active=0.3, shuffled=True),
    "few rounds": _world(WorldBehaviour(), _USUAL, 0.05, days=80.0),
    "few rounds, mass edits": _world(_EDITS, _gamma(0.01, 2.0), 0.05, days=80.0),
    "few rounds, mass edits, names shuffled": _world(
        _EDITS, _gamma(0.01, 2.0), 0.05, days=80.0, shuffled=True
    ),
    "few rounds, equal rates": _world(WorldBehaviour(), _gamma(0.05, 0.0), 0.05, days=80.0),
    "few rounds, births and mass edits": _world(
        replace(_EDITS, births=0.8), _gamma(0.02, 1.0), 0.05, days=80.0
    ),
    "age": _world(WorldBehaviour(), _USUAL, 0.05, objective="age"),
    "age, mass edits, names shuffled": _world(
        _EDITS, _gamma(0.01, 2.0), 0.05, objective="age", shuffled=True
    ),
    "lag": _world(WorldBehaviour(), _USUAL, 0.05, objective="lag"),
    "lag, drifting": _world(WorldBehaviour(drift=RateDrift(1.0, 90 * DAY)), _USUAL, 0.05, objective="lag"),
    "working hours": _world(
        WorldBehaviour(season=working_hours(1.0, 0.8)), _OFTEN, 1.0, days=120.0, items=800
    ),
    "daily": _world(WorldBehaviour(season=_daily()), _OFTEN, 1.0, days=120.0, items=800),
    "daily, season not looked for": _world(
        WorldBehaviour(season=_daily()), _OFTEN, 1.0, days=120.0, items=800, hour=None
    ),
    "daily, polls four times a day": _world(
        WorldBehaviour(season=_daily()), _OFTEN, 4.0, days=60.0, items=500
    ),
    "daily, four times, season not looked for": _world(
        WorldBehaviour(season=_daily()), _OFTEN, 4.0, days=60.0, items=500, hour=None
    ),
}


def _recorded() -> Iterator[tuple[str, WorldMaker]]:
    """Yield the cases of every history in the folder ``AFRESH_DATA``; none where it is not set."""
    folder = os.environ.get("AFRESH_DATA")
    for path in sorted(Path(folder).glob("*.meta.json")) if folder else []:
        name = path.name.removesuffix(".meta.json")
        for what, change in CHANGES.items():
            yield f"{name}, {what}", _of_history(path.parent, name, change)


def _of_history(folder: Path, name: str, change: Callable[[Trial], Trial]) -> WorldMaker:
    @cache
    def trial(quick: bool) -> Trial:
        whole = Trial(*read_history(folder, name), 0.05)
        return change(_some(whole, 1 / 8, 3) if quick else whole)

    return lambda quick, number: in_random_orders(trial(quick))(number)


def _half_window(place: int) -> Callable[[Trial], Trial]:
    def half(trial: Trial) -> Trial:
        whole = trial.history
        start = whole.start + place * whole.length / 2
        end = start + whole.length / 2
        inside = (whole.time > start) & (whole.time <= end)
        item, time = whole.change_item[inside], whole.time[inside]
        return replace(trial, history=ChangeHistory.of(whole.items, item, time, start, end))

    return half


def _four_rounds(trial: Trial) -> Trial:
    """Only the first four rounds, at the same budget."""
    whole = trial.history
    end = whole.start + 4.0 * DAY / trial.polls_per_day
    early = whole.time <= end
    item, time = whole.change_item[early], whole.time[early]
    return replace(trial, history=ChangeHistory.of(whole.items, item, time, whole.start, end))


def _some(trial: Trial, share: float, seed: int) -> Trial:
    """Keep a random share of the items."""
    whole = trial.history
    kept = np.flatnonzero(np.random.default_rng(seed).random(whole.items) < share)
    new_row = np.full(whole.items, -1)
    new_row[kept] = np.arange(kept.size)
    item = new_row[whole.change_item]
    history = ChangeHistory.of(kept.size, item[item >= 0], whole.time[item >= 0], whole.start, whole.end)
    return replace(trial, history=history, names=[trial.names[one] for one in kept])


CHANGES: dict[str, Callable[[Trial], Trial]] = {
    "first half": _half_window(0),
    "second half": _half_window(1),
    "half of the items": lambda trial: _some(trial, 0.5, 1),
    "another half of the items": lambda trial: _some(trial, 0.5, 2),
    "four rounds": _four_rounds,
    "four rounds, 0.02/item/d": lambda trial: _four_rounds(replace(trial, polls_per_day=0.02)),
    "0.3/item/d": lambda trial: replace(trial, polls_per_day=0.3),
}
