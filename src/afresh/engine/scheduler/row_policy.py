"""What polling each item now is worth, and what a poll taught. The one place that knows the policy's name.

``adaptive``  the item worth most goes first, by the ``ranking``
``uniform``   the item polled longest ago goes first

What is said of the copies (freshness, age, rates) comes from the ranking's belief, whichever it is.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Literal, TypeAlias

import numpy as np

from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.observed_staleness import ObservedStaleness
from afresh.engine.scheduler.ranking import Ranking
from afresh.values.arrays import Bools, Float64s
from afresh.values.lease import Lease
from afresh.values.stored import Ids, PolicyColumns

PolicyName: TypeAlias = Literal["adaptive", "uniform"]
_RECENT, _SELDOM = 200, 16  # picks whose median is the threshold, and how often it is taken anew
_ENOUGH = 1024  # rows that go before all ranked ones
_OVERDUE, _ASKED = 1e300, 1e301
_LOOKED_AT = 65_536  # rows that tell how the others do
_LONGEST_S = 10 * 365.25 * 86400.0


class RowPolicy:
    """Ranks the rows of a memory, and knows at which worth items are polled now."""

    def __init__(self, item_rows: ItemRows, ranking: Ranking, name: PolicyName) -> None:
        self.item_rows, self.ranking, self.name = item_rows, ranking, name
        self._recent_values: deque[float] = deque(maxlen=_RECENT)
        self._shadow_price, self._picks = 0.0, 0
        self.staleness: ObservedStaleness | None = None  # what is seen without polls
        self.paid_off_s = np.empty(0)  # of the rows that are seen: what a poll of theirs holds up
        self.break_even_value = 0.0  # worth below which no poll pays
        self.is_limited = True  # whether a limit keeps polls from being made that would pay
        self.has_money_terms = False  # whether stakes and outlays are other than 1

    @property
    def objective(self) -> str:
        """What is minimised: staleness, age, …"""
        return self.ranking.objective

    def poll_values(self, now_s: float) -> Float64s:
        """What polling each row now gives per cost: −∞ where it may not be, +∞ where it must.

        Never polled before asked for before overdue before all others.
        """
        item_rows = self.item_rows
        tau = np.maximum(now_s - item_rows.polled_s, 0.0)
        new = np.isnan(tau)
        tau = np.where(new, 0.0, tau)
        barred = (
            ~item_rows.is_active
            | item_rows.is_busy
            | (item_rows.not_before_s > now_s)
            | (tau < item_rows.min_interval_s) & ~new
        )
        overdue = tau >= item_rows.max_interval_s
        first = new | item_rows.is_requested | overdue
        value = self._ranked(tau, ~barred & first, ~barred & ~first, now_s)
        value = np.where(overdue, _OVERDUE, value)
        value = np.where(item_rows.is_requested, _ASKED, value)
        value = np.where(new, np.inf, value)
        return np.where(barred, -np.inf, value)

    def _ranked(self, tau: Float64s, first: Bools, rest: Bools, now_s: float) -> Float64s:
        """How the ``rest`` compares; while enough goes ``first``, or there is no rest, it does not matter."""
        if self.name == "uniform" or not rest.any() or np.count_nonzero(first) >= _ENOUGH:
            return tau
        return self._adjust_values(self.ranking.values(now_s, rest))

    def _adjust_values(self, value: Float64s) -> Float64s:
        """Values with what is known better than ranked; −∞ where a poll gains nothing, or does not pay."""
        seen, item_rows = self.staleness, self.item_rows
        if seen is not None:
            weight, cost = item_rows.ranked_weight(seen.rows), item_rows.ranked_cost(seen.rows)
            value = seen.valued(value, weight, cost, self.paid_off_s)
        return np.where(value < self.break_even_value, -np.inf, value) if self.break_even_value > 0 else value

    def catch_up(self, lease: Lease, row: int, now_s: float) -> bool:
        """Whether another engine has polled the item since we did; then what it learned counts here too."""
        polled_s = lease.polled_s
        if polled_s is None or polled_s > now_s:  # never, or by a clock that was set back since
            return False
        if not self.item_rows.catch_up(row, polled_s):
            return False
        one, size = np.array([row]), np.array([len(lease.belief)])
        (self.item_rows.not_before_s[row],) = self.ranking.take_stored_beliefs(
            one, np.array([polled_s]), lease.belief, size
        )
        return True

    def catch_up_all(self, now: PolicyColumns) -> None:
        """The same for many known items, as the store has them now."""
        item_rows, rows = self.item_rows, self.item_rows.rows(now.id.tolist())
        item_rows.polled_s[rows], item_rows.due_s[rows] = now.polled_s, now.due_s
        not_before_s = self.ranking.take_stored_beliefs(rows, now.polled_s, now.beliefs, now.belief_size)
        item_rows.not_before_s[rows] = np.minimum(not_before_s, now.due_s)

    def become(self, other: RowPolicy) -> None:
        """Go on with the items of another policy, and what it knows of them."""
        vars(self.item_rows).update(vars(other.item_rows))
        self.ranking, self.staleness = other.ranking, other.staleness
        self.ranking.item_rows = self.item_rows
        self.paid_off_s, self.break_even_value, self.has_money_terms = (
            other.paid_off_s,
            other.break_even_value,
            other.has_money_terms,
        )

    def record_pick(self, poll_values: float) -> None:
        """An item of this worth is being polled: what is polled now tells the price of a poll."""
        if 0 < poll_values < _OVERDUE:
            self._recent_values.append(poll_values)
            self._picks += 1
            if self._picks % _SELDOM == 1:
                self._shadow_price = sorted(self._recent_values)[len(self._recent_values) // 2]

    @property
    def shadow_price(self) -> float:
        """The worth at which items are polled, as of late; 0 before anything was.

        Where every poll that pays is made, that is the floor, however late some of them come.
        """
        if self.break_even_value > 0 and not self.is_limited:
            return self.break_even_value
        return max(self._shadow_price, self.break_even_value)

    def is_futile(self, rows: Ids) -> Bools:
        """Rows that are futile: where copies earn, no poll of theirs is ever worth what it costs."""
        if self.break_even_value <= 0:
            return np.zeros(rows.size, dtype=bool)
        return np.isinf(self.time_to_reach(rows, self.break_even_value))

    def next_polls_s(self, rows: Ids, now_s: Float64s | float) -> Float64s:
        """When rows polled then will be worth polling again, as things are; never before their holds."""
        return np.asarray(np.maximum(now_s + self.intervals_s(rows), self.item_rows.not_before_s[rows]))

    def intervals_s(self, rows: Ids) -> Float64s:
        """How long after a poll rows are worth the next, as things are; infinite where they never are."""
        item_rows = self.item_rows
        after_s = self._interval_if_observed(rows, self._interval_by_value(rows))
        return np.minimum(np.maximum(after_s, item_rows.min_interval_s[rows]), item_rows.max_interval_s[rows])

    def _interval_by_value(self, rows: Ids) -> Float64s:
        if self.name == "uniform" or self.shadow_price <= 0:
            return np.full(rows.size, self.shadow_price)
        after_s = self.time_to_reach(rows, self.shadow_price)
        return np.where(self.item_rows.weight[rows] == 0, np.inf, after_s)

    def time_to_reach(self, rows: Ids, level: float) -> Float64s:
        """How long after a poll the worth of rows reaches ``level``; infinite where it never does."""
        return self.ranking.exact_time_to_reach(rows, level, _LONGEST_S)

    def _interval_if_observed(self, rows: Ids, after_s: Float64s) -> Float64s:
        """Rows that are watched are due when they change, on average after 1/λ."""
        seen = self.staleness
        if seen is None or self.name == "uniform":
            return after_s
        which = np.minimum(np.searchsorted(seen.rows, rows), max(seen.rows.size - 1, 0))
        if seen.rows.size == 0:
            return after_s
        told = (seen.rows[which] == rows) & seen.known[which] & (seen.rates()[which] > 0)
        return np.where(told, 1.0 / np.where(told, seen.rates()[which], 1.0), after_s)

    def is_observed(self) -> Bools:
        """Rows whose staleness is seen."""
        found = np.zeros(self.item_rows.size, dtype=bool)
        if self.staleness is not None:
            found[self.staleness.rows] = self.staleness.known
        return found

    def due_s(self, row: int, now_s: float) -> float:
        """The same for one row."""
        return float(self.next_polls_s(np.array([row]), now_s)[0])

    def sample_rows(self) -> Ids:
        """All rows, or of very many some that are spread evenly over the order of their registration."""
        return np.arange(0, self.item_rows.size, max(-(-self.item_rows.size // _LOOKED_AT), 1))

    def fresh(self, now_s: float, rows: Ids | None = None) -> Float64s:
        """The probability that each row's copy is right now, of all or these in order; 0 without one."""
        every = np.arange(self.item_rows.size) if rows is None else rows
        found = np.where(np.isnan(self.item_rows.polled_s[every]), 0.0, self.ranking.fresh(now_s, every))
        if self.staleness is not None and every.size:
            seen, fresh = (
                self.staleness.rows[self.staleness.known],
                self.staleness.fresh[self.staleness.known],
            )
            place = np.minimum(np.searchsorted(every, seen), every.size - 1)
            asked_for = every[place] == seen
            found[place[asked_for]] = fresh[asked_for]
        return found

    def freshness(self, now_s: float) -> tuple[float, float]:
        """The model's estimate of Σw·fresh/Σw over active items now, and its standard error.

        Each copy is fresh or not, independently, with the probability that it survived; of very many a
        sample of n of N is looked at: Var = Σw²[(n/N)·p(1−p) + (1−n/N)·(p−p̄)²]/(Σw)² over the sample.
        """
        rows = self.sample_rows()
        alive = self.fresh(now_s, rows)
        weight = np.where(self.item_rows.is_active[rows], self.item_rows.weight[rows], 0.0)
        total = float(weight.sum())
        if total <= 0:
            return 1.0, 0.0
        value, part = float(np.sum(weight * alive)) / total, rows.size / self.item_rows.size
        chance = float(
            np.sum(weight**2 * (part * alive * (1.0 - alive) + (1.0 - part) * (alive - value) ** 2))
        )
        return value, math.sqrt(chance) / total

    def covered_share(self) -> float:
        """The share of the active items' weight that has a copy."""
        weight = np.where(self.item_rows.is_active, self.item_rows.weight, 0.0)
        total = float(weight.sum())
        return float(weight[~np.isnan(self.item_rows.polled_s)].sum()) / total if total > 0 else 0.0
