"""Uniform polling on a history without running it: its scores at any budget, whatever the number of polls.

Uniform polls the items in one order, again and again. With cⱼ the cost of the items up to place j of the
order and C that of all items, k·C + cⱼ has been spent when the item at place j is polled for the (k+1)-th
time. So the poll that sees a change is found by arithmetic: the first whose cost is earned no earlier than
the change. Caps delay single polls, so ``run_policy`` must be used with them.

The order of the items alone moves the freshness of uniform polling by more than a point in some histories, so
what is said about uniform polling is the mean over several random orders.
"""

from __future__ import annotations

import numpy as np

from afresh.policy.policy import OpenTime
from afresh.replay.change_history import ChangeHistory
from afresh.replay.policy_run import BudgetClock
from afresh.replay.scores import scores_when_seen
from afresh.values.arrays import Float64s, Ints


class UniformPolling:
    """Round robin over the items of a history in the given order; ``order[j]`` is the item at place j.

    >>> history = ChangeHistory.of(2, [0, 1], [1.5, 1.5], 0.0, 4.0)
    >>> UniformPolling(history).seen(1.0).tolist()                    # polls of 0, 1, 0, 1 at 1, 2, 3, 4
    [3.0, 2.0]
    >>> UniformPolling(history, order=np.array([1, 0])).seen(1.0).tolist()
    [2.0, 3.0]
    """

    def __init__(
        self, history: ChangeHistory, open_time: OpenTime | None = None, order: Ints | None = None
    ) -> None:
        self.history = history
        self.open_time = open_time or OpenTime.of([history.start], [history.end])
        listed = np.arange(history.items) if order is None else order
        spent = np.cumsum(history.cost[listed])
        self.round_cost = float(spent[-1])
        cost_before_poll = np.empty(history.items)
        cost_before_poll[listed] = spent
        self.first_poll: Float64s = cost_before_poll[history.change_item]
        self.open_before: Float64s = _open_time_before(self.open_time, history.time)

    def seen(self, budget: float) -> Float64s:
        """When each change is seen at this cost per time; the end of the history where it is not."""
        clock = BudgetClock(self.open_time, budget, self.history.length)
        earned = self.open_before / clock.per_cost
        rounds = np.maximum(np.ceil((earned - self.first_poll) / self.round_cost), 0.0)
        # Rounding may be off by one poll either way; and what changes while polling is not allowed may seem
        # to be seen by a poll at the moment of closing.
        earlier = clock.moments(np.maximum(rounds - 1.0, 0.0) * self.round_cost + self.first_poll)
        rounds -= (rounds > 0) & (earlier >= self.history.time)
        found = clock.moments(rounds * self.round_cost + self.first_poll)
        late = found < self.history.time
        found[late] = clock.moments((rounds[late] + 1.0) * self.round_cost + self.first_poll[late])
        return np.minimum(found, self.history.end)

    def score(self, budget: float, measure: str, begin: float, until: float | None = None) -> float:
        """The mean of a measure over the items by weight, over (``begin``, ``until``].

        >>> history = ChangeHistory.of(2, [0, 1], [1.5, 1.5], 0.0, 4.0)
        >>> UniformPolling(history).score(1.0, "freshness", 0.0)              # stale for 1.5 and 0.5 of 4 + 4
        0.75
        """
        each = scores_when_seen(self.history, self.seen(budget), begin, until)[measure]
        weight = self.history.weight if self.history.weight.sum() > 0 else np.ones(self.history.items)
        return float(weight @ each / weight.sum())


def _open_time_before(open_time: OpenTime, moments: Float64s) -> Float64s:
    """How long polling was allowed before each moment."""
    before = np.concatenate([[0.0], np.cumsum(open_time.closes - open_time.opens)])
    at = np.maximum(np.searchsorted(open_time.opens, moments, side="right") - 1, 0)
    within = np.clip(moments - open_time.opens[at], 0.0, open_time.closes[at] - open_time.opens[at])
    return np.asarray(before[at] + within)
