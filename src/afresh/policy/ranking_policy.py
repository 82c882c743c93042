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
        """Return the urgency of every item, including removed ones; the largest is polled first."""
        raise NotImplementedError

    def observe(self, items: ArrayLike, now: ArrayLike, changed: ArrayLike) -> None:
        raise NotImplementedError

    def next(self, now: float, k: int) -> Ints:
        def most_urgent(n: int) -> Ints:
            urgency = np.where(self.items.alive, self.urgency(now), -np.inf)
            return largest(urgency, min(n, self.items.alive_count))

        return self.items.pick(now, k, most_urgent)

    def notice(self, items: ArrayLike, now: ArrayLike, source: str = "") -> None:
        """Ignore notices."""

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        del families
        return self.items.add(weights, costs, now)

    def remove(self, items: ArrayLike) -> None:
        self.items.remove(items)

    def reweigh(self, items: ArrayLike, weights: ArrayLike, costs: ArrayLike) -> None:
        self.items.reweigh(items, weights, costs)

    def set_budget(self, budget: float, now: float) -> None:
        del now
        self.items.set_budget(budget)

    def refit(self, now: float) -> None:
        """Do nothing, because this policy learns each item separately and shares nothing between items."""


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

    def notice(self, items: ArrayLike, now: ArrayLike, source: str = "") -> None:
        """Make these items due at once, whatever the source of the notices."""
        del source
        which = self.items.as_numbers(items)
        when = np.broadcast_to(np.asarray(now, dtype=np.float64), which.shape)
        # One round in the past, so that these items come before those that are overdue without a notice.
        np.minimum.at(self.due, which, when - self.round)

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        """Add new items, with a polling interval of one round; return their numbers."""
        numbers = super().add(weights, costs, now, families)
        self.due = np.concatenate([self.due, np.full(numbers.size, now + self.round)])
        self.interval = np.concatenate([self.interval, np.full(numbers.size, self.round)])
        return numbers

    def set_budget(self, budget: float, now: float) -> None:
        """Set the budget, and with it the time that a round of all items takes."""
        super().set_budget(budget, now)
        self.round = 1.0 / self.items.mean_frequency


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

    def notice(self, items: ArrayLike, now: ArrayLike, source: str = "") -> None:
        """Ignore notices."""


class Oracle(RankingPolicy):
    """Knows the true rates of all items and polls the items with the largest poll values; ignores notices.

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

    def urgency(self, now: float) -> Float64s:
        """Return the poll value of every item."""
        elapsed = np.maximum(now - self.items.last_poll, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = self.objective.marginal(self.rate * elapsed) / self.rate**self.objective.power
        return np.asarray(np.where(self.rate > 0, gain, 0.0) * self.items.weight / self.items.cost)

    def observe(self, items: ArrayLike, now: ArrayLike, changed: ArrayLike) -> None:
        """Store the times of the polls. The oracle knows the rates and learns nothing."""
        which, when, _ = as_poll_arrays(items, now, changed)
        self.items.last_poll[which] = when

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        """Add new items, whose rates are assumed to be the mean rate of the others; return their numbers."""
        numbers = super().add(weights, costs, now, families)
        self.rate = np.concatenate([self.rate, np.full(numbers.size, self.rate.mean())])
        return numbers
