"""Policies that poll the most urgent or overdue items: base classes, the uniform policy and the oracle."""

from __future__ import annotations

import numpy as np

from afresh.allocation.objectives import objective_for
from afresh.policy.policy import PolicyInput, PolicyItems, as_poll_arrays, largest
from afresh.values.arrays import ArrayLike, Bools, Float64s, Ints
from afresh.values.errors import UsageError


class RankingPolicy:
    """Polls the items of the largest ``urgency``; a subclass defines ``urgency`` and ``observe``."""

    def __init__(self, start: PolicyInput) -> None:
        self.items = PolicyItems(start)

    def urgency(self, now: float) -> Float64s:
        """Return the urgency of every item, including removed ones."""
        raise NotImplementedError

    def observe(self, items: ArrayLike, now: ArrayLike, changed: ArrayLike) -> None:
        raise NotImplementedError

    def next(self, now: float, k: int) -> Ints:
        def most_urgent(n: int) -> Ints:
            urgency = np.where(self.items.alive, self.urgency(now), -np.inf)
            return largest(urgency, min(n, self.items.alive_count))

        return self.items.pick(now, k, most_urgent)

    def notice(self, items: ArrayLike, now: ArrayLike, origin: str = "") -> None:
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
    """Gives each item an ``interval`` and polls the most overdue items; a subclass changes the intervals.

    Common crawlers work like this: a rule sets each item's interval, and the budget decides how late polls
    are. At first all items are due one after the other, within the time that a round of all items takes.
    """

    def __init__(self, start: PolicyInput) -> None:
        super().__init__(start)
        self.round = 1.0 / start.mean_frequency
        turn = (np.arange(start.items) + 1.0) / max(start.items, 1)
        self.due: Float64s = start.now + self.round * turn
        self.interval: Float64s = np.full(start.items, self.round)

    def urgency(self, now: float) -> Float64s:
        """Return a larger urgency for items that are due earlier."""
        del now
        return -self.due

    def observe(self, items: ArrayLike, now: ArrayLike, changed: ArrayLike) -> None:
        """Learn from polls, and set the due times of the polled items."""
        which, when, found = as_poll_arrays(items, now, changed)
        self.due[which] = self.next_due(which, when, found)
        self.items.last_poll[which] = when

    def next_due(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        """Return the due times of items polled at ``now``; ``last_poll`` still holds the poll before."""
        raise NotImplementedError

    def notice(self, items: ArrayLike, now: ArrayLike, origin: str = "") -> None:
        """Make these items due at once, whatever the origin of the notices."""
        del origin
        which = self.items.as_numbers(items)
        when = np.broadcast_to(np.asarray(now, dtype=np.float64), which.shape)
        np.minimum.at(self.due, which, when - self.round)

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        """Add new items, with an interval of one round; return their numbers."""
        numbers = super().add(weights, costs, now, families)
        self.due = np.concatenate([self.due, np.full(numbers.size, now + self.round)])
        self.interval = np.concatenate([self.interval, np.full(numbers.size, self.round)])
        return numbers

    def set_budget(self, budget: float, now: float) -> None:
        """Set the cost per time of all items, and with it the time that a round takes."""
        super().set_budget(budget, now)
        self.round = 1.0 / self.items.mean_frequency


class UniformPolicy(IntervalPolicy):
    """One interval for all items, in a fixed order (Cho & Garcia-Molina 2000, §4.3); the baseline.

    >>> policy = UniformPolicy(PolicyInput.of(3, 1.0))
    >>> policy.next(1.0, 2).tolist()
    [0, 1]
    >>> policy.observe([0, 1], 1.0, [True, False]); policy.next(2.0, 2).tolist()
    [2, 0]
    """

    def next_due(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        """Return due times one round after the last ones, whatever the polls found."""
        del now, changed
        return self.due[items] + self.round

    def notice(self, items: ArrayLike, now: ArrayLike, origin: str = "") -> None:
        """Ignore notices."""


class Oracle(RankingPolicy):
    """Knows the true rates of all items and polls by poll value; ignores notices.

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
        """Store the times of the polls; there is nothing to learn."""
        which, when, _ = as_poll_arrays(items, now, changed)
        self.items.last_poll[which] = when

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        """Add new items, whose rate is taken to be the mean of the others; return their numbers."""
        numbers = super().add(weights, costs, now, families)
        self.rate = np.concatenate([self.rate, np.full(numbers.size, self.rate.mean())])
        return numbers
