"""Runs one policy on one history, with polls spread evenly over the allowed time, exactly at the budget."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.adaptive.stated_changes import StatedChanges
from afresh.policy.policy import OpenTime, Policy
from afresh.replay.change_history import ChangeHistory, HistoryPoller
from afresh.values.arrays import Bools, Float64s, Ints
from afresh.values.errors import UsageError

# How often a policy chooses items in one round of all items. The oracle chooses more often, because as the
# reference it should be as good as with one poll at a time.
BATCHES_PER_ROUND, ORACLE_BATCHES = 300, 1000
LARGEST_BATCH = 333
_NO_ITEMS: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Visits:
    """The polls of a run, sorted by time: of ``item[j]`` at ``time[j]``; ``changed[j]`` is the result."""

    item: Ints
    time: Float64s
    changed: Bools

    def until(self, end: float) -> tuple[Ints, Float64s]:
        """Return a tuple (items, times) of the polls up to ``end``."""
        number = int(np.searchsorted(self.time, end, side="right"))
        return self.item[:number], self.time[:number]


@dataclass(frozen=True, slots=True)
class NoticeLog:
    """Notices of change: item and time, in order of time, and the number of its origin in ``origins``."""

    item: Ints
    time: Float64s
    origin: Ints | None = None
    origins: tuple[str, ...] = ("",)

    def tell(self, policy: Policy, begin: int, end: int) -> None:
        """Give the notices from ``begin`` to before ``end`` to the policy, those of each origin together."""
        item, time = self.item[begin:end], self.time[begin:end]
        origin = np.zeros(item.size, dtype=np.int64) if self.origin is None else self.origin[begin:end]
        for number in np.unique(origin):
            some = origin == number
            policy.notice(item[some], time[some], self.origins[number])


def run_policy(
    history: ChangeHistory,
    policy: Policy,
    budget: float,
    *,
    open_time: OpenTime | None = None,
    notices: NoticeLog | None = None,
    stamps: Float64s | None = None,
    batch: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Visits:
    """Run ``policy`` on ``history`` and return its polls.

    If ``stamps`` are given, the adaptive policy also learns from each poll when the item changed last. They
    are the times of the last changes up to the start of the history, NaN where not known; the ages of the
    first copies follow from them.

    ``budget`` is cost per unit of time; if polling is not always allowed, all of it is spent in the allowed
    time. The budget accrues evenly, and a poll is made as soon as it is paid for: nothing is spent in advance
    and nothing is saved. The policy chooses ``batch`` items at a time. ``progress`` is called with the share
    of the run that is done.

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
    dated = None if stamps is None else _tell_ages(policy, history, stamps)
    spent, given, parts = 0.0, 0, []
    while (now := clock.now(spent)) is not None:
        if notices is not None:
            upto = int(np.searchsorted(notices.time, now, side="right"))
            notices.tell(policy, given, upto)
            given = upto
        items = policy.next(now, size)
        if items.size == 0:  # caps forbid all polls now, so wait for the time of one poll
            spent += float(history.cost.min())
            continue
        costs = spent + np.cumsum(history.cost[items])
        when = clock.moments(costs)
        in_time = int(np.searchsorted(when, np.inf))
        items, when = items[:in_time], when[:in_time]
        changed = poller.poll(items, when)
        if dated is None:
            policy.observe(items, when, changed)
        else:
            since = when - poller.last_changes(items)
            dated.observe(items, when, changed, StatedChanges(since, np.full(items.size, np.nan)))
        parts.append((items, when, changed))
        spent = float(costs[-1])
        if progress is not None:
            progress(clock.share(spent))
    item, time, found = zip((_NO_ITEMS, np.zeros(0), np.zeros(0, dtype=bool)), *parts, strict=True)
    return Visits(np.concatenate(item), np.concatenate(time), np.concatenate(found))


def _tell_ages(policy: Policy, history: ChangeHistory, stamps: Float64s) -> Adaptive | None:
    """Tell the ages of the first copies to a policy that learns from stamps, and return it; None for others.
    ``stamps`` are the times of the last changes, NaN where not known."""
    if not isinstance(policy, Adaptive):
        return None
    known = np.flatnonzero(stamps < history.start)
    policy.observe_ages(known, history.start, history.start - stamps[known])
    return policy


