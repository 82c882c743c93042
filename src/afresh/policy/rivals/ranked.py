"""Policies that poll whatever ranks highest: what they have in common, whatever the rank is made of."""

from __future__ import annotations

import numpy as np

from afresh.policy.policy import PolicyInput, largest
from afresh.policy.policy_items import PolicyItems
from afresh.values.arrays import ArrayLike, Float64s, Ints


class RankingPolicy:
    """Polls the items of largest ``urgency``; a subclass says what that is and what a poll does to it."""

    def __init__(self, start: PolicyInput) -> None:
        self.items = PolicyItems(start)

    def urgency(self, now: float) -> Float64s:
        """Of every item, removed ones too."""
        raise NotImplementedError

    def observe(self, items: ArrayLike, now: ArrayLike, changed: ArrayLike) -> None:
        """Polls and what they found."""
        raise NotImplementedError

    def next(self, now: float, k: int) -> Ints:
        """The k most urgent items."""
        return self.items.pick(now, k, lambda n: self._first(now, n))

    def _first(self, now: float, n: int) -> Ints:
        urgency = np.where(self.items.alive, self.urgency(now), -np.inf)
        return largest(urgency, min(n, self.items.number))

    def notice(self, items: ArrayLike, now: ArrayLike, source: str = "") -> None:
        """Takes no hints."""

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        """New items."""
        del families
        return self.items.add(weights, costs, now)

    def remove(self, items: ArrayLike) -> None:
        """Never polled again."""
        self.items.remove(items)

    def reweigh(self, items: ArrayLike, weights: ArrayLike, costs: ArrayLike) -> None:
        """Another importance and cost."""
        self.items.reweigh(items, weights, costs)

    def set_budget(self, budget: float, now: float) -> None:
        """Another cost per time."""
        del now
        self.items.set_budget(budget)

    def refit(self, now: float) -> None:
        """Nothing is common to all items here."""
