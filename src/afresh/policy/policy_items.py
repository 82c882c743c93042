"""The items of a policy: weights, costs, who is still there, when each was last polled; windows and caps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from afresh.policy.caps import CapAllowances
from afresh.policy.policy import PolicyInput
from afresh.values.arrays import ArrayLike, Bools, Float64s, Ints, nonnegative
from afresh.values.errors import InputError

AGAIN = 4
"""How many times k candidates are looked at where caps refuse some."""


class PolicyItems:
    """What every policy knows of its items.

    >>> roster = PolicyItems(PolicyInput.of(3, 1.0))
    >>> roster.remove([1]); roster.alive.tolist()
    [True, False, True]
    """

    def __init__(self, start: PolicyInput) -> None:
        self.budget = start.budget
        self.weight, self.cost = start.weight.copy(), start.cost.copy()
        self.alive: Bools = np.ones(start.items, dtype=bool)
        self.last: Float64s = np.full(start.items, start.now)
        self._count()
        self.opening = start.opening
        self.caps = None
        if start.cap_group is not None:
            self.caps = CapAllowances.of(start.cap_group, start.caps, start.cost, start.now)

    @property
    def size(self) -> int:
        """How many numbers are taken, by removed items too."""
        return self.weight.size

    @property
    def mean_frequency(self) -> float:
        """Polls of an item per time, were all polled alike."""
        return self.budget / (self.cost_of_all or 1.0)

    def _count(self) -> None:
        self.number = int(self.alive.sum())
        self.cost_of_all = float(self.cost[self.alive].sum())

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float) -> Ints:
        """New items, copied now; their numbers."""
        weight = np.atleast_1d(nonnegative("weight", weights)).astype(np.float64)
        cost = np.broadcast_to(nonnegative("cost", costs).astype(np.float64), weight.shape)
        _positive(cost)
        numbers = np.arange(self.size, self.size + weight.size)
        self.weight = np.concatenate([self.weight, weight])
        self.cost = np.concatenate([self.cost, cost])
        self.alive = np.concatenate([self.alive, np.ones(weight.size, dtype=bool)])
        self.last = np.concatenate([self.last, np.full(weight.size, now)])
        self._count()
        if self.caps is not None:
            self.caps.grow(np.asarray(cost))
        return numbers

    def remove(self, items: ArrayLike) -> None:
        """These are gone."""
        self.alive[self.known(items)] = False
        self._count()

    def reweigh(self, items: ArrayLike, weights: ArrayLike, costs: ArrayLike) -> None:
        """Another importance and cost."""
        which = self.known(items)
        cost = np.broadcast_to(nonnegative("cost", costs).astype(np.float64), which.shape)
        _positive(cost)
        before, self.cost[which] = self.cost[which], cost
        self.weight[which] = nonnegative("weight", weights)
        if not np.array_equal(before, cost):  # with every group of polls: all are counted only if need be
            self._count()
        if self.caps is not None:
            self.caps.cost[which] = cost

    def set_budget(self, budget: float) -> None:
        """Another cost per time."""
        if not (np.isfinite(budget) and budget > 0):
            raise InputError(f"budget is {budget:g}: must be above 0 and finite")
        self.budget = float(budget)

    def known(self, items: ArrayLike) -> Ints:
        """As an array of numbers that exist."""
        which = np.atleast_1d(np.asarray(items, dtype=np.int64))
        if which.size and (which.min() < 0 or which.max() >= self.size):
            raise InputError(f"there is no item {which.max()}: items are numbered from 0 to {self.size - 1}")
        return which

    def pick(self, now: float, k: int, most_urgent: Callable[[int], Ints]) -> Ints:
        """Up to k items within windows and caps, from ``most_urgent(n)``: n items, the most urgent first."""
        if k <= 0 or (self.opening is not None and not self.opening.is_open(now)):
            return np.zeros(0, dtype=np.int64)
        if self.caps is None:
            return most_urgent(k)
        wanted = k
        for _ in range(AGAIN):
            items = most_urgent(wanted)
            chosen = items[self.caps.allowed(items, now)][:k]
            if chosen.size == k or items.size < wanted:
                break
            wanted *= 4
        self.caps.spend(chosen)
        return chosen


def _positive(cost: Float64s) -> None:
    if cost.size and not cost.min() > 0:
        raise InputError("a cost is 0 or less: a poll must cost something")
