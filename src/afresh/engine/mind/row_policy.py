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

from afresh.engine.mind.memory import Memory
from afresh.engine.mind.ranking import Ranking
from afresh.engine.mind.sight import Sight
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

    def __init__(self, memory: Memory, ranking: Ranking, name: PolicyName) -> None:
        self.memory, self.ranking, self.name = memory, ranking, name
        self._worths: deque[float] = deque(maxlen=_RECENT)
        self._threshold, self._picks = 0.0, 0
        self.sight: Sight | None = None  # what is seen without polls
        self.paid_off_s = np.empty(0)  # of the rows that are seen: what a poll of theirs holds up
        self.floor = 0.0  # worth below which no poll pays
        self.limited = True  # whether a limit keeps polls from being made that would pay
        self.appraised = False  # whether stakes and outlays are other than 1

    @property
    def objective(self) -> str:
        """What is minimised: staleness, age, …"""
        return self.ranking.objective

    def worth(self, now_s: float) -> Float64s:
        """What polling each row now gives per cost: −∞ where it may not be, +∞ where it must.

        Never polled before asked for before overdue before all others.
        """
        memory = self.memory
        tau = np.maximum(now_s - memory.polled_s, 0.0)
        new = np.isnan(tau)
        tau = np.where(new, 0.0, tau)
        barred = ~memory.active | memory.busy | (memory.hold_s > now_s) | (tau < memory.min_interval_s) & ~new
        overdue = tau >= memory.max_interval_s
        first = new | memory.asked | overdue
        value = self._ranked(tau, ~barred & first, ~barred & ~first, now_s)
        value = np.where(overdue, _OVERDUE, value)
        value = np.where(memory.asked, _ASKED, value)
        value = np.where(new, np.inf, value)
        return np.where(barred, -np.inf, value)

    def _ranked(self, tau: Float64s, first: Bools, rest: Bools, now_s: float) -> Float64s:
        """How the ``rest`` compares; while enough goes ``first``, or there is no rest, it does not matter."""
        if self.name == "uniform" or not rest.any() or np.count_nonzero(first) >= _ENOUGH:
            return tau
        return self._appraised(self.ranking.values(now_s, rest))

    def _appraised(self, value: Float64s) -> Float64s:
        """Values with what is known better than ranked; −∞ where a poll gains nothing, or does not pay."""
        seen, memory = self.sight, self.memory
        if seen is not None:
            weight, cost = memory.ranked_weight(seen.rows), memory.ranked_cost(seen.rows)
            value = seen.valued(value, weight, cost, self.paid_off_s)
        return np.where(value < self.floor, -np.inf, value) if self.floor > 0 else value

    def catch_up(self, lease: Lease, row: int, now_s: float) -> bool:
        """Whether another engine has polled the item since we did; then what it learned counts here too."""
        polled_s = lease.polled_s
        if polled_s is None or polled_s > now_s:  # never, or by a clock that was set back since
            return False
        if not self.memory.catch_up(row, polled_s):
            return False
        one, size = np.array([row]), np.array([len(lease.belief)])
        (self.memory.hold_s[row],) = self.ranking.take_over(one, np.array([polled_s]), lease.belief, size)
        return True

    def catch_up_with(self, now: PolicyColumns) -> None:
        """The same for many known items, as the store has them now."""
        memory, rows = self.memory, self.memory.rows(now.id.tolist())
        memory.polled_s[rows], memory.due_s[rows] = now.polled_s, now.due_s
        hold_s = self.ranking.take_over(rows, now.polled_s, now.beliefs, now.belief_size)
        memory.hold_s[rows] = np.minimum(hold_s, now.due_s)

    def become(self, other: RowPolicy) -> None:
        """Go on with the items of another policy, and what it knows of them."""
        vars(self.memory).update(vars(other.memory))
        self.ranking, self.sight = other.ranking, other.sight
        self.ranking.memory = self.memory
        self.paid_off_s, self.floor, self.appraised = other.paid_off_s, other.floor, other.appraised

    def picked(self, worth: float) -> None:
        """An item of this worth is being polled: what is polled now tells the price of a poll."""
        if 0 < worth < _OVERDUE:
            self._worths.append(worth)
            self._picks += 1
            if self._picks % _SELDOM == 1:
                self._threshold = sorted(self._worths)[len(self._worths) // 2]

    @property
    def threshold(self) -> float:
        """The worth at which items are polled, as of late; 0 before anything was.

        Where every poll that pays is made, that is the floor, however late some of them come.
        """
        if self.floor > 0 and not self.limited:
            return self.floor
        return max(self._threshold, self.floor)

    def never_pays(self, rows: Ids) -> Bools:
        """Rows that are futile: where copies earn, no poll of theirs is ever worth what it costs."""
        if self.floor <= 0:
            return np.zeros(rows.size, dtype=bool)
        return np.isinf(self.worth_again_s(rows, self.floor))

    def due_times(self, rows: Ids, now_s: Float64s | float) -> Float64s:
        """When rows polled then will be worth polling again, as things are; never before their holds."""
        return np.asarray(np.maximum(now_s + self.intervals_s(rows), self.memory.hold_s[rows]))

    def intervals_s(self, rows: Ids) -> Float64s:
        """How long after a poll rows are worth the next, as things are; infinite where they never are."""
        memory = self.memory
        after_s = self._due_once_seen(rows, self._due_after_s(rows))
        return np.minimum(np.maximum(after_s, memory.min_interval_s[rows]), memory.max_interval_s[rows])

    def _due_after_s(self, rows: Ids) -> Float64s:
        if self.name == "uniform" or self.threshold <= 0:
            return np.full(rows.size, self.threshold)
        after_s = self.worth_again_s(rows, self.threshold)
        return np.where(self.memory.weight[rows] == 0, np.inf, after_s)

    def worth_again_s(self, rows: Ids, level: float) -> Float64s:
        """How long after a poll the worth of rows reaches ``level``; infinite where it never does."""
        return self.ranking.due_exactly_s(rows, level, _LONGEST_S)

    def _due_once_seen(self, rows: Ids, after_s: Float64s) -> Float64s:
        """Rows that are watched are due when they change, on average after 1/λ."""
        seen = self.sight
        if seen is None or self.name == "uniform":
            return after_s
        which = np.minimum(np.searchsorted(seen.rows, rows), max(seen.rows.size - 1, 0))
        if seen.rows.size == 0:
            return after_s
        told = (seen.rows[which] == rows) & seen.known[which] & (seen.rates()[which] > 0)
        return np.where(told, 1.0 / np.where(told, seen.rates()[which], 1.0), after_s)

    def watched(self) -> Bools:
        """Rows whose staleness is seen."""
        found = np.zeros(self.memory.size, dtype=bool)
        if self.sight is not None:
            found[self.sight.rows] = self.sight.known
        return found

    def due_s(self, row: int, now_s: float) -> float:
        """The same for one row."""
        return float(self.due_times(np.array([row]), now_s)[0])

    def sample(self) -> Ids:
        """All rows, or of very many some that are spread evenly over the order of their registration."""
        return np.arange(0, self.memory.size, max(-(-self.memory.size // _LOOKED_AT), 1))

    def fresh(self, now_s: float, rows: Ids | None = None) -> Float64s:
        """The probability that each row's copy is right now, of all or these in order; 0 without one."""
        every = np.arange(self.memory.size) if rows is None else rows
        found = np.where(np.isnan(self.memory.polled_s[every]), 0.0, self.ranking.fresh(now_s, every))
        if self.sight is not None and every.size:
            seen, fresh = self.sight.rows[self.sight.known], self.sight.fresh[self.sight.known]
            place = np.minimum(np.searchsorted(every, seen), every.size - 1)
            asked_for = every[place] == seen
            found[place[asked_for]] = fresh[asked_for]
        return found

    def freshness(self, now_s: float) -> tuple[float, float]:
        """The model's estimate of Σw·fresh/Σw over active items now, and its standard error.

        Each copy is fresh or not, independently, with the probability that it survived; of very many a
        sample of n of N is looked at: Var = Σw²[(n/N)·p(1−p) + (1−n/N)·(p−p̄)²]/(Σw)² over the sample.
        """
        rows = self.sample()
        alive = self.fresh(now_s, rows)
        weight = np.where(self.memory.active[rows], self.memory.weight[rows], 0.0)
        total = float(weight.sum())
        if total <= 0:
            return 1.0, 0.0
        value, part = float(np.sum(weight * alive)) / total, rows.size / self.memory.size
        chance = float(
            np.sum(weight**2 * (part * alive * (1.0 - alive) + (1.0 - part) * (alive - value) ** 2))
        )
        return value, math.sqrt(chance) / total

    def covered(self) -> float:
        """The share of the active items' weight that has a copy."""
        weight = np.where(self.memory.active, self.memory.weight, 0.0)
        total = float(weight.sum())
        return float(weight[~np.isnan(self.memory.polled_s)].sum()) / total if total > 0 else 0.0
