"""One policy on one history: polls spread evenly over open time, within exactly the budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from afresh.policy.open_time import OpenTime
from afresh.policy.policy import Policy
from afresh.replay.budget_clock import BudgetClock
from afresh.replay.change_history import ChangeHistory, HistoryPoller
from afresh.values.arrays import Bools, Float64s, Ints

# Decisions while every item is polled once; the oracle is to be as good as one poll at a time.
BATCHES_PER_ROUND, ORACLE_BATCHES = 300, 1000
LARGEST_BATCH = 333


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
    open_time: OpenTime | None = None,
    notices: NoticeLog | None = None,
    batch: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Visits:
    """Every poll that ``policy`` makes; ``budget`` is cost per time, and windows do not reduce it.

    A poll is made when the cost of all polls up to it has been earned: nothing is spent in advance, and
    nothing is saved up. ``batch`` items are decided on at a time. ``progress`` is told the share that is
    done.

    >>> from afresh.policy.policy import PolicyInput
    >>> from afresh.policy.rivals.ranking_policy import UniformPolicy
    >>> history = ChangeHistory.of(2, [0], [1.5], 0.0, 4.0)
    >>> visits = run_policy(history, UniformPolicy(PolicyInput.of(2, 1.0)), 1.0)
    >>> visits.item.tolist(), visits.time.tolist(), visits.changed.tolist()
    ([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], [False, False, True, False])
    """
    always = OpenTime.of([history.start], [history.end])
    clock, poller = BudgetClock(open_time or always, budget, history.length), HistoryPoller(history)
    size = batch or batch_for(history.items)
    spent, given, parts = 0.0, 0, []
    while (now := clock.now(spent)) is not None:
        if notices is not None:
            upto = int(np.searchsorted(notices.time, now, side="right"))
            policy.notice(notices.item[given:upto], notices.time[given:upto])
            given = upto
        items = policy.next(now, size)
        if items.size == 0:  # caps forbid any: the time of one poll passes
            spent += float(history.cost.min())
            continue
        costs = spent + np.cumsum(history.cost[items])
        when = clock.moments(costs)
        in_time = int(np.searchsorted(when, np.inf))
        items, when = items[:in_time], when[:in_time]
        changed = poller.poll(items, when)
        policy.observe(items, when, changed)
        parts.append((items, when, changed))
        spent = float(costs[-1])
        if progress is not None:
            progress(clock.share(spent))
    if not parts:
        return Visits(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=bool))
    item, time, found = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Visits(item, time, found)


def batch_for(items: int, batches_per_round: int = BATCHES_PER_ROUND) -> int:
    """How many items are decided on at a time: so few that it is as good as one by one.

    >>> batch_for(200), batch_for(3_000), batch_for(1_000_000)
    (1, 10, 333)
    """
    return int(np.clip(items // batches_per_round, 1, LARGEST_BATCH))
