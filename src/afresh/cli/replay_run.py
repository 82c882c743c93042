"""The run behind ``replay`` and ``simulate``: every policy at every budget, scored, then reported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import typer

from afresh.allocation.objectives import objective_for
from afresh.cli.progress import Progress
from afresh.cli.replay_options import Asked
from afresh.cli.replay_report import Figures, Outcome, as_object, print_tables, write_visits
from afresh.cli.settings_list import parse_settings, plain_number
from afresh.cli.summary import print_json
from afresh.policy.families import families_of, numbered
from afresh.policy.opening import OpenTime
from afresh.policy.policy import Start
from afresh.policy.table import POLICIES, make_policy
from afresh.replay.hearsay import make_notices
from afresh.replay.history import NEVER, History
from afresh.replay.recorded import Recorded, places_of, read_events
from afresh.replay.run import Hints, Visits, run_policy
from afresh.replay.scores import Scores, scores
from afresh.sources.windows import Windows
from afresh.values.errors import UsageError, one_of

YARDSTICKS = ("uniform", "oracle")


def replay_and_report(recorded: Recorded, asked: Asked) -> None:
    """Run what was asked for, write visits and picture, print the summary."""
    _refuse_unknown_names(asked)
    for remark in recorded.remarks:
        typer.echo(f"afresh: {remark}", err=True)
    history = History.of(
        len(recorded.names),
        recorded.item,
        recorded.time,
        recorded.start,
        recorded.end,
        weights=recorded.weight,
        costs=recorded.cost,
    )
    outcomes = run_all(recorded, history, asked)
    if asked.visits is not None:
        write_visits(asked.visits, outcomes, recorded.names)
    if asked.plot is not None:
        from afresh.cli.replay_picture import draw_replay

        draw_replay(asked.plot, outcomes, history, _warm_up_end(history, asked), asked.unit)
    if asked.as_json:
        print_json(_summary(recorded, outcomes, asked))
    else:
        title = f"{history.items:,} items, {recorded.time.size:,} changes, {asked.objective}"
        print_tables(outcomes, asked.unit, title)


def run_all(recorded: Recorded, history: History, asked: Asked) -> list[Outcome]:
    """Every policy at every budget, least budget first; the yardsticks run even if nobody asks for them."""
    start = _start(recorded, history, asked)
    hints = _hints(recorded, asked)
    budgets = sorted({budget.total_per_second(history.items) for budget in asked.budgets})
    names = [*asked.policies, *(name for name in YARDSTICKS if name not in asked.policies)]
    outcomes: list[Outcome] = []
    with Progress("replaying", float(len(names) * len(budgets))) as progress:
        for budget in budgets:
            visits = {}
            for name in names:
                policy = make_policy(name, replace(start, budget=budget))
                step = partial(_reach, progress, math.floor(progress.done))
                visits[name] = run_policy(
                    history, policy, budget, opening=start.opening, hints=hints, progress=step
                )
                progress.reach(math.floor(progress.done) + 1)
            outcomes += _scored(history, visits, budget, asked)
    return outcomes


def _reach(progress: Progress, before: int, share: float) -> None:
    progress.reach(before + min(share, 0.999))  # the next whole number is for the end of the run


def _refuse_unknown_names(asked: Asked) -> None:
    objective_for(asked.objective, "fixed")
    for name in asked.policies:
        one_of("policy", name, POLICIES)
    if not asked.policies:
        raise UsageError(f"--policy names none: give some of {', '.join(POLICIES)}")


def _start(recorded: Recorded, history: History, asked: Asked) -> Start:
    """What every policy starts from, but for the budget."""
    families = families_of(recorded.names.to_pylist())
    if recorded.group is not None:
        given = numbered([group or None for group in recorded.group])
        families = np.concatenate([families, given[:, None]], axis=1)
    return Start(
        budget=1.0,
        weight=history.weight,
        cost=history.cost,
        now=history.start,
        objective=asked.objective,
        families=families,
        opening=_opening(asked.windows, history.start, history.end),
        rates=history.rates(NEVER),
    )


def _opening(texts: Sequence[str], start: float, end: float) -> OpenTime | None:
    """The windows that open between start and end."""
    if not texts:
        return None
    windows = Windows.parse(tuple(texts), "UTC")
    opens, closes, now = [], [], start
    while (now := windows.next_opening_s(now)) < end:
        until = min(windows.closes_s(now), end)
        opens.append(now)
        closes.append(until)
        now = until
    if not opens:
        raise UsageError(f"--windows {', '.join(texts)}: none opens between --start and --end")
    return OpenTime.of(opens, closes)


def _hints(recorded: Recorded, asked: Asked) -> Hints | None:
    """Notices from a file, or made up for this history where settings are given instead."""
    if asked.notices is None:
        return None
    if "=" in asked.notices and not Path(asked.notices).exists():
        chosen = parse_settings(
            "--notices", asked.notices, {"recall": (plain_number, 0.8), "false": (plain_number, 0.1)}
        )
        rng = np.random.default_rng(asked.seed)
        made = make_notices(
            recorded.item, recorded.time, len(recorded.names), recorded.start, recorded.end, rng, **chosen
        )
        return Hints(*made)
    table = read_events(asked.notices, recorded.names, recorded.start, recorded.end)
    item, time = places_of(table, recorded.names), table.times("time")
    order = np.argsort(time, kind="stable")
    return Hints(item[order], time[order])


def _scored(history: History, visits: dict[str, Visits], budget: float, asked: Asked) -> list[Outcome]:
    begins = (history.start, _warm_up_end(history, asked))
    found: dict[str, list[Scores]] = {}
    for name, run in visits.items():
        # The same resampled items for all policies, so that their intervals can be compared.
        found[name] = [
            scores(history, run.item, run.time, begin, np.random.default_rng(asked.seed)) for begin in begins
        ]
    outcomes = []
    for name in asked.policies:
        uniform, oracle = (found[yard] for yard in YARDSTICKS)
        whole, after = (
            _figures(found[name][part], uniform[part], oracle[part], asked.objective) for part in (0, 1)
        )
        run = visits[name]
        outcomes.append(Outcome(name, budget, whole, after, run.item, run.time, run.changed))
    return outcomes


def _figures(own: Scores, uniform: Scores, oracle: Scores, objective: str) -> Figures:
    metric = objective if hasattr(own, objective) else "freshness"  # harmonic staleness is not measured
    mine, least, most = (float(getattr(one, metric)) for one in (own, uniform, oracle))
    captured = (mine - least) / (most - least) if most != least else math.nan
    return Figures(own.freshness, own.low, own.high, own.age, own.missed, own.visits, captured)


def _warm_up_end(history: History, asked: Asked) -> float:
    return history.start + asked.warm_up * history.length


def _summary(recorded: Recorded, outcomes: Sequence[Outcome], asked: Asked) -> dict[str, object]:
    return {
        "items": len(recorded.names),
        "changes": int(recorded.time.size),
        "start": recorded.start,
        "end": recorded.end,
        "warm_up": asked.warm_up,
        "objective": asked.objective,
        "unit": asked.unit,
        "policies": [as_object(outcome, asked.unit) for outcome in outcomes],
    }
