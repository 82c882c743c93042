"""One policy on one history: polls spread evenly over open time, within exactly the budget; and notices."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from afresh.policy.policy import OpenTime, Policy
from afresh.replay.change_history import ChangeHistory, HistoryPoller
from afresh.values.arrays import Bools, Float64s, Ints
from afresh.values.errors import UsageError

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
    >>> from afresh.policy.ranking_policy import UniformPolicy
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


ROUNDING = 1e-12  # of the open time: what is earned at the very close of a window is spent before it closes


class BudgetClock:
    """Converts cost spent into moments: cost accrues evenly in open time, and polls are made once paid for.

    With windows the whole budget of ``length`` is spent in less time.

    >>> clock = BudgetClock(OpenTime.of([0.0, 24.0], [6.0, 30.0]), budget=0.5, length=48.0)
    >>> clock.moments(np.array([1.0, 12.0, 13.0, 24.0])).tolist()    # half an hour each
    [0.5, 6.0, 24.5, 30.0]
    >>> clock.now(12.0), clock.now(24.0)
    (24.0, None)
    """

    def __init__(self, open_time: OpenTime, budget: float, length: float) -> None:
        self.open_time = open_time
        self.before: Float64s = np.concatenate([[0.0], np.cumsum(open_time.closes - open_time.opens)])
        self.starts: list[float] = self.before[:-1].tolist()
        self.total = float(self.before[-1])
        self.per_cost = self.total / (budget * length)  # open time that earns a cost of 1

    def now(self, spent: float) -> float | None:
        """When the next poll may be decided on after spending so much; None when the time is over."""
        elapsed = spent * self.per_cost
        if elapsed >= self.total:
            return None
        at = bisect_right(self.starts, elapsed) - 1
        return float(self.open_time.opens[at]) + (elapsed - self.starts[at])

    def moments(self, spent: Float64s) -> Float64s:
        """When each cost has been earned, the close of a window included; infinite if never."""
        elapsed = spent * self.per_cost
        least = elapsed * (1.0 - ROUNDING)
        at = np.searchsorted(self.before[1:], least, side="left")
        never = at == self.open_time.opens.size
        at[never] = 0
        inside = self.open_time.opens[at] + (elapsed - self.before[at])
        return np.where(never, np.inf, np.minimum(inside, self.open_time.closes[at]))

    def share(self, spent: float) -> float:
        """The share of the open time that is over."""
        return min(spent * self.per_cost / self.total, 1.0)


def make_notices(
    change_item: Ints,
    change_time: Float64s,
    items: int,
    start: float,
    end: float,
    rng: np.random.Generator,
    *,
    recall: float,
    false: float,
) -> tuple[Ints, Float64s]:
    """Item and time of every notice, sorted by time.

    >>> item, time = make_notices(np.array([3, 4]), np.array([1.0, 2.0]), 9, 0.0, 5.0,
    ...                           np.random.default_rng(1), recall=1.0, false=0.0)
    >>> item.tolist(), time.tolist()
    ([3, 4], [1.0, 2.0])
    """
    if not 0 <= recall <= 1:
        raise UsageError(f"notices: recall is {recall:g}: must be from 0 to 1")
    if not 0 <= false < 1:
        raise UsageError(f"notices: false is {false:g}: must be a share of the notices, from 0 to below 1")
    announced = rng.random(change_item.size) < recall
    false_count = rng.poisson(np.count_nonzero(announced) * false / (1 - false))
    item = np.concatenate([change_item[announced], rng.integers(0, max(items, 1), false_count)])
    time = np.concatenate([change_time[announced], rng.uniform(start, end, false_count)])
    order = np.lexsort((item, time))
    return item[order], time[order]
