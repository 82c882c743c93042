"""The ranking of the adaptive policy: when each item is reviewed next, and which reviewed items are polled.

To review an item is to compute its exact poll value. Every item has a next review: the time at which its poll
value, estimated from its rate alone, will reach a little less than the shadow price of the budget. Only items
whose next review has come are reviewed, and the best of them are polled. If the shadow price has changed
much, the next reviews of all items are computed again in one vectorised pass (``rekey``). So a decision costs
little even with millions of items.
"""

from __future__ import annotations

import numpy as np

from afresh.policy.adaptive.change_model import ChangeModel
from afresh.policy.adaptive.poll_value import Exploration, PollValue
from afresh.policy.adaptive.row_products import row_products
from afresh.policy.adaptive.shocks import RAISED
from afresh.policy.policy import PolicyInput, largest
from afresh.values.arrays import ArrayLike, Float64s, Ints

MARGIN = 0.93  # items are reviewed when their poll value reaches this share of the shadow price
TOO_MANY = 4  # more reviewed items than this for each polled item: the shadow price has risen
BLOCK = 8192  # items handled at a time, so that their rows stay in the cache
# A reviewed item that is not polled is reviewed again after this share of the time since its last poll (at
# least, at most). Many small finds raise a family's shocks gradually: with at most 0.3 instead of 0.05, half
# of what families gain was lost.
REVIEW_AGAIN = 0.01, 0.05
EARLY_BATCHES = 3.0  # an item is reviewed again about this many calls of ``next`` before it is worth a poll
LONGEST = 10.0  # mean polling intervals after which an item is reviewed, whatever is believed about it
# An item waits at most one mean polling interval, as under uniform polling, plus this share of it for each
# of its polls. So what n polls taught about an item can delay its next poll only by so much.
PATIENCE = 0.2
SAMPLED = 32  # about how many of the next reviews are sampled to estimate the time until which they come
SAMPLE = 4096  # items from which the shadow price is estimated
REKEY_POLLS = 0.1  # polls between two re-keyings, as a share of the number of items
LEARNING = 20.0  # mean polling intervals for which the result of a poll is of use, at most
REFIT_AFTER, REFIT_GROWTH = 1.0, 1.3  # rounds of all items until the first refit; growth factor of this gap


