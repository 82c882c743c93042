"""What polling each row now is worth, in which order rows go, and when they are worth the next poll.

``adaptive``  the row with the highest poll value goes first, as the ``Ranking`` values it
``uniform``   the row that was polled longest ago goes first

Poll values are corrected by what is known better than estimated: staleness that a source observes, and money
where copies earn some (``earnings``).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from afresh.engine.scheduler.observed_staleness import ObservedStaleness
from afresh.engine.scheduler.ranking import Ranking
from afresh.values.arrays import Bools, Float64s
from afresh.values.stored import Ids

PolicyName: TypeAlias = Literal["adaptive", "uniform"]
_RECENT, _SELDOM = 200, 16  # picks whose median is the shadow price, and how often it is computed
_ENOUGH = 1024  # rows of higher tiers that make ranking the others pointless
_LONGEST_S = 10 * 365.25 * 86400.0


class Tier(IntEnum):
    """The order in which rows are polled; within a tier the poll value decides."""

    BARRED = 0  # may not be polled now
    RANKED = 1
    OVERDUE = 2  # polled longer ago than its longest interval
    REQUESTED = 3  # somebody asked for it
    NEW = 4  # never polled


_REPORTED = {Tier.OVERDUE: 1e300, Tier.REQUESTED: 1e301, Tier.NEW: np.inf, Tier.BARRED: -np.inf}
"""What ``why`` and the API report as the poll value of rows that are not ranked by it."""


@dataclass(frozen=True, slots=True)
class Priorities:
    """The tier and, within it, the poll value of each row."""

    tier: npt.NDArray[np.int8]
    value: Float64s


@dataclass(slots=True)
class MoneyState:
    """What money changes in the order of polls; see ``earnings``. Below the poll value ``break_even_value``
    no poll pays; ``is_limited`` says whether a limit of the budget prevents polls that would pay;
    ``is_applied`` whether any row has factors other than 1. ``paid_off_s`` is for how long a poll of each
    observed row holds up the others."""

    break_even_value: float = 0.0
    is_limited: bool = True
    is_applied: bool = False
    paid_off_s: Float64s = field(default_factory=lambda: np.empty(0))


class RowPolicy:
    """Orders the rows, and knows the poll value at which items are polled now (``shadow_price``)."""

    def __init__(self, ranking: Ranking, name: PolicyName) -> None:
        self.item_rows, self.ranking, self.name = ranking.item_rows, ranking, name
        self.staleness: ObservedStaleness | None = None  # what is known without polls
        self.money = MoneyState()
        self._recent_values: deque[float] = deque(maxlen=_RECENT)
        self._shadow_price, self._picks = 0.0, 0

    def priorities(self, now_s: float) -> Priorities:
        item_rows = self.item_rows
        tau = np.maximum(now_s - item_rows.polled_s, 0.0)
        is_new = np.isnan(tau)
        tau = np.where(is_new, 0.0, tau)
        barred = ~item_rows.is_active | item_rows.is_busy | (item_rows.not_before_s > now_s)
        barred |= (tau < item_rows.min_interval_s) & ~is_new
        tier = np.full(item_rows.size, Tier.RANKED, dtype=np.int8)
        tier[tau >= item_rows.max_interval_s] = Tier.OVERDUE
        tier[item_rows.is_requested] = Tier.REQUESTED
        tier[is_new] = Tier.NEW
        tier[barred] = Tier.BARRED
        ranked = tier == Tier.RANKED
        value = tau
        # While enough rows of higher tiers wait, how the others compare does not matter.
        if self.name != "uniform" and ranked.any() and np.count_nonzero(tier > Tier.RANKED) < _ENOUGH:
            value = self._adjust_values(self.ranking.values(now_s, ranked))
        tier[ranked & (value == -np.inf)] = Tier.BARRED
        return Priorities(tier, np.where(tier == Tier.RANKED, value, 0.0))

    def _adjust_values(self, value: Float64s) -> Float64s:
        """Return values corrected by what is known better; −∞ where a poll gains nothing or does not pay."""
        seen, item_rows, least = self.staleness, self.item_rows, self.money.break_even_value
        if seen is not None:
            weight, cost = item_rows.ranked_weight(seen.rows), item_rows.ranked_cost(seen.rows)
            value = seen.valued(value, weight, cost, self.money.paid_off_s)
        return np.where(value < least, -np.inf, value) if least > 0 else value

    def poll_values(self, now_s: float) -> Float64s:
        """Return the poll values as they are reported: −∞ where no poll may be made, +∞ without a copy."""
        found = self.priorities(now_s)
        value = found.value.copy()
        for tier, reported in _REPORTED.items():
            value[found.tier == tier] = reported
        return value

    def record_pick(self, poll_value: float) -> None:
        """Take the poll value of an item that is polled now: these values tell the price of a poll."""
        if poll_value > 0:
            self._recent_values.append(poll_value)
            self._picks += 1
            if self._picks % _SELDOM == 1:
                self._shadow_price = sorted(self._recent_values)[len(self._recent_values) // 2]

    @property
    def shadow_price(self) -> float:
        """The poll value at which items have been polled of late; 0 before anything was. Where every poll
        that pays is made, it is the break-even value, however late some of them come."""
        money = self.money
        if money.break_even_value > 0 and not money.is_limited:
            return money.break_even_value
        return max(self._shadow_price, money.break_even_value)

    def is_futile(self, rows: Ids) -> Bools:
        """Return which rows, where copies earn money, never have a poll that is worth what it costs."""
        if self.money.break_even_value <= 0:
            return np.zeros(rows.size, dtype=bool)
        return np.isinf(self.time_to_reach(rows, self.money.break_even_value))

    def next_polls_s(self, rows: Ids, polled_s: Float64s | float) -> Float64s:
        """Return when rows polled at ``polled_s`` are worth the next poll, as things are."""
        return np.asarray(np.maximum(polled_s + self.intervals_s(rows), self.item_rows.not_before_s[rows]))

    def intervals_s(self, rows: Ids) -> Float64s:
        """Return how long after a poll rows are worth the next; infinite where they never are."""
        item_rows = self.item_rows
        if self.name == "uniform" or self.shadow_price <= 0:
            interval_s = np.full(rows.size, self.shadow_price)
        else:
            interval_s = self.time_to_reach(rows, self.shadow_price)
            interval_s = np.where(item_rows.weight[rows] == 0, np.inf, interval_s)
        interval_s = self._observed_interval_s(rows, interval_s)
        return np.minimum(
            np.maximum(interval_s, item_rows.min_interval_s[rows]), item_rows.max_interval_s[rows]
        )

    def time_to_reach(self, rows: Ids, poll_value: float) -> Float64s:
        """Return how long after a poll rows reach ``poll_value``; infinite where they never do."""
        return self.ranking.exact_time_to_reach(rows, poll_value, _LONGEST_S)

    def _observed_interval_s(self, rows: Ids, interval_s: Float64s) -> Float64s:
        """Replace the intervals of observed rows: they wait for a change, 1/λ on average."""
        seen = self.staleness
        if seen is None or self.name == "uniform" or seen.rows.size == 0:
            return interval_s
        at = np.minimum(np.searchsorted(seen.rows, rows), seen.rows.size - 1)
        rate = seen.rates()[at]
        known = (seen.rows[at] == rows) & seen.known[at] & (rate > 0)
        return np.where(known, 1.0 / np.where(known, rate, 1.0), interval_s)

    def is_observed(self) -> Bools:
        """Return which rows have a staleness that is observed without polls."""
        found = np.zeros(self.item_rows.size, dtype=bool)
        if self.staleness is not None:
            found[self.staleness.rows] = self.staleness.known
        return found
