"""The items of a policy: weights, costs, which still exist, when each was last polled, and its limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from afresh.policy.policy import PolicyInput, check_budget, check_costs
from afresh.values.arrays import ArrayLike, Bools, Float64s, Ints, nonnegative
from afresh.values.errors import InputError


@dataclass(slots=True)
class CapAllowances:
    """What each group of items with a cap on its cost per time may spend, such as a host's politeness.

    Item i is in ``group[i]``; groups past the end of ``cap`` have no limit. A group's allowance fills at the
    rate of its cap and is spent by its polls. It never holds more than one batch or one poll, whichever is
    more, so that idle time is not saved up for a burst.

    >>> caps = CapAllowances.of(np.array([0, 0, 1]), np.array([0.5]), np.ones(3), 0.0)
    >>> caps.allowed(np.array([0, 1, 2]), 4.0).tolist()       # cap · 4 = 2 polls
    [True, True, True]
    >>> caps.spend(np.array([0, 1]))
    >>> caps.allowed(np.array([0, 1, 2]), 5.0).tolist()
    [False, False, True]
    """

    group: Ints
    cap: Float64s
    cost: Float64s
    largest: Float64s
    allowance: Float64s
    at: float

    @classmethod
    def of(cls, group: Ints, cap: Float64s, cost: Float64s, now: float) -> CapAllowances:
        """Every group starts with an allowance of one poll."""
        largest = np.zeros(cap.size + 1)
        np.maximum.at(largest, np.minimum(group, cap.size), cost)
        return cls(group, cap, cost, largest[:-1], largest[:-1].copy(), now)

    def allowed(self, items: Ints, now: float) -> Bools:
        """Which of these items their groups can pay for; earlier items are paid for first."""
        if now > self.at:  # asked again at the same moment, the allowance is still there
            filled = self.cap * (now - self.at)
            self.allowance = np.minimum(self.allowance + filled, np.maximum(filled, self.largest))
            self.at = now
        group = np.minimum(self.group[items], self.cap.size)
        order = np.argsort(group, kind="stable")
        spent = np.cumsum(self.cost[items][order])
        starts = np.searchsorted(group[order], np.arange(self.cap.size + 1))
        before = np.concatenate([[0.0], spent])[starts]
        within = spent - before[group[order]]
        fits = within <= np.append(self.allowance, np.inf)[group[order]] * (1 + 1e-12)
        result = np.empty(items.size, dtype=bool)
        result[order] = fits
        return result

    def spend(self, items: Ints) -> None:
        group = np.minimum(self.group[items], self.cap.size)
        self.allowance -= np.bincount(group, self.cost[items], minlength=self.cap.size + 1)[:-1]

    def grow(self, cost: Float64s) -> None:
        """Add new items without a limit."""
        self.group = np.concatenate([self.group, np.full(cost.size, self.cap.size)])
        self.cost = np.concatenate([self.cost, cost])


ATTEMPTS = 4
"""How often more candidates are asked for where caps refuse some."""


class PolicyItems:
    """What every policy knows about its items.

    >>> items = PolicyItems(PolicyInput.of(3, 1.0))
    >>> items.remove([1]); items.alive.tolist()
    [True, False, True]
    """

    def __init__(self, start: PolicyInput) -> None:
        self.budget = start.budget
        self.weight, self.cost = start.weight.copy(), start.cost.copy()
        self.alive: Bools = np.ones(start.items, dtype=bool)
        self.last_poll: Float64s = np.full(start.items, start.now)
        self._count()
        self.open_time = start.open_time
        self.caps = None
        if start.cap_group is not None:
            self.caps = CapAllowances.of(start.cap_group, start.caps, start.cost, start.now)

    @property
    def size(self) -> int:
        """How many numbers are taken, including those of removed items."""
        return self.weight.size

    @property
    def mean_frequency(self) -> float:
        """Polls of an item per time if all items were polled equally often."""
        return self.budget / (self.total_cost or 1.0)

    def _count(self) -> None:
        self.alive_count = int(self.alive.sum())
        self.total_cost = float(self.cost[self.alive].sum())

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float) -> Ints:
        """Add new items, copied now; returns their numbers."""
        weight = np.atleast_1d(nonnegative("weight", weights)).astype(np.float64)
        cost = np.broadcast_to(nonnegative("cost", costs).astype(np.float64), weight.shape)
        check_costs(cost)
        numbers = np.arange(self.size, self.size + weight.size)
        self.weight = np.concatenate([self.weight, weight])
        self.cost = np.concatenate([self.cost, cost])
        self.alive = np.concatenate([self.alive, np.ones(weight.size, dtype=bool)])
        self.last_poll = np.concatenate([self.last_poll, np.full(weight.size, now)])
        self._count()
        if self.caps is not None:
            self.caps.grow(np.asarray(cost))
        return numbers

    def remove(self, items: ArrayLike) -> None:
        self.alive[self.as_numbers(items)] = False
        self._count()

    def reweigh(self, items: ArrayLike, weights: ArrayLike, costs: ArrayLike) -> None:
        which = self.as_numbers(items)
        cost = np.broadcast_to(nonnegative("cost", costs).astype(np.float64), which.shape)
        check_costs(cost)
        before, self.cost[which] = self.cost[which], cost
        self.weight[which] = nonnegative("weight", weights)
        # The engine calls this with every group of polls, so the sums over all items are taken only if need
        # be.
        if not np.array_equal(before, cost):
            self._count()
        if self.caps is not None:
            self.caps.cost[which] = cost

    def set_budget(self, budget: float) -> None:
        check_budget(budget)
        self.budget = float(budget)

    def as_numbers(self, items: ArrayLike) -> Ints:
        """The items as an array of numbers, which must exist."""
        which = np.atleast_1d(np.asarray(items, dtype=np.int64))
        if which.size and (which.min() < 0 or which.max() >= self.size):
            raise InputError(f"there is no item {which.max()}: items are numbered from 0 to {self.size - 1}")
        return which

    def pick(self, now: float, k: int, most_urgent: Callable[[int], Ints]) -> Ints:
        """Up to k items within open time and caps; ``most_urgent(n)`` gives n items, most urgent first."""
        if k <= 0 or (self.open_time is not None and not self.open_time.is_open(now)):
            return np.zeros(0, dtype=np.int64)
        if self.caps is None:
            return most_urgent(k)
        wanted = k
        for _ in range(ATTEMPTS):
            items = most_urgent(wanted)
            chosen = items[self.caps.allowed(items, now)][:k]
            if chosen.size == k or items.size < wanted:
                break
            wanted *= 4
        self.caps.spend(chosen)
        return chosen
