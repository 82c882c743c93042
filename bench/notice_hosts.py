"""Notices of which half are worthless: half of the hosts announce their changes, the other half invents them.

Honest hosts announce 0.9 of their changes at once, and one in ten of their notices is false; lying hosts
announce none of theirs, and five others for each. Every row has the freshness of adaptive after a warm-up of
a third without notices, with notices but one recall and false rate for all hosts, and with those learned of
each host: the mean over several seeds. The ratio judged is the points of freshness by which the last is above
the better of the two others. Where no host lies, it may lose little to one rate for all, which is then right.

Worlds need no data. With ``AFRESH_DATA`` (see ``bench.replay``) every history in the folder is run too, with
its items dealt out to hosts at random.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.families import families_of
from afresh.policy.policy import PolicyInput
from afresh.replay.change_history import ChangeHistory
from afresh.replay.change_process import gamma_rates
from afresh.replay.policy_run import NoticeLog, batch_for, make_notices, mark_lying, run_policy
from afresh.replay.scores import scores_when_seen, seen_at
from afresh.values.arrays import Ints
from bench.replay import read_history
from bench.rows import Row
from bench.trials import BATCHES, DAY, FEW_BATCHES

RECALL, FALSE = 0.9, 0.1
SEEDS, QUICK_SEEDS = range(11, 15), range(11, 12)
MOST_LOST = 0.5  # points below one rate for all, where no host lies
_Hosts = tuple[int, float]  # items of each host, and the share of hosts that lie


def rows(*, quick: bool) -> list[Row]:
    """Return one row for each world and, where ``AFRESH_DATA`` is set and ``quick`` is not, each history."""
    cases: list[tuple[_Hosts, float]] = [((25, 0.5), 0.05)]
    if not quick:
        cases += [((25, 0.5), polls) for polls in (0.02, 0.14)]
        cases += [((3, 0.5), 0.05), ((25, 0.0), 0.05)]
    found = [_row("world", [_world(seed, quick) for seed in _seeds(quick)], *case, quick) for case in cases]
    return found + ([] if quick else list(_recorded()))


def _seeds(quick: bool) -> range:
    return QUICK_SEEDS if quick else SEEDS


def _recorded() -> Iterator[Row]:
    folder = os.environ.get("AFRESH_DATA")
    for path in sorted(Path(folder).glob("*.meta.json")) if folder else []:
        name = path.name.removesuffix(".meta.json")
        history, names = read_history(path.parent, name)
        yield _row(name, [(history, names)] * 2, (25, 0.5), 0.05, quick=False)


def _world(seed: int, quick: bool) -> tuple[ChangeHistory, list[str]]:
    """Items whose mean rates of change differ, for a year."""
    rng, items, days = np.random.default_rng(seed), 150 if quick else 1000, 365.0
    changes = rng.poisson(gamma_rates(items, rng, mean=0.05, cv=1.5) * days)
    item = np.repeat(np.arange(items), changes)
    time = rng.uniform(0.0, days * DAY, item.size)
    return ChangeHistory.of(items, item, time, 0.0, days * DAY), [f"{number}" for number in range(items)]


def _row(
    name: str, trials: list[tuple[ChangeHistory, list[str]]], hosts: _Hosts, polls: float, quick: bool
) -> Row:
    size, lying = hosts
    fresh = np.array([_run(*trial, hosts, polls, seed, quick) for seed, trial in enumerate(trials, 11)])
    alone, for_all, of_hosts = fresh.mean(axis=0)
    best = fresh[:, 1] if lying == 0.0 else fresh[:, :2].max(axis=1)
    gains = 100.0 * (fresh[:, 2] - best)
    error = gains.std(ddof=1) / np.sqrt(gains.size) if gains.size > 1 else np.inf
    what = f"{name}, {size} items per host, {lying:g} of the hosts lie, {polls:g} polls per item and day"
    figures = f"{alone:.3f} without notices, {for_all:.3f} with one rate for all, ± {error:.1f} points"
    least = None if quick else -MOST_LOST if lying == 0.0 else 0.0
    return Row(f"{what}: {figures}", float(of_hosts), "", ratio=float(gains.mean()), at_least=least)


def _run(
    history: ChangeHistory, names: list[str], hosts: _Hosts, polls: float, seed: int, quick: bool
) -> list[float]:
    """Freshness without notices, with one rate for all, and with those of each host."""
    rng, items = np.random.default_rng(seed), history.items
    host: Ints = rng.permutation(items) % max(items // hosts[0], 2)
    window = items, history.start, history.end, rng
    item, time = make_notices(
        history.change_item,
        history.time,
        *window,
        recall=RECALL,
        false=FALSE,
        is_lying=mark_lying(host, hosts[1], rng),
    )
    budget, log, found = polls * items / DAY, NoticeLog(item, time), []
    start = replace(PolicyInput.of(items, budget, now=history.start), families=families_of(names))
    for one, notices in ((start, None), (start, log), (replace(start, hosts=host), log)):
        batch = batch_for(items, FEW_BATCHES if quick else BATCHES)
        visits = run_policy(history, Adaptive(one), budget, notices=notices, batch=batch)
        seen = seen_at(history.change_item, history.time, visits.item, visits.time, history.end)
        warm = history.start + history.length / 3
        found.append(float(scores_when_seen(history, seen, warm, history.end)["freshness"].mean()))
    return found
