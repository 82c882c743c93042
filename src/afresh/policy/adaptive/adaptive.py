"""The adaptive policy, the default: it learns rates from polls and polls the items whose polls gain most.

change model          how many changes are expected of an item            ``change_model``
poll value            what a poll of an item would gain now               ``poll_value``
value of information  what the result of the poll is worth for later      ``poll_value``
review schedule       when each item's poll value is computed again       ``review_schedule``
"""

from __future__ import annotations

import numpy as np

from afresh.policy.adaptive import saved_state
from afresh.policy.adaptive.poll_value import Exploration, PollValue
from afresh.policy.adaptive.review_schedule import ReviewSchedule
from afresh.policy.adaptive.saved_state import Arrays, Stored
from afresh.policy.adaptive.stated_changes import StatedChanges
from afresh.policy.policy import as_poll_arrays
from afresh.values.arrays import ArrayLike, Float64s, Ints
from afresh.values.errors import InputError

MANY_AGES = 0.1  # share of all items whose ages, learned at once, change the shadow price


class Adaptive(ReviewSchedule):
    """The adaptive policy. It has no settings of its own and works the same for all sources.

    >>> from afresh.policy.policy import PolicyInput
    >>> policy = Adaptive(PolicyInput.of(3, 0.3))
    >>> for day in range(200):
    ...     items = policy.next(10.0 * day, 3)
    ...     policy.observe(items, 10.0 * day, items == 1)
    >>> policy.rates().round(2).argmax()
    np.int64(1)
    """

    def next(self, now: float, k: int) -> Ints:
        """Return the k items with the largest poll values, within the allowed times and the caps."""
        return self.items.pick(now, k, lambda n: self.most_valuable(now, n))

    def observe(
        self, items: ArrayLike, now: ArrayLike, changed: ArrayLike, stated: StatedChanges | None = None
    ) -> None:
        """Learn from polls, and from what their sources ``stated``; set the next reviews of the polled items,
        and refit now and then."""
        which, when, found = as_poll_arrays(items, now, changed)
        if which.size == 0:
            return
        latest = float(when.max())
        self.learning_time += max(latest - self.latest_poll, 0.0)
        self.latest_poll = max(latest, self.latest_poll)
        self.belief.extend_horizon(self.learning_time)
        risen = self.learn(which, when, found, stated)
        read = self.clock.read(when.max(keepdims=True))
        self.next_review[risen] = np.minimum(self.next_review[risen], read)
        self.set_reviews(which, when)
        self.polls_since_rekey += which.size
        self.polls_since_refit += which.size
        if self.polls_since_refit >= self.refit_gap * self.items.alive_count:
            self.refit(latest)

    def notice(self, items: ArrayLike, now: ArrayLike, origin: str = "") -> None:
        """Review these items now; how much notices tell is learned for each origin and host."""
        which = self.items.as_numbers(items)
        there = self.items.alive[which]
        when = np.broadcast_to(np.asarray(now, dtype=np.float64), which.shape)[there]
        self.notices.add(which[there], origin)
        np.minimum.at(self.next_review, which[there], self.clock.read(when))

    def add(self, weights: ArrayLike, costs: ArrayLike, now: float, families: Ints | None = None) -> Ints:
        """Add new items, of which only the prior is known; return their numbers."""
        numbers = self.items.add(weights, costs, now)
        more = numbers.size
        self.grow(more, families)
        self.next_review = np.concatenate([self.next_review, np.full(more, now)])
        self.baseline_information = np.concatenate([self.baseline_information, np.full(more, np.inf)])
        self.set_reviews(numbers, np.full(more, now))
        return numbers

    def remove(self, items: ArrayLike) -> None:
        which = self.items.as_numbers(items)
        self.items.remove(which)
        self.next_review[which] = np.inf

    def reweigh(self, items: ArrayLike, weights: ArrayLike, costs: ArrayLike) -> None:
        which = self.items.as_numbers(items)
        self.items.reweigh(which, weights, costs)
        self.set_reviews(which, self.items.last_poll[which])

    def set_budget(self, budget: float, now: float) -> None:
        """Set another budget, and review all items at the shadow price that is expected from it."""
        ratio = budget / self.items.budget
        self.items.set_budget(budget)
        self.review_value = self.review_value_at(1.0 / ratio)
        self.rekey(now)

    def mark_copied(self, items: ArrayLike, now: ArrayLike) -> None:
        """Record that these items were copied at ``now``, here or elsewhere; nothing is learned from it."""
        which = self.items.as_numbers(items)
        when = np.broadcast_to(np.asarray(now, dtype=np.float64), which.shape)
        self.items.last_poll[which] = when
        self.notices.pending[which] = 0.0
        self.set_reviews(which, when)

    def observe_ages(self, items: ArrayLike, now: ArrayLike, age: Float64s) -> None:
        """Learn from the ages of items that were copied for the first time at ``now``: the times since their
        last changes, as their sources state them (``age_priors``). If these are many items, the shadow
        price is estimated again, because it was that of items which were all alike."""
        which = self.items.as_numbers(items)
        self.belief.learn_age(which, age)
        self.pass_own_rates(which)
        self.mark_copied(which, now)
        if which.size and which.size >= MANY_AGES * self.items.alive_count:
            latest = float(np.max(np.asarray(now, dtype=np.float64)))
            self._rekey_at(self._price_of_budget(latest), latest)

    def forget(self, items: ArrayLike) -> None:
        """Forget what was learned of these items; only the prior is known of them. The times of their copies
        stay."""
        which = self.items.as_numbers(items)
        self.belief.forget(which)
        self.calibration.forget(which)
        if self.shocks is not None:
            self.shocks.exposed[which] = self.shocks.felt[which] = 0.0
        self.pass_own_rates(which)
        self.set_reviews(which, self.items.last_poll[which])

    def set_gamma_belief(
        self, items: ArrayLike, shape: ArrayLike, rate: ArrayLike, last_poll: ArrayLike
    ) -> None:
        """Set the belief about the rates of these items to Gamma(``shape``, ``rate``).
        ``shape`` is a number of changes, ``rate`` the time in which they were seen."""
        which = self.items.as_numbers(items)
        a, b = (np.asarray(one, dtype=np.float64) for one in (shape, rate))
        a, b = (np.broadcast_to(one, which.shape)[:, None] for one in (a, b))
        if not (np.all(a > 0) and np.all(b > 0) and np.all(np.isfinite(a + b))):
            raise InputError("a summary needs a shape and a rate above 0")
        # The Gamma's density per step of the grid of rates, whose steps are equal in ln λ: λ^a·e^{−bλ}.
        log = a * np.log(self.belief.rates) - b * self.belief.rates
        density = np.exp(log - log.max(axis=1, keepdims=True))
        self.belief.posterior[which] = density / density.sum(axis=1, keepdims=True)
        self.belief.polled[which] = True
        self.pass_own_rates(which)
        # The Gamma's rate b is the time in which the item was observed. So the item is as well known as after
        # one poll per mean polling interval in that time.
        watched = np.minimum(b[:, 0] * self.items.mean_frequency, 1e6)
        self.belief.polls[which] = np.ceil(watched).astype(np.int64)
        self.mark_copied(which, last_poll)

    def shared(self) -> Arrays:
        """Return what was learned about all items together, for ``restore`` (see ``saved_state``)."""
        return saved_state.save_shared(self)

    def rows(self, items: ArrayLike) -> Arrays:
        """Return what is known about these items, for ``restore``: arrays with a row for each item."""
        return saved_state.save_rows(self, self.items.as_numbers(items))

    def restore(self, shared: Stored | None, items: ArrayLike = (), rows: Stored | None = None) -> None:
        """Restore the state that another process saved with ``shared`` and ``rows``.
        ``rows`` has a row for each of the ``items``. Either part may be missing. Call this before the policy
        learns anything else. Weights, costs and the budget are not restored and stay as they are."""
        which = self.items.as_numbers(items)
        if shared is not None:
            saved_state.restore_shared(self, shared, all_rows_follow=which.size == self.items.size)
            self.poll_value = PollValue(self.poll_value.name, self.belief.rates)
            self.exploration = Exploration(self.poll_value, self.items.mean_frequency)
            budget_before = float(saved_state.field(shared, "budget", ()))
            self.review_value = self.review_value_at(budget_before / self.items.budget)
            self.set_reviews(np.arange(self.items.size), self.items.last_poll)
        if rows is not None:
            saved_state.restore_rows(self, which, rows)
            self.next_review[~self.items.alive] = np.inf
            self.latest_poll = max(self.latest_poll, float(self.items.last_poll.max(initial=-np.inf)))
