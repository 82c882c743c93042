"""The adaptive policy where it was not tuned: other windows, budgets, items and names, and simulated worlds.

Every case prints the share of the oracle's gain over uniform that adaptive captures after a warm-up of a
third, and, as the ratio judged, by how many points of freshness it is above uniform: never below −0.1.
``--case NAME`` (may be given again; the beginning of a name is enough) runs some of them. Small sizes are too
noisy to judge.

Worlds need no data. With ``AFRESH_DATA`` (see ``bench.replay``) every history in the folder is run too:
halves of its window, scarce and ample budgets, random halves of its items, names shuffled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from afresh.policy.families import families_of
from afresh.policy.policy import PolicyInput
from afresh.rates.season import HOURS, Season
from afresh.replay.change_history import ChangeHistory
from afresh.replay.change_process import RateDrift, cho_rates, gamma_rates, power_law_rates
from afresh.replay.compare import captured, replay
from afresh.replay.simulated_world import MassEdits, WorldBehaviour, simulate_world, working_hours
from afresh.values.arrays import Float64s
from bench.replay import DAY, read_history
from bench.rows import Row

WORST = -0.1  # points of freshness against uniform
OFFICE = (13, 16)  # the only hours in which a strongly daily world changes
GROUP = 20


@dataclass(frozen=True, slots=True)
class Case:
    """A history with names, and a budget; with ``hour`` None no season is looked for."""

    history: ChangeHistory
    names: list[str]
    polls_per_day: float
    hour: float | None = 3600.0


Maker = Callable[[bool], Case]


def rows(*, quick: bool, cases: Sequence[str] = ()) -> list[Row]:
    """Return one row for each case whose name begins with one of ``cases``, or for all."""
    found = []
    for name, make in (*WORLDS.items(), *_recorded()):
        if not cases or name.startswith(tuple(cases)):
            found.append(_row(name, make(quick), quick))
    return found


def _row(name: str, case: Case, quick: bool) -> Row:
    history = case.history
    budget = case.polls_per_day * history.items / DAY
    start = replace(
        PolicyInput.of(history.items, budget, now=history.start),
        families=families_of(case.names),
        hour=case.hour,
    )
    # Coarser than a replay's own, and three times as fast.
    batch = max(history.items // (10 if quick else 100), 1)
    runs = replay(history, ["adaptive", "uniform", "oracle"], start, batch=batch)
    own, uniform, oracle = (run.after.scores.freshness for run in runs)
    what = f"{name}: {own:.4f} of {uniform:.4f} to {oracle:.4f}"
    gained = captured([(own, uniform, oracle)])
    judged = not quick and case.hour is not None  # without seasons it is only for comparison
    least = WORST if judged else None
    return Row(what, gained, "captured", ratio=100.0 * (own - uniform), at_least=least)


def _world(
    nature: WorldBehaviour,
    rates_per_day: Callable[[int, np.random.Generator], Float64s],
    polls_per_day: float,
    *,
    days: float = 730.0,
    items: int = 1500,
    hour: float | None = 3600.0,
    shuffled: bool = False,
) -> Maker:
    def make(quick: bool) -> Case:
        rng = np.random.default_rng(7)
        number, length = (items // 10, days / 4) if quick else (items, days)
        # In random order: else uniform would poll a whole group at once, and its score would be chance.
        group = rng.permutation(number) // GROUP
        rates = rates_per_day(number, rng) / DAY
        world = simulate_world(rates, 0.0, length * DAY, nature, rng, group=group)
        names = [f"g{of}/i{one}" for one, of in enumerate(group)]
        if shuffled:
            rng.shuffle(names)
        history = ChangeHistory.of(number, world.item, world.time, world.start, world.end)
        return Case(history, names, polls_per_day, hour)

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
WORLDS: dict[str, Maker] = {
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
    "births and deaths": _world(WorldBehaviour(births=0.3, deaths=0.3), _USUAL, 0.05),
    "few rounds": _world(WorldBehaviour(), _USUAL, 0.05, days=80.0),
    "few rounds, mass edits": _world(_EDITS, _gamma(0.01, 2.0), 0.05, days=80.0),
    "few rounds, births and mass edits": _world(
        replace(_EDITS, births=0.8), _gamma(0.02, 1.0), 0.05, days=80.0
    ),
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


def _recorded() -> Iterator[tuple[str, Maker]]:
    """Yield the cases of every history in the folder ``AFRESH_DATA``; none where it is not set."""
    folder = os.environ.get("AFRESH_DATA")
    for path in sorted(Path(folder).glob("*.meta.json")) if folder else []:
        name = path.name.removesuffix(".meta.json")
        for what, change in CHANGES.items():
            yield f"{name}, {what}", _of_history(path.parent, name, change)


def _of_history(folder: Path, name: str, change: Callable[[Case], Case]) -> Maker:
    def make(quick: bool) -> Case:
        case = Case(*read_history(folder, name), 0.05)
        return change(_some(case, 1 / 8, 3) if quick else case)

    return make


def _half_window(place: int) -> Callable[[Case], Case]:
    def half(case: Case) -> Case:
        whole = case.history
        start = whole.start + place * whole.length / 2
        end = start + whole.length / 2
        inside = (whole.time > start) & (whole.time <= end)
        item, time = whole.change_item[inside], whole.time[inside]
        return replace(case, history=ChangeHistory.of(whole.items, item, time, start, end))

    return half


def _some(case: Case, share: float, seed: int) -> Case:
    """Keep a random share of the items."""
    whole = case.history
    kept = np.flatnonzero(np.random.default_rng(seed).random(whole.items) < share)
    new_row = np.full(whole.items, -1)
    new_row[kept] = np.arange(kept.size)
    item = new_row[whole.change_item]
    history = ChangeHistory.of(kept.size, item[item >= 0], whole.time[item >= 0], whole.start, whole.end)
    return replace(case, history=history, names=[case.names[one] for one in kept])


def _shuffled(case: Case) -> Case:
    names = [case.names[one] for one in np.random.default_rng(5).permutation(len(case.names))]
    return replace(case, names=names)


CHANGES: dict[str, Callable[[Case], Case]] = {
    "as it is": lambda case: case,
    "first half": _half_window(0),
    "second half": _half_window(1),
    "half of the items": lambda case: _some(case, 0.5, 1),
    "another half of the items": lambda case: _some(case, 0.5, 2),
    "names shuffled": _shuffled,
    "names shuffled, 0.02/item/d": lambda case: replace(_shuffled(case), polls_per_day=0.02),
    "0.01/item/d": lambda case: replace(case, polls_per_day=0.01),
    "0.3/item/d": lambda case: replace(case, polls_per_day=0.3),
}
