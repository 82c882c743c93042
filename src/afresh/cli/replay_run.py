"""The run behind ``replay`` and ``simulate``: every policy at every budget, then reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import typer

from afresh.allocation.objectives import objective_for
from afresh.cli.items import read_caps
from afresh.cli.progress import Progress
from afresh.cli.replay_options import Asked
from afresh.cli.replay_report import as_object, print_tables, write_visits
from afresh.cli.settings_list import parse_settings, plain_number
from afresh.cli.summary import print_json
from afresh.histories.recorded import RecordedHistory, item_indices, read_events
from afresh.policy.families import families_of, number_labels
from afresh.policy.policy import OpenTime, PolicyInput
from afresh.policy.registry import POLICIES
from afresh.replay.change_history import ChangeHistory
from afresh.replay.compare import ReplayResult, replay
from afresh.replay.run import NoticeLog, make_notices
from afresh.sources.windows import Windows
from afresh.values.errors import UsageError, one_of
from afresh.values.units import unit_seconds


def replay_and_report(recorded: RecordedHistory, asked: Asked) -> None:
    """Run what was asked for, write visits and picture, print the summary."""
    _refuse_unknown_names(asked)
    for remark in recorded.remarks:
        typer.echo(f"afresh: {remark}", err=True)
    history = history_of(recorded)
    results = run_all(recorded, history, asked)
    if asked.visits is not None:
        write_visits(asked.visits, results, recorded.names)
    if asked.plot is not None:
        from afresh.cli.replay_picture import draw_replay

        warm_up_end = history.start + asked.warm_up * history.length
        draw_replay(asked.plot, results, history, warm_up_end, asked.unit)
    if asked.as_json:
        print_json(_summary(recorded, results, asked))
    else:
        title = f"{history.items:,} items, {recorded.time.size:,} changes, {asked.objective}"
        print_tables(results, asked.unit, title, asked.objective)


def history_of(recorded: RecordedHistory) -> ChangeHistory:
    """What was recorded, in arrays alone."""
    return ChangeHistory.of(
        len(recorded.names),
        recorded.item,
        recorded.time,
        recorded.start,
        recorded.end,
        weights=recorded.weight,
        costs=recorded.cost,
        values=recorded.value,
        initial=recorded.initial,
    )


def run_all(recorded: RecordedHistory, history: ChangeHistory, asked: Asked) -> list[ReplayResult]:
    """Every policy at every budget, least budget first."""
    start = _start(recorded, history, asked)
    notices = _notices(recorded, asked)
    budgets = sorted({budget.total_per_second(history.items) for budget in asked.budgets})
    results: list[ReplayResult] = []
    with Progress("replaying", float(len(budgets))) as progress:
        for done, budget in enumerate(budgets):
            results += replay(
                history,
                asked.policies,
                replace(start, budget=budget),
                warm_up=asked.warm_up,
                notices=notices,
                seed=asked.seed,
                progress=lambda share, done=done: progress.reach(done + share),  # type: ignore[misc]
            )
    return results


def _refuse_unknown_names(asked: Asked) -> None:
    objective_for(asked.objective, "fixed")
    for name in asked.policies:
        one_of("policy", name, POLICIES)
    if not asked.policies:
        raise UsageError(f"--policy names none: give some of {', '.join(POLICIES)}")


def _start(recorded: RecordedHistory, history: ChangeHistory, asked: Asked) -> PolicyInput:
    """What every policy starts from, but for the budget."""
    families = families_of(recorded.names.to_pylist())
    if recorded.group is not None:
        given = number_labels([group or None for group in recorded.group])
        families = np.concatenate([families, given[:, None]], axis=1)
    start = PolicyInput(
        budget=1.0,
        weight=history.weight,
        cost=history.cost,
        now=history.start,
        objective=asked.objective,
        families=families,
        open_time=_open_time(asked.windows, history.start, history.end),
    )
    return start if asked.caps is None else _capped(start, recorded, asked.caps, asked.unit)


def _capped(start: PolicyInput, recorded: RecordedHistory, path: str, unit: str) -> PolicyInput:
    """With the caps of a file, in the budget's cost units per unit of time."""
    if recorded.group is None:
        raise UsageError(f"--caps needs a column 'group' in {recorded.items_path}")
    caps = read_caps(path, list(dict.fromkeys(recorded.group)), recorded.items_path)
    place = {group: number for number, group in enumerate(caps)}
    group = np.array([place.get(name, len(caps)) for name in recorded.group], dtype=np.int64)
    return replace(start, cap_group=group, caps=np.array(list(caps.values())) / unit_seconds(unit))


def _open_time(texts: Sequence[str], start: float, end: float) -> OpenTime | None:
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


def _notices(recorded: RecordedHistory, asked: Asked) -> NoticeLog | None:
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
        return NoticeLog(*made)
    table = read_events(asked.notices, recorded.names, recorded.start, recorded.end)
    item, time = item_indices(table, recorded.names), table.times("time")
    order = np.argsort(time, kind="stable")
    return NoticeLog(item[order], time[order])


def _summary(recorded: RecordedHistory, results: Sequence[ReplayResult], asked: Asked) -> dict[str, object]:
    return {
        "items": len(recorded.names),
        "changes": int(recorded.time.size),
        "start": recorded.start,
        "end": recorded.end,
        "warm_up": asked.warm_up,
        "objective": asked.objective,
        "unit": asked.unit,
        "policies": [as_object(result, asked.unit) for result in results],
    }
