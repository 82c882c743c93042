"""Policies with an interval for each item: at equal budget each takes the most overdue item.

Crawlers in use work like this: a rule sets each item's interval, and the budget decides how far behind the
due times the crawler runs.
"""

from __future__ import annotations

import numpy as np

from afresh.policy.policy import PolicyInput, as_poll_arrays
from afresh.policy.rivals.ranked import RankingPolicy
from afresh.values.arrays import ArrayLike, Bools, Float64s, Ints


class IntervalPolicy(RankingPolicy):
    """Polls whatever is most overdue; a subclass says what a poll does to the due time.

    At first all items are due one after the other, within the time that a round of all takes.
    """

    def __init__(self, start: PolicyInput) -> None:
        super().__init__(start)
        self.round = 1.0 / start.mean_frequency
        turn = (np.arange(start.items) + 1.0) / max(start.items, 1)
        self.due: Float64s = start.now + self.round * turn

    def urgency(self, now: float) -> Float64s:
        """The earlier due, the more urgent."""
        del now
        return -self.due

    def observe(self, items: ArrayLike, now: ArrayLike, changed: ArrayLike) -> None:
        """Learn, and set the due times anew."""
        which, when, found = as_poll_arrays(items, now, changed)
        self.due[which] = self.after(which, when, found)
        self.items.last[which] = when

    def after(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        """The next due times of items polled at ``now``; ``self.items.last`` is still the poll before."""
        raise NotImplementedError

    def notice(self, items: ArrayLike, now: ArrayLike, source: str = "") -> None:
        """A hint makes an item due at once, whoever gives it."""
        del source
        which = self.items.known(items)
        when = np.broadcast_to(np.asarray(now, dtype=np.float64), which.shape)
        np.minimum.at(self.due, which, when - self.round)

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        """New items are due after a round."""
        numbers = super().add(weights, costs, now, families)
        self.due = np.concatenate([self.due, np.full(numbers.size, now + self.round)])
        return numbers

    def set_budget(self, budget: float, now: float) -> None:
        """A round takes as long as the budget allows."""
        super().set_budget(budget, now)
        self.round = 1.0 / self.items.mean_frequency
