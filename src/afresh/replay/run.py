"""One policy on one history: polls evenly in open time, each a bit, within exactly the budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from afresh.policy.open_time import OpenTime
from afresh.policy.policy import Policy
from afresh.replay.budget_clock import BudgetClock
from afresh.replay.change_history import ChangeHistory, HistoryPoller
from afresh.values.arrays import Bools, Float64s, Ints

# Decisions while every item is polled once. The yardstick is to be the index rule one poll at a time.
BATCHES_PER_ROUND, ORACLE_BATCHES = 300, 1000
MOST_AT_ONCE = 333


@dataclass(frozen=True, slots=True)
class Visits:
    """Poll j was of ``item[j]`` at ``time[j]`` and found a change or not; in order of time."""

    item: Ints
    time: Float64s
    changed: Bools


@dataclass(frozen=True, slots=True)
class NoticeLog:
    """Notices of change: item and time, in order of time."""

    item: Ints
    time: Float64s


def run_policy(
    history: ChangeHistory,
    policy: Policy,
    budget: float,
    *,
    opening: OpenTime | None = None,
    hints: NoticeLog | None = None,
    batch: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Visits:
    """Every poll that ``policy`` makes. ``budget`` is cost per time; with windows the same in less time.

    A poll is made when the cost of all polls up to it has been earned; nothing is spent in advance and
    nothing hoarded. ``progress`` is told the share that is done.

    >>> from afresh.policy.policy import PolicyInput
    >>> from afresh.policy.rivals.uniform_policy import UniformPolicy
    >>> history = ChangeHistory.of(2, [0], [1.5], 0.0, 4.0)
    >>> visits = run_policy(history, UniformPolicy(PolicyInput.of(2, 1.0)), 1.0)
    >>> visits.item.tolist(), visits.time.tolist(), visits.changed.tolist()
    ([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], [False, False, True, False])
    """
    window = OpenTime.always(history.start, history.end) if opening is None else opening
    pace, watch = BudgetClock(window, budget, history.length), HistoryPoller(history)
    size = batch or batch_for(history.items)
    spent, heard, out = 0.0, 0, []
    while (now := pace.now(spent)) is not None:
        if hints is not None:
            upto = int(np.searchsorted(hints.time, now, side="right"))
            policy.notice(hints.item[heard:upto], hints.time[heard:upto])
            heard = upto
        items = policy.next(now, size)
        if items.size == 0:  # caps forbid any: the time of one poll passes
            spent += float(history.cost.min())
            continue
        costs = spent + np.cumsum(history.cost[items])
        when = pace.moments(costs)
        in_time = int(np.searchsorted(when, np.inf))
        items, when = items[:in_time], when[:in_time]
        changed = watch.poll(items, when)
        policy.observe(items, when, changed)
        out.append((items, when, changed))
        spent = float(costs[-1])
        if progress is not None:
            progress(pace.share(spent))
    return _joined(out)


def batch_for(items: int, batches_per_round: int = BATCHES_PER_ROUND) -> int:
    """How many items are decided on at a time: so few that it is as good as one by one.

    >>> batch_for(200), batch_for(3_000), batch_for(1_000_000)
    (1, 10, 333)
    """
    return int(np.clip(items // batches_per_round, 1, MOST_AT_ONCE))


def _joined(parts: list[tuple[Ints, Float64s, Bools]]) -> Visits:
    if not parts:
        return Visits(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=bool))
    item, time, changed = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Visits(item, time, changed)
