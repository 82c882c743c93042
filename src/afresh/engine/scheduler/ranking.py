"""Applies the adaptive policy to the rows of ``ItemRows``: poll values, learning from polls, stored beliefs.

Row i of the item rows is item i of the policy. The beliefs of each item (``stored_beliefs``) and what was
learned of all items together are restored from the store, so that a new process continues where the last one
stopped. If a ranking has only a part of the items, it plans with their share of the budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from afresh.engine.scheduler import stored_beliefs
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.stored_beliefs import StoredBeliefs
from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.adaptive.common_lessons import CommonLessons, adopt_common, keep_common
from afresh.policy.adaptive.decayed_value import DecayedValue
from afresh.policy.adaptive.policy_rebuild import FAR, BuiltPolicy, Rebuild
from afresh.policy.adaptive.poll_value import PollValue
from afresh.policy.adaptive.rate_belief import DECADES_ABOVE
from afresh.policy.adaptive.review_schedule import LONGEST
from afresh.policy.adaptive.saved_state import Arrays, without_items
from afresh.policy.adaptive.stated_changes import StatedChanges
from afresh.policy.adaptive.update_cost import UpdateCostValue
from afresh.policy.families import families_of
from afresh.policy.policy import PolicyInput
from afresh.values.arrays import Bools, Float64s, Ints
from afresh.values.stored import Ids

ALL_ROWS = 5_000
"""Up to this number of rows all poll values are exact; with more rows, only those of the most urgent rows."""

POOL_SHARE, FEWEST = 150, 512  # of n rows, n/150 but at least 512 are the most urgent ones
SLOWEST_PER_S = 1e-8  # one change in three years
JUST_NOW_S = 60.0  # a stamp that is younger at the first poll may be the time of the answer itself
ROUNDED_S = 1e-3  # a poll that is compared with one so much earlier than the last is compared with the last
# The rate that a listing states counts as the evidence of half a change, and is wrong with probability 1/2.
GUESS_SHAPE, GUESS_DOUBT = 0.5, 0.5
_LONGEST_S = 10 * 365.25 * 86400.0  # a poll value that is reached later counts as never reached
_BLOCK, _SMALL_BLOCK = 65_536, 4096  # rows that are computed in one step


@dataclass(frozen=True, slots=True)
class RankingStart:
    """The input of a ranking, besides the items. ``budget_per_s`` (cost per second) is for all
    ``total_items`` items, by default the given ones. ``names`` are those of all items, to find families; if
    None, families are read from the stored beliefs. ``shared`` is what was learned of all items together."""

    budget_per_s: float
    objective: str
    now_s: float
    names: Sequence[str] | None = None
    shared: Arrays | None = None
    total_items: int | None = None


class Ranking:
    """Computes the poll values of the rows and learns from their polls; ``adaptive`` is the policy itself.
    ``now_s`` is the policy's time, which never goes back: ``shift_s`` is added if the clock was set back.
    ``share`` is the part of the budget for these items; ``is_complete`` is True if they are all items.
    ``source_objectives`` has the numbers of sources whose items have another ``objective``, ``source_decays``
    those of sources whose settings state how copies decay."""

    def __init__(self, item_rows: ItemRows, start: RankingStart) -> None:
        self.item_rows, self.now_s, self.shift_s = item_rows, start.now_s, 0.0
        total = start.total_items
        self.is_complete = total is None or item_rows.size >= total
        self.total_items = max(total or 0, item_rows.size)
        self.share = 1.0 if self.is_complete else max(item_rows.size, 1) / max(total or 1, 1)
        self.objective, self.source_objectives = start.objective, dict[int, str]()
        self.source_decays = dict[int, str]()
        self.families = _find_families(item_rows, start.names)
        self.adaptive = _build_policy(self, start.budget_per_s)
        if start.shared is not None:
            self.adaptive.restore(self._fit_to_objective(start.shared))
        self._start_rows(np.arange(item_rows.size))
        if start.shared is None and self.is_complete and self.adaptive.belief.polled.any():
            self.adaptive.refit(start.now_s)

    # Learning.

    def learn(
        self,
        rows: Ints,
        times_s: Float64s,
        elapsed_s: Float64s,
        changed: Bools,
        stated: StatedChanges | None = None,
    ) -> None:
        """Learn from polls of distinct rows: their times, the seconds since the polls that they are compared
        with, whether the items changed, and what their sources ``stated``. If ``elapsed_s`` is not positive,
        the poll was not compared with an earlier copy: it sets the time of the copy and teaches nothing about
        the rate, but for the age of an item that is new. If it is ``STARTS_AGAIN``, or if it begins before
        the last poll, what was learned of the row since then is not true, and all of it is forgotten."""
        self.grow()
        if rows.size == 0:
            return
        self._advance_time(float(times_s.max()))
        adaptive = self.adaptive
        # A time before the last poll means that the clock was set back and ``shift_s`` does not know it yet.
        when = np.maximum(times_s + self.shift_s, adaptive.items.last_poll[rows])
        compared, is_new = elapsed_s > 0, np.isnan(self.item_rows.polled_s[rows])
        began_s = when - elapsed_s
        is_older = compared & ~is_new & (began_s < adaptive.items.last_poll[rows] - ROUNDED_S)
        adaptive.forget(rows[is_older | (elapsed_s < 0)])
        adaptive.mark_copied(rows[is_older], began_s[is_older])
        adaptive.mark_copied(rows[~compared], when[~compared])
        if stated is not None:
            dated = ~compared & is_new & (stated.since > JUST_NOW_S)
            adaptive.observe_ages(rows[dated], when[dated], stated.since[dated])
        adaptive.observe(
            rows[compared],
            when[compared],
            changed[compared],
            None if stated is None else stated.take(compared),
        )

    def forget(self, rows: Ids) -> None:
        """Forget what was learned of ``rows``, of which only the times of their copies stay."""
        self.grow()
        self.adaptive.forget(rows[self.adaptive.belief.polled[rows]])

    def adopt_stored_beliefs(self, rows: Ids, polled_s: Float64s, joined: bytes, sizes: Ids) -> Float64s:
        """Replace the beliefs of ``rows`` by stored ones of other engines, ``joined``, with ``sizes`` bytes
        for each row. ``polled_s`` are the last polls. Return the earliest times of the next polls."""
        self.grow()
        found = stored_beliefs.unpack(joined, sizes)
        _restore_rows(self.adaptive, rows, found)
        polled = ~np.isnan(polled_s)
        self.adaptive.mark_copied(rows[polled], np.minimum(polled_s[polled] + self.shift_s, self.now_s))
        return found.not_before_s

    def notice(self, rows: Ids, now_s: float, origin: str) -> None:
        """Record notices, all from one origin, that the items of ``rows`` changed."""
        self.grow()
        self.adaptive.notice(rows, self._advance_time(now_s), origin)

    def is_noticed(self, origin: str) -> Bools:
        """Return for each row whether ``origin`` has announced a change since its last poll."""
        self.grow()
        notices = self.adaptive.notices
        if origin not in notices.origins:
            return np.zeros(self.item_rows.size, dtype=bool)
        return np.asarray(notices.pending[:, notices.origins.index(origin)] > 0)

    def followed_notices(self, origin: str) -> float:
        """Return how many notices of ``origin`` were followed by a poll."""
        notices = self.adaptive.notices
        return float(notices.followed[notices.origins.index(origin)]) if origin in notices.origins else 0.0

    def update_weights(self, rows: Ids) -> None:
        """Pass the changed weights and costs of ``rows`` to the policy; an inactive item has the weight 0."""
        rows = rows[rows < self.adaptive.items.size]
        weight, cost = self.item_rows.ranked_weight(rows), self.item_rows.ranked_cost(rows)
        self.adaptive.reweigh(rows, weight, cost)

    def set_objective(self, objective: str) -> None:
        """Rank by ``objective`` from now on; the beliefs of the items stay."""
        if objective != self.objective:
            self.objective = objective
            self.rebuild(self.budget_per_s, None)

    @property
    def budget_per_s(self) -> float:
        """The budget for all items, also for those that this ranking does not contain."""
        return self.adaptive.items.budget / self.share

    def set_budget(self, budget_per_s: float) -> None:
        if budget_per_s * self.share != self.adaptive.items.budget:
            self.adaptive.set_budget(budget_per_s * self.share, self.now_s)

    def grow(self) -> None:
        """Add the items that were loaded into ``item_rows`` since the last call."""
        known, item_rows = self.adaptive.items.size, self.item_rows
        if known == item_rows.size:
            return
        more = slice(known, item_rows.size)
        self.families = np.pad(self.families, ((0, item_rows.size - known), (0, 0)), constant_values=-1)
        added = self.adaptive.add(item_rows.ranked_weight(more), item_rows.ranked_cost(more), self.now_s)
        self.adaptive.notices.set_hosts(added, item_rows.group[more])
        self._start_rows(np.arange(known, item_rows.size))

    # Valuing.

    def values(self, now_s: float, wanted: Bools | None = None) -> Float64s:
        """Return the poll value of each row; it may be 0 for rows that are not ``wanted``. If there are more
        than ``ALL_ROWS`` rows, only the values of the most urgent ones are exact."""
        now_s = self._advance_time(now_s)
        self.grow()
        size = self.item_rows.size
        value = np.zeros(size)
        if size <= ALL_ROWS:
            self.adaptive.next(now_s, -(-size // POOL_SHARE))  # called only to update its shadow price
            rows = np.arange(size) if wanted is None else np.flatnonzero(wanted)
            value[rows] = self.adaptive.poll_values(rows, now_s)
        else:
            urgent = self.adaptive.next(now_s, max(FEWEST, size // POOL_SHARE))
            exact = self.adaptive.poll_values(urgent, now_s)
            value[:] = np.minimum(_rough_values(self.adaptive, now_s), exact.min(initial=np.inf))
            value[urgent] = exact
        self._subtract_updates(value, wanted, now_s)
        for kind, rows in self._special_rows(wanted):
            value[rows] = self._values_under(kind, rows, now_s)
        return value

    def _subtract_updates(self, value: Float64s, wanted: Bools | None, now_s: float) -> None:
        """Subtract what a poll adds to the cost of updates; see ``policy.adaptive.update_cost``. Of more than
        ``ALL_ROWS`` rows, only those with the highest values are corrected."""
        dear = self.item_rows.update_cost > 0
        if not dear.any():
            return
        dear &= value > 0 if wanted is None else wanted & (value > 0)
        rows = np.flatnonzero(dear)
        if rows.size > ALL_ROWS:
            rows = rows[np.argpartition(value[rows], -ALL_ROWS)[-ALL_ROWS:]]
        for begin in range(0, rows.size, _SMALL_BLOCK):
            some = rows[begin : begin + _SMALL_BLOCK]
            forecast = self.adaptive.forecast(some, now_s)
            found = PollValue("freshness", self.adaptive.belief.rates).marginal(forecast.expected)
            more = (forecast.posterior * found).sum(axis=1)
            value[some] -= more * self.item_rows.update_cost[some] / self.adaptive.items.cost[some]

    def _special_rows(self, wanted: Bools | None = None) -> Iterator[tuple[tuple[str, str], Ints]]:
        """Yield tuples (kind, rows) for the rows whose source has another objective than the others, or
        states a decay. The kind is a tuple (objective, decay); the decay is empty if none is stated."""
        kinds = {code: (name, "") for code, name in self.source_objectives.items()}
        kinds |= {code: ("freshness", decay) for code, decay in self.source_decays.items()}
        for kind in sorted(set(kinds.values())):
            found = np.isin(self.item_rows.source, [code for code, other in kinds.items() if other == kind])
            rows = np.flatnonzero(found if wanted is None else found & wanted)
            if rows.size:
                yield kind, rows

    def _special_value(self, kind: tuple[str, str], rows: Ids) -> PollValue:
        """Return the poll value of ``rows`` of one kind, with the cost of their updates."""
        objective, decay = kind
        rates = self.adaptive.belief.rates
        if not decay:
            return self._with_updates(PollValue(objective, rates), rows)
        plain = DecayedValue(decay, rates)
        return DecayedValue(decay, rates, self._update_ratio(plain, rows))

    def _values_under(self, kind: tuple[str, str], rows: Ids, now_s: float) -> Float64s:
        """Return the poll values of ``rows`` of one kind, without the value of information."""
        items, found = self.adaptive.items, np.empty(rows.size)
        for begin in range(0, rows.size, _SMALL_BLOCK):
            some = rows[begin : begin + _SMALL_BLOCK]
            own, forecast = self._special_value(kind, some), self.adaptive.forecast(some, now_s)
            value = own.mean(forecast.posterior, forecast.expected, forecast.rate)
            found[begin : begin + _SMALL_BLOCK] = (
                value * items.weight[some] / items.cost[some] / self._unit(own)
            )
        return found

    def _unit(self, own: PollValue) -> float:
        """Return what a value under another objective is divided by, to compare it with values under that of
        the plan: an age of one mean polling interval counts as much as one stale copy."""
        power = own.objective.power - self.adaptive.poll_value.objective.power
        return float((1.0 / self.adaptive.items.mean_frequency) ** power)

    def values_of(self, rows: Ids, now_s: float) -> Float64s:
        """Return an array with one entry per row: the exact poll values of ``rows``, and 0 elsewhere."""
        self.grow()
        value, wanted = np.zeros(self.item_rows.size), np.zeros(self.item_rows.size, dtype=bool)
        value[rows], wanted[rows] = self.adaptive.poll_values(rows, self._advance_time(now_s)), True
        self._subtract_updates(value, None, self.now_s)
        for kind, special in self._special_rows(wanted):
            value[special] = self._values_under(kind, special, self.now_s)
        return value

    def possible_rates(self, rows: Ids) -> Float64s:
        """Return the grid of possible rates of each row, calibrated and with the shocks of its families."""
        policy = self.adaptive
        rates = policy.own_factors(rows)[:, None] * policy.belief.rates
        if policy.shocks is None:
            return rates
        return rates + policy.shocks.trust * policy.shocks.rate(rows)[:, None]

    def time_to_reach(self, rows: Ids, poll_value: float) -> Float64s:
        """Return the seconds without a poll after which each row has this poll value; infinite if never."""
        self.grow()
        policy = self.adaptive

        def block(some: slice) -> Float64s:
            which = rows[some]
            rates = self.possible_rates(which)
            price = policy.items.cost[which] / np.maximum(policy.items.weight[which], 1e-270)
            value, posterior = poll_value * price, policy.belief.posterior[which]
            own = self._with_updates(policy.poll_value, which)
            return own.exact_time_to_reach(posterior, rates, value, _LONGEST_S)

        blocks = [block(slice(begin, begin + _SMALL_BLOCK)) for begin in range(0, rows.size, _SMALL_BLOCK)]
        found = np.concatenate(blocks) if blocks else np.empty(0)
        for kind, others in self._special_rows():
            where = np.flatnonzero(np.isin(rows, others))
            if where.size:
                found[where] = self._time_under(kind, rows[where], poll_value)
        return found

    def _time_under(self, kind: tuple[str, str], rows: Ids, poll_value: float) -> Float64s:
        """Return ``time_to_reach`` of rows of one kind."""
        items, own = self.adaptive.items, self._special_value(kind, rows)
        value = poll_value * self._unit(own) * items.cost[rows] / np.maximum(items.weight[rows], 1e-270)
        posterior, rates = self.adaptive.belief.posterior[rows], self.possible_rates(rows)
        return own.exact_time_to_reach(posterior, rates, value, _LONGEST_S)

    def _with_updates(self, poll_value: PollValue, rows: Ids) -> PollValue:
        """Return ``poll_value``, or one that subtracts the cost of updates, if ``rows`` have any."""
        if not self.item_rows.update_cost[rows].any():
            return poll_value
        return UpdateCostValue(poll_value.name, poll_value.rates, self._update_ratio(poll_value, rows))

    def _update_ratio(self, poll_value: PollValue, rows: Ids) -> Float64s:
        """Return C_U/w of ``rows``, in the unit of ``poll_value``."""
        weight = np.maximum(self.adaptive.items.weight[rows], 1e-270)
        return np.asarray(self.item_rows.update_cost[rows] * self._unit(poll_value) / weight)

    def review_waits_s(self, rows: Ids) -> Float64s:
        """Return after how many seconds without a poll each row is polled to review whether it is rightly
        dropped: ``LONGEST`` mean polling intervals, or later if many polls taught its rate."""
        self.grow()
        least_s = LONGEST / self.adaptive.items.mean_frequency
        return np.maximum(self.adaptive.longest_wait(rows), least_s)

    def believed_fresh(self, rows: Ids, now_s: float) -> Float64s:
        """Return the probability that the copy of each row is fresh."""
        return self.adaptive.fresh(rows, self._advance_time(now_s))

    # Storing and rebuilding.

    def shared(self) -> Arrays:
        """Return what was learned of all items together, as arrays to be stored."""
        return self.adaptive.shared() | {"objective": np.array(self.objective)}

    def pack(self, rows: Ids) -> list[bytes]:
        """Return the belief of each of ``rows`` as bytes to be stored."""
        self.grow()
        not_before_s = self.item_rows.not_before_s[rows]
        return stored_beliefs.pack(self.adaptive.rows(rows), not_before_s, self.families[rows])

    def rebuild(self, budget_per_s: float, names: Sequence[str] | None, forgotten: Ids | None = None) -> None:
        """Build the grid of rates again for ``budget_per_s`` and, if ``names`` of all items are given, the
        families. The beliefs of the items are kept, and what does not depend on the budget: what was learned
        of notices, the season and, unless the budget is a quite different one, the families. Of these, what
        the ``forgotten`` rows taught is left out."""
        self.replace_policy(self.prepare_rebuild(budget_per_s, forgotten).build(names))

    def prepare_rebuild(self, budget_per_s: float, forgotten: Ids | None = None) -> Rebuild:
        """Return all that a new policy is built from, as it is now. ``Rebuild.build`` takes seconds if there
        are very many items; another thread may call it while this ranking is used."""
        self.grow()
        before = self.adaptive
        rows, learned = before.rows(np.arange(before.items.size)), before.shared()
        if forgotten is not None:
            learned = without_items(learned, forgotten, self.families[forgotten])
        return Rebuild(_policy_input(self, budget_per_s), self.families, before, rows, learned)

    def replace_policy(self, built: BuiltPolicy) -> bool:
        """Use a policy that was built from an earlier state, and return True. What was learned of items that
        were polled since then is taken over; what those polls taught of all items together is not. Return
        False if the policy was replaced meanwhile: then this one is of no use."""
        before = self.adaptive
        if before is not built.before:
            return False
        self.adaptive, self.families = built.adaptive, built.families
        keep_common(before, self.adaptive)
        changed = built.changed_rows()
        if changed.size:
            self.adaptive.restore(None, changed, before.rows(changed))
        return True

    def adopt_learned(self, shared: Arrays) -> None:
        """Adopt what another engine learned of all items together; the beliefs of the items are kept."""
        self.grow()
        before, rows = self.adaptive, np.arange(self.item_rows.size)
        self.adaptive = _build_policy(self, self.budget_per_s)
        keep_common(before, self.adaptive)
        # Pending notices by the names of their origins: the other engine may have them in another order.
        kept = before.rows(rows) | {"notices": np.zeros((rows.size, 0))}
        self.adaptive.restore(self._fit_to_objective(shared), rows, kept)
        self.adaptive.notices.take_pending(rows, before.notices.pending, before.notices.origins)

    def adopt_common(self, common: CommonLessons, now_s: float) -> None:
        """Follow what several rankings with other items learned together with this one."""
        self.grow()
        adopt_common(self.adaptive, common, self._advance_time(now_s))

    def needs_new_grid(self) -> bool:
        """Return whether items or budget changed so much that the grid of rates must be built again."""
        highest = self.adaptive.items.mean_frequency * 10.0**DECADES_ABOVE
        return not 1.0 / FAR <= highest / float(self.adaptive.belief.rates[-1]) <= FAR

    def _start_rows(self, rows: Ints) -> None:
        """Give new rows their stored beliefs, the times of their copies, and rates stated by listings."""
        item_rows = self.item_rows
        for first, found in item_rows.pending_beliefs:
            _restore_rows(self.adaptive, first + np.arange(found.not_before_s.size), found)
        item_rows.pending_beliefs = []
        polled = rows[~np.isnan(item_rows.polled_s[rows])]
        for begin in range(0, polled.size, _BLOCK):  # all at once is slower, and blocks other threads
            some = polled[begin : begin + _BLOCK]
            self.adaptive.mark_copied(some, np.minimum(item_rows.polled_s[some] + self.shift_s, self.now_s))
        guess = item_rows.prior_rate_per_s[rows]
        guessed = rows[(guess > 0) & ~self.adaptive.belief.polled[rows]]
        if guessed.size:
            belief, last = self.adaptive.belief, self.adaptive.items.last_poll[guessed]
            scale = GUESS_SHAPE / item_rows.prior_rate_per_s[guessed]
            self.adaptive.set_gamma_belief(guessed, GUESS_SHAPE, scale, last)
            # A listing may state any rate. Mixing with the prior lets polls refute it, and ``polled`` stays
            # False so that the prior of other items does not learn from it.
            doubt = belief.prior.astype(np.float32) - belief.posterior[guessed]
            belief.posterior[guessed] += GUESS_DOUBT * doubt
            belief.polled[guessed] = False

    def _fit_to_objective(self, shared: Arrays) -> Arrays:
        """Return ``shared`` with these items' share of its budget. If it was learned for another objective,
        its ``bound`` is replaced too, by the review value of this policy."""
        fitting = shared | {"budget": shared["budget"] * self.share}
        same = str(shared.get("objective", "")) == self.objective
        return fitting if same else fitting | {"bound": self.adaptive.shared()["bound"]}

    def _advance_time(self, now_s: float) -> float:
        """Return the policy's own time, which never goes back."""
        self.now_s = max(self.now_s, now_s + self.shift_s)
        return self.now_s


