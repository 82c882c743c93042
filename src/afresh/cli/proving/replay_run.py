"""Runs every policy at every budget for ``replay`` and ``simulate``, and reports the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from afresh.allocation.objectives import objective_for
from afresh.cli.options import SettingReaders, parse_number, parse_settings
from afresh.cli.planning.planned_items import read_caps
from afresh.cli.progress import ProgressBar
from afresh.cli.proving.replay_commands import ReplayOptions
from afresh.cli.proving.replay_report import as_object, draw_replay, print_tables, write_visits
from afresh.cli.summary import print_json, print_note
from afresh.histories.recorded import RecordedHistory, item_indices, read_notices
from afresh.policy.families import families_of, number_labels
from afresh.policy.policy import OpenTime, PolicyInput
from afresh.policy.registry import POLICIES
from afresh.replay.change_history import ChangeHistory
from afresh.replay.compare import ReplayResult, replay
from afresh.replay.policy_run import NoticeLog, make_notices, mark_lying
from afresh.replay.uniform_needs import add_uniform_needs
from afresh.sources.windows import Windows
from afresh.values.arrays import Ints
from afresh.values.errors import UsageError, one_of
from afresh.values.units import unit_seconds

_MADE_UP: SettingReaders = {
    "recall": (parse_number, 0.8),
    "false": (parse_number, 0.1),
    "hosts": (parse_number, 1.0),
    "lying": (parse_number, 0.0),
}


def replay_and_report(recorded: RecordedHistory, options: ReplayOptions) -> None:
    """Run the policies on a history, write the polls and the picture, and print the summary."""
    _refuse_unknown_names(options)
    for remark in recorded.remarks:
        print_note(f"afresh: {remark}")
    history = _change_history(recorded)
    start = _policy_input(recorded, history, options)
    results = _compare_with_uniform(history, _run_all(recorded, history, start, options), start, options)
    if options.visits is not None:
        write_visits(options.visits, results, recorded.names)
    if options.plot is not None:
        warm_up_end = history.start + options.warm_up * history.length
        draw_replay(options.plot, results, history, warm_up_end, options.unit)
    if options.as_json:
        print_json(_summary(recorded, results, options))
    else:
        title = f"{history.items:,} items, {recorded.time.size:,} changes, {options.objective}"
        print_tables(results, options.unit, title, options.objective)


def _change_history(recorded: RecordedHistory) -> ChangeHistory:
    """Return the recorded history as arrays, in which items are numbers instead of names."""
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


def _run_all(
    recorded: RecordedHistory, history: ChangeHistory, start: PolicyInput, options: ReplayOptions
) -> list[ReplayResult]:
    """Run every policy at every budget, the smallest budget first."""
    notices, hosts = _read_notices(recorded, options)
    start = replace(start, hosts=hosts)
    budgets = sorted({budget.total_per_second(history.items) for budget in options.budgets})
    results: list[ReplayResult] = []
    with ProgressBar("replaying", float(len(budgets))) as progress:
        for done, budget in enumerate(budgets):
            results += replay(
                history,
                options.policies,
                replace(start, budget=budget),
                warm_up=options.warm_up,
                notices=notices,
                stamps=recorded.modified if options.stamps else None,
                seed=options.seed,
                progress=partial(_reach_share, progress, done),
            )
    return results


def _compare_with_uniform(
    history: ChangeHistory, results: Sequence[ReplayResult], start: PolicyInput, options: ReplayOptions
) -> list[ReplayResult]:
    """Return the results with ``uniform_needs`` added: the factor by which uniform polling needs more budget
    for the same freshness."""
    found: list[ReplayResult] = []
    budgets = len({result.budget for result in results})
    with ProgressBar("polling uniformly at other budgets", float(budgets)) as progress:
        for done, (budget, group) in enumerate(groupby(results, key=lambda result: result.budget)):
            found += add_uniform_needs(
                history,
                list(group),
                replace(start, budget=budget),
                warm_up=options.warm_up,
                seed=options.seed,
                progress=partial(_reach_share, progress, done),
            )
    return found


def _reach_share(progress: ProgressBar, done: int, share: float) -> None:
    progress.reach(done + share)


def _refuse_unknown_names(options: ReplayOptions) -> None:
    objective_for(options.objective, "fixed")
    for name in options.policies:
        one_of("policy", name, POLICIES)
    if not options.policies:
        raise UsageError(f"--policy names none: give some of {', '.join(POLICIES)}")


def _policy_input(recorded: RecordedHistory, history: ChangeHistory, options: ReplayOptions) -> PolicyInput:
    """Return the input with which every policy starts. Its budget is a placeholder that is replaced later."""
    families = families_of(recorded.names.tolist())
    if recorded.group is not None:
        given = number_labels([group or None for group in recorded.group])
        families = np.concatenate([families, given[:, None]], axis=1)
    start = PolicyInput(
        budget=1.0,
        weight=history.weight,
        cost=history.cost,
        now=history.start,
        objective=options.objective,
        families=families,
        open_time=_find_open_time(options.windows or (), history.start, history.end),
    )
    return start if options.caps is None else _with_caps(start, recorded, options.caps, options.unit)


def _with_caps(start: PolicyInput, recorded: RecordedHistory, path: str, unit: str) -> PolicyInput:
    """Return ``start`` with the caps of the file ``path``, which are in cost units per ``unit`` of time."""
    if recorded.group is None:
        raise UsageError(f"--caps needs a column 'group' in {recorded.items_path}")
    caps = read_caps(path, list(dict.fromkeys(recorded.group)), recorded.items_path)
    number_of = {group: number for number, group in enumerate(caps)}
    group = np.array([number_of.get(name, len(caps)) for name in recorded.group], dtype=np.int64)
    return replace(start, cap_group=group, caps=np.array(list(caps.values())) / unit_seconds(unit))


def _find_open_time(texts: Sequence[str], start: float, end: float) -> OpenTime | None:
    """Return the allowed hours between ``start`` and ``end`` (Unix seconds), or None if ``texts`` is empty.

    ``texts`` are weekly windows such as "22:00-06:00 Mon-Fri", in UTC."""
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


def _read_notices(recorded: RecordedHistory, options: ReplayOptions) -> tuple[NoticeLog | None, Ints | None]:
    """Read the notices of a file, or generate notices if ``--notices`` is settings such as recall=0.8; return
    them, and the host of each item if items have several."""
    if options.notices is None:
        return None, None
    if "=" in options.notices and not Path(options.notices).exists():
        return _made_up_notices(
            recorded, parse_settings("--notices", options.notices, _MADE_UP), options.seed
        )
    table = read_notices(options.notices, recorded.names, recorded.start, recorded.end)
    item, time = item_indices(table, recorded.names), table.times("time")
    order = np.argsort(time, kind="stable")
    labels = table.text("origin").tolist() if "origin" in table else [""] * time.size
    origins, origin = np.unique(labels, return_inverse=True)
    log = NoticeLog(item[order], time[order], origin[order], tuple(origins.tolist()))
    return log, _hosts_of(recorded)


def _made_up_notices(
    recorded: RecordedHistory, chosen: dict[str, float], seed: int
) -> tuple[NoticeLog, Ints | None]:
    """Generate notices; some hosts may lie: the items' own, or so many as the settings say."""
    items, count = len(recorded.names), chosen["hosts"]
    if count < 1 or count != int(count):
        raise UsageError(f"--notices, hosts: {count:g} is not a number of hosts")
    dealing = np.random.default_rng([seed, 1])  # of its own, so that hosts leave other notices as they are
    own = _hosts_of(recorded)
    hosts = dealing.permutation(items) % int(count) if own is None or count > 1 else own
    is_lying = mark_lying(hosts, chosen["lying"], dealing)
    rng, window = np.random.default_rng(seed), (recorded.start, recorded.end)
    quality = {name: chosen[name] for name in ("recall", "false")}
    made = make_notices(recorded.item, recorded.time, items, *window, rng, **quality, is_lying=is_lying)
    return NoticeLog(*made), hosts


def _hosts_of(recorded: RecordedHistory) -> Ints | None:
    """Return a number for the host of each item: its group, or the host of its URL; None without either."""
    if recorded.group is not None:
        return np.unique([group or "" for group in recorded.group], return_inverse=True)[1]
    hosts = [urlsplit(name).netloc for name in recorded.names.tolist()]
    return np.unique(hosts, return_inverse=True)[1] if any(hosts) else None


def _summary(
    recorded: RecordedHistory, results: Sequence[ReplayResult], options: ReplayOptions
) -> dict[str, object]:
    return {
        "items": len(recorded.names),
        "changes": int(recorded.time.size),
        "start": recorded.start,
        "end": recorded.end,
        "warm_up": options.warm_up,
        "objective": options.objective,
        "unit": options.unit,
        "policies": [as_object(result, options.unit) for result in results],
    }
