"""The poll value of each row, the order in which rows are polled, and the time of their next poll.

``adaptive``  polls the row with the highest poll value first; ``Ranking`` computes the poll values
``uniform``   polls the row that was polled longest ago first

Poll values are corrected if a source observes the staleness of its items (``observed_staleness``) or states
what fresh copies earn (``earnings``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from afresh.engine.scheduler.lag_tiers import LagTargets
from afresh.engine.scheduler.observed_staleness import ObservedStaleness, RefreshTerms
from afresh.engine.scheduler.ranking import ALL_ROWS, Ranking
from afresh.engine.scheduler.saa_sampling import SaaSampling
from afresh.engine.settings.tables import Settings
from afresh.values.arrays import Bools, Float64s
from afresh.values.stored import Ids

CURSOR = "cursor"
"""The origin of the notices of a source that has a cursor."""

PolicyName: TypeAlias = Literal["adaptive", "uniform"]
_RECENT, _SELDOM = 200, 16  # the shadow price is the median of 200 picks, computed at every 16th pick
_ENOUGH = 1024  # poll values are not computed while this many rows of higher tiers wait
_LONGEST_S = 10 * 365.25 * 86400.0
_RATHER_STALE = 0.5  # a copy that is fresh with less than this probability
# Rows whose polls gain nothing now (of weight 0, or futile) are reviewed this many times as rarely as dropped
# ones: with waits of 10 mean polling intervals and more, their reviews use at most 1 % of the budget.
_RARER = 10.0


class Tier(IntEnum):
    """The precedence of rows: a higher tier is polled first. Within ``RANKED``, the poll value decides."""

    BARRED = 0  # may not be polled now
    RANKED = 1
    OVERDUE = 2  # polled longer ago than ``max_interval_s``, or due by SAA
    REQUESTED = 3  # a person or the first notices of an origin asked for a poll
    NEW = 4  # never polled
    URGENT = 5  # observed to be stale, and its target lag leaves no more time


_REPORTED = {
    Tier.OVERDUE: 1e300,
    Tier.REQUESTED: 1e301,
    Tier.URGENT: 1e302,
    Tier.NEW: np.inf,
    Tier.BARRED: -np.inf,
}
"""The numbers that ``why`` and the API report as poll values of rows in other tiers than ``RANKED``."""


@dataclass(frozen=True, slots=True)
class Priorities:
    """The tier of each row, and the value that orders the rows of the tier ``RANKED``: the poll value or, for
    the policy ``uniform``, the seconds since the last poll. In the tier ``URGENT`` it is higher for rows that
    must start earlier, and in other tiers it is 0."""

    tier: npt.NDArray[np.int8]
    value: Float64s


@dataclass(slots=True)
class MoneyState:
    """How money changes the order of polls; see ``earnings``. A poll whose value is below
    ``break_even_value`` costs more than it earns. ``is_limited`` is True if a limit of the budget prevents
    polls that would pay, ``is_applied`` if some row has a value or cost factor other than 1. ``paid_off_s``
    has the seconds for which a poll of each observed row delays the polls of other rows. ``lags`` are the
    target lags of the observed rows, if they have any."""

    break_even_value: float = 0.0
    is_limited: bool = True
    is_applied: bool = False
    paid_off_s: Float64s = field(default_factory=lambda: np.empty(0))
    lags: LagTargets | None = None


class RowPolicy:
    """Orders the rows. ``shadow_price`` is the poll value at which items are polled now, as measured."""

    def __init__(self, ranking: Ranking, name: PolicyName) -> None:
        self.item_rows, self.ranking, self.name = ranking.item_rows, ranking, name
        self.staleness: ObservedStaleness | None = None
        self.money, self.sampling = MoneyState(), SaaSampling(ranking.item_rows)
        self._min_intervals: Mapping[str, float] = {}
        self._objectives: Mapping[str, str] = {}
        self._decays: Mapping[str, str] = {}
        self._recent_values: deque[float] = deque(maxlen=_RECENT)
        self._shadow_price, self._picks = 0.0, 0
        self.settled_sources: frozenset[int] = frozenset()
        """The numbers of the sources whose cursor proved right: their rows are polled only if it moved."""
        self.held_back = ""
        """Why rows were barred when they were last ranked: ``targets`` (their refresh would break a target
        lag), ``intervals`` (``min_interval_s`` has not passed since their last poll) or ``unchanged`` (their
        cursor has not moved); empty if none was."""

    def follow_sources(self, names: Mapping[int, str], settings: Settings | None = None) -> None:
        """Apply what ``settings``, or those of the last call, say of sources to the rows of their items: the
        least interval, the objective and the decay. ``names`` are the names of sources by number."""
        if settings is not None:
            self._min_intervals, plan = settings.min_intervals(), settings.plan.objective
            own = {
                table.settings.name: settings.objective_of(table.settings.name) for table in settings.sources
            }
            self._objectives = {name: objective for name, objective in own.items() if objective != plan}
            self._decays = {table.settings.name: table.decay for table in settings.sources if table.decay}
        least_s = {
            code: self._min_intervals[name] for code, name in names.items() if name in self._min_intervals
        }
        self.item_rows.set_default_intervals(least_s)
        codes = {code: self._objectives[name] for code, name in names.items() if name in self._objectives}
        self.ranking.source_objectives = codes
        self.ranking.source_decays = {
            code: self._decays[name] for code, name in names.items() if name in self._decays
        }

    def priorities(self, now_s: float) -> Priorities:
        item_rows = self.item_rows
        tau = np.maximum(now_s - item_rows.polled_s, 0.0)
        is_new = np.isnan(tau)
        tau = np.where(is_new, 0.0, tau)
        tier, value = self._tiers(tau, is_new, now_s), tau
        ranked = tier == Tier.RANKED
        if self.name != "uniform" and ranked.any() and not self._has_enough_above(tier):
            value = self._review_dropped(self.ranking.values(now_s, ranked), tau, ranked, now_s)
            value = self._adjust_values(value, now_s)
        tier[ranked & (value == -np.inf)] = Tier.BARRED
        value = np.where(tier == Tier.RANKED, value, 0.0)
        self._keep_targets(tier, value, now_s)
        return Priorities(tier, value)

    def _has_enough_above(self, tier: npt.NDArray[np.int8]) -> bool:
        """Return whether so many rows of higher tiers wait that no ranked row is polled, so that values are
        not needed. New rows leave every fourth poll to others (see the picker), as soon as there is a
        shadow price to compare with."""
        is_above = tier > Tier.RANKED
        if self.shadow_price > 0:
            is_above &= tier != Tier.NEW
        return int(np.count_nonzero(is_above)) >= _ENOUGH

    def _tiers(self, tau: Float64s, is_new: Bools, now_s: float) -> npt.NDArray[np.int8]:
        """Return the tier of each row, without regard to what a poll gains. ``tau`` is the time since its
        last poll. A row that somebody requested is polled even if ``min_interval_s`` has not passed."""
        item_rows = self.item_rows
        barred = ~item_rows.is_active | item_rows.is_busy | (item_rows.not_before_s > now_s)
        is_early = (tau < item_rows.min_interval_s) & ~is_new & ~item_rows.is_requested
        self.held_back = "intervals" if np.any(is_early & ~barred) else ""
        barred |= is_early
        tier = np.full(item_rows.size, Tier.RANKED, dtype=np.int8)
        tier[tau >= item_rows.max_interval_s] = Tier.OVERDUE
        sampled_s = self.sampling.due_s()  # NaN, and neither before nor after now, for rows of other policies
        tier[sampled_s <= now_s] = Tier.OVERDUE
        barred |= (sampled_s > now_s) & ~item_rows.is_requested
        tier[item_rows.is_requested] = Tier.REQUESTED
        tier[is_new] = Tier.NEW
        tier[barred] = Tier.BARRED
        if self.settled_sources:
            is_settled = self.is_settled() & (tier == Tier.RANKED)
            tier[is_settled] = Tier.BARRED
            self.held_back = "unchanged" if is_settled.any() else self.held_back
        return tier

    def is_settled(self) -> Bools:
        """Return which rows need no poll because their cursor, which proved right, has not moved."""
        item_rows = self.item_rows
        if not self.settled_sources:
            return np.zeros(item_rows.size, dtype=bool)
        settled = np.isin(item_rows.source, list(self.settled_sources)) & ~np.isnan(item_rows.polled_s)
        return np.asarray(settled & ~self.ranking.is_noticed(CURSOR))

    def _keep_targets(self, tier: npt.NDArray[np.int8], value: Float64s, now_s: float) -> None:
        """Give precedence to rows whose target lag leaves no more time, and bar rows whose refresh would
        break a target lag."""
        lags = self.money.lags
        if lags is None or not lags.has_targets:
            return
        decided = lags.decide(now_s)
        is_free = tier[decided.urgent] > Tier.BARRED
        urgent = decided.urgent[is_free]
        tier[urgent], value[urgent] = Tier.URGENT, -decided.start_s[is_free]
        held = decided.held[tier[decided.held] == Tier.RANKED]
        tier[held], value[held] = Tier.BARRED, 0.0
        if held.size:
            self.held_back = "targets"

    def _review_dropped(self, value: Float64s, tau: Float64s, ranked: Bools, now_s: float) -> Float64s:
        """Return the values, with at least the shadow price μ for dropped rows whose review has come.

        A dropped row changes so often that its poll value never reaches μ. Its rate may have fallen since, so
        it is polled again after its review wait (``_review_waits_s``): its value is then μ·τ/wait. The same
        holds for rows whose polls gain nothing, so that no row waits for ever."""
        price = self.shadow_price
        if price <= 0:
            return value
        rows = np.flatnonzero(ranked & (value < price))
        rows = rows[tau[rows] >= self.ranking.review_waits_s(rows)]
        waits_s, is_worthless = self._review_waits_s(rows)
        # A row that is probably still fresh changes rarely: it waits until its poll value reaches the price.
        is_stale = self.ranking.believed_fresh(rows, now_s) < _RATHER_STALE if rows.size else is_worthless
        is_reviewed = (tau[rows] >= waits_s) & (is_stale | is_worthless)
        rows, waits_s = rows[is_reviewed], waits_s[is_reviewed]
        value[rows] = price * tau[rows] / waits_s
        return value

    def _review_waits_s(self, rows: Ids) -> tuple[Float64s, Bools]:
        """Return after how many seconds without a poll each row is reviewed if its poll value stays below the
        shadow price, and for which rows a poll gains nothing: of weight 0, or futile."""
        is_worthless = self.item_rows.weight[rows] == 0
        is_worthless[~is_worthless] = self.is_futile(rows[~is_worthless])
        return self.ranking.review_waits_s(rows) * np.where(is_worthless, _RARER, 1.0), is_worthless

    def _adjust_values(self, value: Float64s, now_s: float) -> Float64s:
        """Correct the values for observed staleness and money; −∞ if a poll gains nothing or does not pay."""
        seen, least = self.staleness, self.money.break_even_value
        if seen is not None:
            value = seen.correct_values(value, self.refresh_terms(seen), now_s)
        return np.where(value < least, -np.inf, value) if least > 0 else value

    def refresh_terms(self, seen: ObservedStaleness) -> RefreshTerms:
        """Return weights and costs of the observed rows ``seen``. If other rows have another objective than
        the age, an age of one mean polling interval counts as much as a stale copy."""
        item_rows, ranking = self.item_rows, self.ranking
        unit_s = 1.0 if ranking.objective == "age" else 1.0 / ranking.adaptive.items.mean_frequency
        weight, cost = item_rows.ranked_weight(seen.rows), item_rows.ranked_cost(seen.rows)
        return RefreshTerms(weight, cost, self.money.paid_off_s, unit_s)

    def record_picks(self, rows: Ids, now_s: float) -> None:
        """Record the poll values of ``rows``, which another program has picked, so that the shadow price
        follows. Rows that were picked for their tier are left out."""
        item_rows, ranked = self.item_rows, np.zeros(self.item_rows.size, dtype=bool)
        if item_rows.size <= ALL_ROWS:
            item_rows.is_busy[rows] = False
            found = self.priorities(now_s)
            ranked[rows], value = found.tier[rows] == Tier.RANKED, found.value
        else:  # to value all rows would take too long
            tau = np.maximum(now_s - item_rows.polled_s, 0.0)
            ranked[rows] = (tau[rows] < item_rows.max_interval_s[rows]) & ~item_rows.is_requested[rows]
            value = np.nan_to_num(tau)
            if self.name != "uniform":
                value = self.ranking.values_of(np.flatnonzero(ranked), now_s)
                value = self._review_dropped(value, np.nan_to_num(tau), ranked, now_s)
                value = self._adjust_values(value, now_s)
        for row in rows[ranked[rows]].tolist():
            self.record_pick(float(value[row]))
        self.measure_price()

    def poll_values(self, now_s: float) -> Float64s:
        """Return the poll values for reports: −∞ for a row that may not be polled now, +∞ for a new row, and
        other fixed high numbers for requested and overdue rows."""
        found = self.priorities(now_s)
        value = found.value.copy()
        for tier, reported in _REPORTED.items():
            value[found.tier == tier] = reported
        return value

    @property
    def picked_values(self) -> tuple[float, ...]:
        """The poll values of recent picks, from which the shadow price is computed."""
        return tuple(self._recent_values)

    def restore_price(self, price: float, picked_values: Iterable[float]) -> None:
        """Continue from the shadow price and the recent picks of another process."""
        self._recent_values.extend(picked_values)
        if not self._recent_values:
            self._recent_values.append(price)
        self._picks, self._shadow_price = 1, price

    def measure_price(self) -> None:
        """Compute the shadow price from the recent picks now; otherwise this is done at every 16th pick."""
        if self._recent_values:
            self._shadow_price = sorted(self._recent_values)[len(self._recent_values) // 2]

    def record_pick(self, poll_value: float) -> None:
        """Record the poll value of a picked row; the shadow price is computed from these values. A value of 0
        is ignored, because that row was not picked for its value."""
        if poll_value > 0:
            self._recent_values.append(poll_value)
            self._picks += 1
            if self._picks % _SELDOM == 1:
                self.measure_price()

    @property
    def shadow_price(self) -> float:
        """The median poll value of recent picks; 0 before the first pick. If every poll that pays can be
        made, it is the break-even value, because polls that are made late have higher values. With the policy
        ``uniform`` it is the polling interval in seconds, because its values are seconds."""
        money = self.money
        if money.break_even_value > 0 and not money.is_limited:
            return money.break_even_value
        return max(self._shadow_price, money.break_even_value)

    def is_futile(self, rows: Ids) -> Bools:
        """Return which rows are futile: copies earn money, but no poll of the row earns what it costs."""
        if self.money.break_even_value <= 0:
            return np.zeros(rows.size, dtype=bool)
        return np.isinf(self.ranking.time_to_reach(rows, self.money.break_even_value))

    def next_polls_s(self, rows: Ids, polled_s: Float64s | float) -> Float64s:
        """Return the Unix times of the next polls of ``rows``, which were polled at ``polled_s``, if the
        shadow price does not change. The next poll of a row that is dropped, futile or of weight 0 is its
        review: no row waits for ever."""
        interval_s, item_rows = self.intervals_s(rows), self.item_rows
        is_dropped = np.isinf(interval_s)
        if is_dropped.any():
            review_s, _ = self._review_waits_s(rows[is_dropped])
            interval_s[is_dropped] = np.maximum(review_s, item_rows.min_interval_s[rows[is_dropped]])
        return np.asarray(np.maximum(polled_s + interval_s, item_rows.not_before_s[rows]))

    def intervals_s(self, rows: Ids) -> Float64s:
        """Return the polling interval of each row in seconds; infinite if the row is not polled again."""
        item_rows = self.item_rows
        if self.name == "uniform" or self.shadow_price <= 0:
            interval_s = np.full(rows.size, self.shadow_price)
        else:
            interval_s = self.ranking.time_to_reach(rows, self.shadow_price)
            interval_s = np.where(item_rows.weight[rows] == 0, np.inf, interval_s)
        interval_s = self._observed_interval_s(rows, interval_s)
        wait_s = self.sampling.due_s()[rows] - item_rows.polled_s[rows]
        interval_s = np.where(np.isnan(wait_s), interval_s, wait_s)
        least_s, most_s = item_rows.min_interval_s[rows], item_rows.max_interval_s[rows]
        return np.asarray(np.minimum(np.maximum(interval_s, least_s), most_s))

    def _observed_interval_s(self, rows: Ids, interval_s: Float64s) -> Float64s:
        """Return ``interval_s``, but 1/rate for items whose staleness is observed without polls.

        Such items are polled after each change.
        """
        seen = self.staleness
        if seen is None or self.name == "uniform" or seen.rows.size == 0:
            return interval_s
        at = np.minimum(np.searchsorted(seen.rows, rows), seen.rows.size - 1)
        rate = seen.rates()[at]
        known = (seen.rows[at] == rows) & seen.known[at] & (rate > 0)
        return np.where(known, 1.0 / np.where(known, rate, 1.0), interval_s)

    def is_observed(self) -> Bools:
        """Return for each row whether its source observes its staleness without polls."""
        found = np.zeros(self.item_rows.size, dtype=bool)
        if self.staleness is not None:
            found[self.staleness.rows] = self.staleness.known
        return found