def _find_families(item_rows: ItemRows, names: Sequence[str] | None) -> Ints:
    """Return the families of each row, with a column per kind of family and −1 for none. They are found by
    the names of all items, or read from the stored beliefs."""
    if names is not None and len(names) == item_rows.size and item_rows.size:
        return families_of(names)
    stored = item_rows.pending_beliefs
    kinds = max((found.families.shape[1] for _, found in stored if found.known.size), default=0)
    families = np.full((item_rows.size, kinds), -1, dtype=np.int64)
    for first, found in stored:
        if found.families.shape[1] == kinds:
            families[first + found.known] = found.families
    return families


def _build_policy(ranking: Ranking, budget_per_s: float) -> Adaptive:
    return Adaptive(_policy_input(ranking, budget_per_s))


def _policy_input(ranking: Ranking, budget_per_s: float) -> PolicyInput:
    item_rows, families = ranking.item_rows, ranking.families
    return PolicyInput(
        budget_per_s * ranking.share,
        item_rows.ranked_weight(slice(None)),
        item_rows.ranked_cost(slice(None)),
        ranking.now_s,
        ranking.objective,
        families if families.shape[1] else None,
        hosts=item_rows.group,
        slowest=SLOWEST_PER_S,
    )


def _restore_rows(policy: Adaptive, to: Ids, found: StoredBeliefs) -> None:
    rows = to[found.known]
    if rows.size:
        policy.restore(None, rows, policy.rows(rows) | found.rows)


def _rough_values(policy: Adaptive, now_s: float) -> Float64s:
    """Return approximate poll values. An item whose next review is due has the review value. Before that, its
    value is in proportion to τ^(p+1): τ is the time since its last poll, p the power of the objective."""
    last = policy.clock.read(policy.items.last_poll)
    wait = np.maximum(policy.next_review - last, 1e-9)
    part = np.maximum(policy.clock.read(np.array(now_s)) - last, 0.0) / wait
    power = policy.poll_value.objective.power + 1
    return np.asarray(policy.review_value * np.minimum(part, 1.0) ** power)