class ReviewSchedule(ChangeModel):
    """A change model that also ranks its items by poll value. A review computes an item's exact poll value.
    ``review_value`` is ``MARGIN`` times the shadow price. ``next_review`` is the time of the next review of
    each item, in the operational time of ``SeasonClock``."""

    def __init__(self, start: PolicyInput) -> None:
        super().__init__(start)
        frequency = start.mean_frequency
        self.poll_value = PollValue(start.objective, self.belief.rates)
        self.exploration = Exploration(self.poll_value, frequency)
        # B(τ*) of each item (see ``poll_value``); infinite if an earlier poll would not be worth its result.
        self.baseline_information: Float64s = np.full(start.items, np.inf)
        self.learning_time, self.latest_poll = 0.0, start.now
        self.polls_since_rekey = -start.items
        self.polls_since_refit, self.refit_gap = 0, REFIT_AFTER
        typical = self.belief.expected(np.array([0.7 / frequency]))
        value = self.poll_value.mean(self.belief.prior[None], typical, self.belief.rates[None])
        self.review_value = float(value[0])
        # At first all items are alike, so their reviews are spread evenly over one round of all items.
        self.next_review: Float64s = np.full(start.items, start.now)
        self.next_review += (np.arange(start.items) + 1.0) / (max(start.items, 1) * frequency)

    @property
    def shadow_price(self) -> float:
        """The shadow price: the poll value at which items are polled now, per unit of cost."""
        return self.review_value / MARGIN

    def refit(self, now: float) -> None:
        """Fit the parameters that all items share again, and compute the next reviews of all items."""
        self.polls_since_refit, self.refit_gap = 0, self.refit_gap * REFIT_GROWTH
        self.relearn_and_rekey(now)

    def relearn_and_rekey(self, now: float) -> None:
        self.relearn()
        self._rekey_at(self._price_of_budget(now), now)

    def rekey(self, now: float) -> None:
        """Compute again when each item is reviewed next."""
        for begin in range(0, self.items.size, BLOCK):
            some = np.arange(begin, min(begin + BLOCK, self.items.size))
            self.set_reviews(some, self.items.last_poll[some])
            self._review_news(some, now)
        self.polls_since_rekey = 0

    def _review_news(self, items: Ints, now: float) -> None:
        """Review at once those of these items that had notices, or whose families had shocks, since the
        items' last polls.

        ``set_reviews`` knows neither: it uses the mean rate of shocks. Without this, a re-keying soon after a
        mass edit, when the shadow price is high, would postpone the items that wait for a poll because of
        the edit by months, and meanwhile items that were polled since then would be polled again.
        """
        has_news = (self.notices.pending[items] > 0).any(axis=1)
        if self.shocks is not None:
            has_news |= self.shocks.excess(items, self.items.last_poll[items], now) > RAISED
        which = items[has_news & self.items.alive[items]]
        self.next_review[which] = np.minimum(self.next_review[which], self.clock.read(np.array(now)))

    def most_valuable(self, now: float, n: int) -> Ints:
        """Return the n items to poll at ``now``, and follow the shadow price that this choice shows."""
        n = min(n, self.items.alive_count)
        if n == 0:
            return np.zeros(0, dtype=np.int64)
        if self.shocks is not None:
            self.shocks.advance(now)
        read = self.clock.read(np.array(now))
        reviewed = np.flatnonzero(self.next_review <= read)
        value = self._poll_values_blockwise(reviewed, now)
        # If too few reach the review value, an item whose review has not come may be better than these.
        too_few = int(np.count_nonzero(value >= self.review_value)) < n
        if too_few:
            soonest = self._soonest_reviews(reviewed.size + TOO_MANY * n)
            more = soonest[self.next_review[soonest] > read]
            if reviewed.size + more.size < n:
                more = np.flatnonzero(self.items.alive & (self.next_review > read))
            reviewed = np.concatenate([reviewed, more])
            value = np.concatenate([value, self._poll_values_blockwise(more, now)])
        chosen, price = self._choose(reviewed, value, n, now)
        nearly = price * max(1.0 - EARLY_BATCHES * n / self.items.alive_count, 0.9)
        self._postpone_reviews(reviewed, value, now, nearly)
        self._follow_price(price, too_few, reviewed.size > TOO_MANY * n + 64, now)
        return reviewed[chosen]

    def longest_wait(self, items: Ints) -> Float64s:
        """Return the longest time from each item's last poll to its next one, if the budget allows it."""
        return np.asarray((1.0 + PATIENCE * self.belief.polls[items]) / self.items.mean_frequency)

    def _choose(self, reviewed: Ints, value: Float64s, n: int, now: float) -> tuple[Ints, float]:
        """Return a tuple (places, price): the places in ``reviewed`` of the n items to poll, and a price.
        Items that waited longer than ``longest_wait`` come first, then those with the largest poll values.
        The price is the smallest of these poll values."""
        waited = now - self.items.last_poll[reviewed]
        is_late = (waited > self.longest_wait(reviewed)) & (self.items.weight[reviewed] > 0)
        if not is_late.any():
            chosen = largest(value, n)
            return chosen, float(value[chosen[-1]])
        late, others = np.flatnonzero(is_late), np.flatnonzero(~is_late)
        late = late[largest(waited[late], n)]
        by_value = others[largest(value[others], n - late.size)]
        last = by_value if by_value.size else late
        return np.concatenate([late, by_value]), float(value[last].min())

    def poll_values(self, items: Ints, now: float) -> Float64s:
        """Return the poll value of each of these items at ``now``, with the value of information."""
        forecast = self.forecast(items, now)
        posterior = forecast.posterior
        value = self.poll_value.mean(posterior, forecast.expected, forecast.rate, forecast.change_chance)
        unsure = np.flatnonzero(np.isfinite(self.baseline_information[items]))
        if unsure.size:
            some = items[unsure]
            elapsed = self.clock.read(np.array(now)) - self.clock.read(self.items.last_poll[some])
            price = self._price_per_weight(some)
            information = self.exploration.information(posterior[unsure], np.maximum(elapsed, 0.0), price)
            # Only what exceeds the information of the poll that is planned anyway.
            beyond = np.maximum(information - self.baseline_information[some], 0.0)
            value[unsure] += self._time_of_use() * beyond
        return np.asarray(value * self.items.weight[items] / self.items.cost[items])

    def _poll_values_blockwise(self, items: Ints, now: float) -> Float64s:
        """Return ``poll_values``, computed in blocks: millions at once would take more memory and time."""
        if items.size <= BLOCK:
            return self.poll_values(items, now)
        blocks = (items[begin : begin + BLOCK] for begin in range(0, items.size, BLOCK))
        return np.concatenate([self.poll_values(block, now) for block in blocks])

    def _time_of_use(self) -> float:
        """Return for how long a poll's result will be of use: as long as polls were made, up to a limit."""
        return min(self.learning_time, LEARNING / self.items.mean_frequency)

    def _price_per_weight(self, items: Ints) -> Float64s:
        return self.shadow_price * self.items.cost[items] / np.maximum(self.items.weight[items], 1e-300)

    def time_to_reach(self, items: Ints, value: ArrayLike) -> Float64s:
        """Return the time after a poll at which each item's poll value reaches ``value``; inf if never.
        Shocks count with their mean rate, and the value of information is left out."""
        weight_per_cost = self.items.weight[items] / self.items.cost[items]
        factor = self.own_factors(items)
        posterior = self.belief.posterior.take(items, axis=0)
        if self.shocks is not None:
            rate = row_products(posterior, self.belief.rates.astype(np.float32))
            factor = factor + self.shocks.trust * self.shocks.rate(items) / np.maximum(rate, 1e-300)
        # With E = s·λτ (s is ``factor``) the poll value is that of λ at time s·τ, divided by s^power.
        power = self.poll_value.objective.power
        goal = np.asarray(value) * factor**power / np.maximum(weight_per_cost, 1e-270)
        return self.poll_value.time_to_reach(posterior, goal) / factor

    def set_reviews(self, items: Ints, last_poll: Float64s) -> None:
        """Set the next review of each item to the time at which its poll value reaches the review value."""
        due = self.time_to_reach(items, self.review_value)
        due = np.minimum(self._explore_sooner(items, due), LONGEST / self.items.mean_frequency)
        review = self.clock.read(last_poll) + due
        review = np.minimum(review, self.clock.read(last_poll + self.longest_wait(items)))
        self.next_review[items] = np.where(self.items.alive[items], review, np.inf)

    def _explore_sooner(self, items: Ints, due: Float64s) -> Float64s:
        """Return ``due`` (times from the last poll to the next), or less if an earlier result is worth it."""
        self.baseline_information[items] = np.inf
        posterior = self.belief.posterior.take(items, axis=0)
        is_unsure = self.exploration.is_uninformative(posterior, due) & (self.items.weight[items] > 0)
        unsure = np.flatnonzero(is_unsure)
        # If no item is ever dropped (age, lag, …), the exact rate of a fast item hardly matters.
        if unsure.size == 0 or self.learning_time <= 0 or np.isinf(self.poll_value.objective.top):
            return due
        posterior, which, late = posterior[unsure], items[unsure], due[unsure]
        price, times = self._price_per_weight(which), self.exploration.times
        baseline = self.exploration.information(posterior, np.minimum(late, 1e6 * times[-1]), price)
        self.baseline_information[which] = baseline
        information = self.exploration.information_at_times(posterior, price)
        value = posterior @ self.exploration.values
        value += self._time_of_use() * np.maximum(information - baseline[:, None], 0.0)
        # The earliest of the times at which the value of a poll reaches the price.
        is_worth = value >= MARGIN * price[:, None]
        earliest = np.where(is_worth.any(axis=1), times[is_worth.argmax(axis=1)], np.inf)
        due = due.copy()
        due[unsure] = np.minimum(0.75 * earliest, late)
        return due

    def _soonest_reviews(self, wanted: int) -> Ints:
        """Return about ``wanted`` items that are reviewed next, up to a time estimated from a sample."""
        sample = self.next_review[:: max(wanted // SAMPLED, 1)]
        among = min(-(-wanted * sample.size // self.items.size), sample.size) - 1
        moment = np.partition(sample, among)[among]
        return np.flatnonzero(self.next_review <= min(moment, np.finfo(float).max))

    def _postpone_reviews(self, reviewed: Ints, value: Float64s, now: float, goal: float) -> None:
        """Set when reviewed items are reviewed again if they are not polled: when they may reach ``goal``."""
        read = self.clock.read(np.array(now))
        elapsed = read - self.clock.read(self.items.last_poll[reviewed])
        # Poll values grow no faster than τ^(power+1). Only shocks are faster, so no next review is far away.
        power = 1.0 / (self.poll_value.objective.power + 1)
        reach = np.maximum(goal / np.maximum(value, max(1e-30 * goal, 1e-300)), 1.0) ** power
        again = read + elapsed * np.clip(reach - 1.0, *REVIEW_AGAIN)
        # An early review does not move the next one forward: else a just polled item would always be next.
        self.next_review[reviewed] = np.maximum(self.next_review[reviewed], again)

    def _follow_price(self, price: float, too_few: bool, too_many: bool, now: float) -> None:
        """Compute all next reviews again if ``price``, the shadow price now, has changed much."""
        if self.polls_since_rekey < REKEY_POLLS * self.items.size or price <= 0:
            return
        has_risen = too_many and MARGIN * price > 1.05 * self.review_value
        if has_risen or (too_few and price < self.review_value):
            self._rekey_at(self._price_of_budget(now), now)

    def _rekey_at(self, price: float, now: float) -> None:
        if price > 0:
            self.review_value = MARGIN * price
        self.rekey(now)

    def _price_of_budget(self, now: float) -> float:
        """Return the shadow price at which the budget pays for the polls until about the next re-keying.
        It is estimated from a sample of all items. The items that are polled now would be a bad sample: after
        a refit only few are reviewed, and the poll values of the best of few vary widely."""
        alive = np.flatnonzero(self.items.alive)
        some = alive[:: max(-(-alive.size // SAMPLE), 1)]
        value = self._poll_values_blockwise(some, now + REKEY_POLLS / self.items.mean_frequency)
        order = np.argsort(-value)
        spent = np.cumsum(self.items.cost[some[order]])
        return float(value[order[np.searchsorted(spent, REKEY_POLLS * spent[-1])]]) if some.size else 0.0

    def review_value_at(self, longer: float) -> float:
        """Return the review value if all polling intervals become ``longer`` by this factor.
        While few changes are expected, poll values are proportional to (time since the poll)^(power+1)."""
        return float(self.review_value * longer ** (self.poll_value.objective.power + 1))
