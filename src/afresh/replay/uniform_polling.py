"""The scores of uniform polling on a history at any budget, computed without running its polls.

Uniform polling repeats one sequence of all items. Let cⱼ be the total cost of the items up to place j of this
sequence, and C that of all items. Then the total cost is k·C + cⱼ when the item at place j is polled for the
(k+1)-th time. So the k of the poll that finds a change, the first one at or after it, is computed directly.

A group of items may have a cap that is lower than its part of the budget. It then has its own sequence and
spends exactly its cap, and the other groups share the rest: the frequency f of all items is such that
Σ min(cap, f·C) over the groups is the budget, with C the cost of a group.

The sequence alone changes the freshness of uniform polling by more than a percentage point in some histories.
Therefore the freshness reported for uniform polling is the mean over several random sequences.
"""

from __future__ import annotations

import numpy as np

from afresh.policy.policy import OpenTime, PolicyInput
from afresh.replay.change_history import ChangeHistory
from afresh.replay.policy_run import BudgetClock
from afresh.values.arrays import Float64s, Ints


class UniformPolling:
    """Polls the items of a history in turn; ``order[j]`` is the item at place j of the sequence.

    >>> history = ChangeHistory.of(2, [0, 1], [1.5, 1.5], 0.0, 4.0)
    >>> UniformPolling(history).seen(1.0).tolist()                    # polls of 0, 1, 0, 1 at 1, 2, 3, 4
    [3.0, 2.0]
    >>> UniformPolling(history, order=np.array([1, 0])).seen(1.0).tolist()
    [2.0, 3.0]
    """

    def __init__(
        self, history: ChangeHistory, start: PolicyInput | None = None, order: Ints | None = None
    ) -> None:
        """Prepare uniform polling within the allowed time and the caps of ``start``."""
        self.history = history
        always = OpenTime.of([history.start], [history.end])
        self.open_time = (start and start.open_time) or always
        self.caps: Float64s = np.append(np.zeros(0) if start is None else start.caps, np.inf)
        group: Ints = np.full(history.items, self.caps.size - 1)  # items without a cap are the last group
        if start is not None and start.cap_group is not None:
            group = np.minimum(start.cap_group, self.caps.size - 1)
        given: Ints = np.arange(history.items) if order is None else order
        listed = given[np.argsort(group[given], kind="stable")]
        self.group_cost: Float64s = np.bincount(group, history.cost, minlength=self.caps.size).astype(
            np.float64
        )
        cost = np.empty(history.items)
        cost[listed] = np.cumsum(history.cost[listed])
        before = np.cumsum(self.group_cost) - self.group_cost
        self.first_poll: Float64s = (cost - before[group])[history.change_item]
        self.change_group: Ints = group[history.change_item]
        self.open_before: Float64s = _open_time_before(self.open_time, history.time)

    def seen(self, budget: float) -> Float64s:
        """Return the time at which each change is found, at this budget (cost per unit of time).
        For changes that are not found it is the end of the history."""
        total = float(np.sum(self.open_time.closes - self.open_time.opens))
        clock = BudgetClock(self.open_time, total / self.history.length, self.history.length)
        # The cost per unit of allowed time: the whole budget is spent in the time when polling is allowed.
        rate = group_rates(self.caps, self.group_cost, budget * self.history.length / total)
        with np.errstate(divide="ignore"):
            per_cost = (1.0 / rate)[self.change_group]
        per_round = per_cost * self.group_cost[self.change_group]
        first = per_cost * self.first_poll
        rounds = np.maximum(np.ceil((self.open_before - first) / per_round), 0.0)
        # Rounding may give one poll too early or too late. Also, a change while polling is not allowed may
        # seem to be found by a poll at the end of the previous allowed period.
        earlier = clock.moments(np.maximum(rounds - 1.0, 0.0) * per_round + first)
        rounds -= (rounds > 0) & (earlier >= self.history.time)
        found = clock.moments(rounds * per_round + first)
        late = found < self.history.time
        found[late] = clock.moments((rounds[late] + 1.0) * per_round[late] + first[late])
        return np.minimum(found, self.history.end)


def group_rates(caps: Float64s, cost: Float64s, budget: float) -> Float64s:
    """Return what each group spends per unit of time: min(cap, f·cost), with one frequency f for all.
    ``cost`` is the cost of one poll of all items of each group. f is such that the sum is the budget.

    >>> group_rates(np.array([1.0, np.inf]), np.array([5.0, 5.0]), 6.0).tolist()
    [1.0, 5.0]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        reached = np.where(cost > 0, caps / cost, np.inf)  # the frequency at which a cap is reached
    left, free = budget, float(cost.sum())
    for group in np.argsort(reached, kind="stable"):
        if not left > reached[group] * free:
            break
        left, free = left - caps[group], free - cost[group]
    frequency = left / free if free > 0 else np.inf
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(cost > 0, np.minimum(caps, frequency * cost), 0.0))


def _open_time_before(open_time: OpenTime, moments: Float64s) -> Float64s:
    """Return for how long polling was allowed before each moment."""
    before = np.concatenate([[0.0], np.cumsum(open_time.closes - open_time.opens)])
    at = np.maximum(np.searchsorted(open_time.opens, moments, side="right") - 1, 0)
    within = np.clip(moments - open_time.opens[at], 0.0, open_time.closes[at] - open_time.opens[at])
    return np.asarray(before[at] + within)