def batch_for(items: int, batches_per_round: int = BATCHES_PER_ROUND) -> int:
    """Return how many items a policy chooses at a time: few enough to be as good as one by one.

    >>> batch_for(200), batch_for(3_000), batch_for(1_000_000)
    (1, 10, 333)
    """
    return int(np.clip(items // batches_per_round, 1, LARGEST_BATCH))


LIES = 5.0  # notices that a lying host sends for each of its changes
ROUNDING = 1e-12  # relative: a poll that is paid for exactly when polling ends is still made then


class BudgetClock:
    """Converts total cost into the time at which it is paid for. The budget accrues evenly in allowed time.
    ``open_time`` are the periods in which polling is allowed. If they are shorter than ``length``, the length
    of the history, the whole budget · length is still spent in them.

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
        """Return the time at which the next poll may be chosen after ``spent`` was spent; None at the end."""
        elapsed = spent * self.per_cost
        if elapsed >= self.total:
            return None
        at = bisect_right(self.starts, elapsed) - 1
        return float(self.open_time.opens[at]) + (elapsed - self.starts[at])

    def moments(self, spent: Float64s) -> Float64s:
        """Return the time at which each total cost ``spent`` is paid for; infinite if never.
        The end of a period in which polling is allowed counts as part of it."""
        elapsed = spent * self.per_cost
        least = elapsed * (1.0 - ROUNDING)
        at = np.searchsorted(self.before[1:], least, side="left")
        never = at == self.open_time.opens.size
        at[never] = 0
        inside = self.open_time.opens[at] + (elapsed - self.before[at])
        return np.where(never, np.inf, np.minimum(inside, self.open_time.closes[at]))

    def share(self, spent: float) -> float:
        """Return the share of the allowed time that is over after ``spent`` was spent."""
        return min(spent * self.per_cost / self.total, 1.0)


def mark_lying(host: Ints, share: float, rng: np.random.Generator) -> Bools:
    """Mark the items of a random share of the hosts, which are numbered from 0.

    >>> mark_lying(np.array([0, 0, 1, 1, 2, 3]), 0.5, np.random.default_rng(2)).tolist()
    [False, False, False, False, True, True]
    """
    if not 0 <= share <= 1:
        raise UsageError(f"notices: lying is {share:g}: must be a share of the hosts, from 0 to 1")
    hosts = int(host.max(initial=-1)) + 1
    return np.isin(host, rng.permutation(hosts)[: round(share * hosts)])


def _draw(items: Ints, count: int, rng: np.random.Generator) -> Ints:
    """Draw items at random, one for each of ``count`` notices."""
    return items[rng.integers(0, items.size, count)] if items.size else items[:0]


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
    is_lying: Bools | None = None,
) -> tuple[Ints, Float64s]:
    """Draw notices of changes; return a tuple (item, time) of arrays with an entry per notice, by time.
    ``recall`` is the probability that a change is announced, ``false`` the share of notices that are false.

    Changes of items that are marked in ``is_lying`` are never announced; instead their host announces
    ``LIES`` times as many changes as there are, of any of these items at any time.

    >>> item, time = make_notices(np.array([3, 4]), np.array([1.0, 2.0]), 9, 0.0, 5.0,
    ...                           np.random.default_rng(1), recall=1.0, false=0.0)
    >>> item.tolist(), time.tolist()
    ([3, 4], [1.0, 2.0])
    """
    if not 0 <= recall <= 1:
        raise UsageError(f"notices: recall is {recall:g}: must be from 0 to 1")
    if not 0 <= false < 1:
        raise UsageError(f"notices: false is {false:g}: must be a share of the notices, from 0 to below 1")
    lying = np.zeros(items, dtype=bool) if is_lying is None else is_lying
    honest_items, lying_items = np.flatnonzero(~lying), np.flatnonzero(lying)
    announced = (rng.random(change_item.size) < recall) & ~lying[change_item]
    false_count = rng.poisson(np.count_nonzero(announced) * false / (1 - false))
    lies = rng.poisson(LIES * np.count_nonzero(lying[change_item]))
    invented = np.concatenate([_draw(honest_items, false_count, rng), _draw(lying_items, lies, rng)])
    item = np.concatenate([change_item[announced], invented])
    time = np.concatenate([change_time[announced], rng.uniform(start, end, invented.size)])
    order = np.lexsort((item, time))
    return item[order], time[order]
