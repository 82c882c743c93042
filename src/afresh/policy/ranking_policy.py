"""Base classes of policies that poll the most urgent or overdue items; the uniform policy and the oracle."""

from __future__ import annotations

import numpy as np

from afresh.allocation.objectives import objective_for
from afresh.policy.policy import PolicyInput, PolicyItems, as_poll_arrays, largest
from afresh.values.arrays import ArrayLike, Bools, Float64s, Ints
from afresh.values.errors import UsageError


class RankingPolicy:
    """Polls the items with the largest ``urgency``; a subclass defines ``urgency`` and ``observe``."""

    def __init__(self, start: PolicyInput) -> None:
        self.items = PolicyItems(start)

    def urgency(self, now: float) -> Float64s:
        """Return the urgency of every item; the largest is polled first."""
        raise NotImplementedError

    def observe(self, items: ArrayLike, now: ArrayLike, changed: ArrayLike) -> None:
        raise NotImplementedError

    def next(self, now: float, k: int) -> Ints:
        return self.items.pick(now, k, lambda n: self.most_urgent(now, n))

    def most_urgent(self, now: float, n: int) -> Ints:
        """Return the n items with the largest urgency, the largest first."""
        return largest(self.urgency(now), n)

    def notice(self, items: ArrayLike, now: ArrayLike, origin: str = "") -> None:
        """Ignore notices."""


class IntervalPolicy(RankingPolicy):
    """Gives each item a polling interval and polls the most overdue items; a subclass changes the intervals.

    Common crawlers work like this: a rule sets each item's polling interval (``interval``) and with it the
    time of its next poll (``due``), and the budget decides how late polls are. ``round`` is the time in which
    the budget pays for one poll of every item. The first polls are due one by one within the first round."""

    def __init__(self, start: PolicyInput) -> None:
        super().__init__(start)
        self.round = 1.0 / start.mean_frequency
        turn = (np.arange(start.items) + 1.0) / max(start.items, 1)
        self.due: Float64s = start.now + self.round * turn
        self.interval: Float64s = np.full(start.items, self.round)

    def urgency(self, now: float) -> Float64s:
        """Return minus the due time, so that the item which was due first is the most urgent."""
        del now
        return -self.due

    def observe(self, items: ArrayLike, now: ArrayLike, changed: ArrayLike) -> None:
        """Learn from polls, and set the due times of the polled items."""
        which, when, found = as_poll_arrays(items, now, changed)
        self.due[which] = self.next_due(which, when, found)
        self.items.last_poll[which] = when

    def next_due(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        """Return the next due times of items polled at ``now``.
        When this is called, ``items.last_poll`` still holds the times of the polls before."""
        raise NotImplementedError

    def notice(self, items: ArrayLike, now: ArrayLike, origin: str = "") -> None:
        """Make these items due at once, whatever the origin of the notices."""
        del origin
        which = self.items.as_numbers(items)
        when = np.broadcast_to(np.asarray(now, dtype=np.float64), which.shape)
        # One round in the past, so that these items come before those that are overdue without a notice.
        np.minimum.at(self.due, which, when - self.round)


class UniformPolicy(IntervalPolicy):
    """The baseline: polls all items equally often, in a fixed order (Cho & Garcia-Molina 2000, §4.3).

    >>> policy = UniformPolicy(PolicyInput.of(3, 1.0))
    >>> policy.next(1.0, 2).tolist()
    [0, 1]
    >>> policy.observe([0, 1], 1.0, [True, False]); policy.next(2.0, 2).tolist()
    [2, 0]
    """

    def next_due(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        """Return due times one round after the previous due times, whatever the polls found."""
        del now, changed
        return self.due[items] + self.round

    def notice(self, items: ArrayLike, now: ArrayLike, origin: str = "") -> None:
        """Ignore notices."""


DECISIONS_AHEAD = 32  # decisions for which the oracle chooses its candidates


class Oracle(RankingPolicy):
    """Knows the true rates of all items and polls the items with the largest poll values; ignores notices.

    An item's poll value grows until it is polled, so its value at a later time is an upper bound until then.
    The items with the largest bounds are the ``candidates``. As long as enough of them are worth at least
    ``least_bound``, which is more than the bound of any other item, only the candidates are valued.

    >>> from dataclasses import replace
    >>> policy = Oracle(replace(PolicyInput.of(3, 1.0), rates=np.array([0.1, 1.0, 50.0])))
    >>> policy.next(1.0, 3).tolist()
    [1, 0, 2]
    """

    def __init__(self, start: PolicyInput) -> None:
        if start.rates is None:
            raise UsageError("the oracle needs the true rates")
        super().__init__(start)
        self.rate: Float64s = np.asarray(start.rates, dtype=np.float64)
        self.objective = objective_for(start.objective, "fixed")
        self.candidates: Ints = np.zeros(0, dtype=np.int64)
        self.least_bound, self.bound_until = 0.0, -np.inf

    def urgency(self, now: float) -> Float64s:
        """Return the poll value of every item."""
        return self._poll_values(np.arange(self.items.size), now)

    def most_urgent(self, now: float, n: int) -> Ints:
        """Return the n items with the largest poll values, the largest first."""
        if now <= self.bound_until:
            value = self._poll_values(self.candidates, now)
            best = largest(value, n)
            if 0 < n == best.size and value[best[-1]] >= self.least_bound:
                return self.candidates[best]
        self._choose_candidates(now, n)
        return super().most_urgent(now, n)

    def _choose_candidates(self, now: float, n: int) -> None:
        """Choose candidates for the next decisions; none if that would be most items."""
        polls = DECISIONS_AHEAD * n
        if not 0 < 4 * polls <= self.items.size:
            self.bound_until = -np.inf
            return
        self.bound_until = now + polls / (self.items.size * self.items.mean_frequency)
        bound = self.urgency(self.bound_until)
        self.least_bound = float(np.partition(bound, -2 * polls)[-2 * polls])
        self.candidates = np.flatnonzero(bound >= self.least_bound)

    def _poll_values(self, items: Ints, now: float) -> Float64s:
        elapsed, rate = np.maximum(now - self.items.last_poll[items], 0.0), self.rate[items]
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = self.objective.marginal(rate * elapsed) / rate**self.objective.power
        return np.asarray(np.where(rate > 0, gain, 0.0) * self.items.weight[items] / self.items.cost[items])

    def observe(self, items: ArrayLike, now: ArrayLike, changed: ArrayLike) -> None:
        """Store the times of the polls. The oracle knows the rates and learns nothing."""
        which, when, _ = as_poll_arrays(items, now, changed)
        self.items.last_poll[which] = when
