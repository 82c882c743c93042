"""The adaptive policy over the rows of a memory: what it values, what it has learned, what it keeps.

Rows of the memory are the policy's items. What the store keeps of each item (``beliefs``) and of all together
(``learned``) is given to it at the start, so a new process goes on where the last one stopped. So it is for
whoever asks from outside while another process runs: ``status`` and ``why`` speak from what the engine
decides by. A policy over some items only is scaled as if the others were there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from afresh.engine.scheduler import stored_beliefs
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.stored_beliefs import StoredBeliefs
from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.adaptive.rate_belief import DECADES_ABOVE
from afresh.policy.adaptive.saved_state import Arrays
from afresh.policy.families import families_of
from afresh.policy.policy import PolicyInput
from afresh.values.arrays import Bools, Float64s, Ints
from afresh.values.stored import Ids

ALL_ROWS = 5_000
"""Up to so many items all are valued; of more those that the policy itself finds the most urgent."""

POOL_SHARE, FEWEST = 150, 512
FAR = 4.0  # a ladder of rates whose middle is off by so much is made anew
SLOWEST_PER_S = 1e-8  # a change in three years
# What a listing says of an item's rate: half a change's worth of evidence, with even odds that it is wrong.
GUESS_SHAPE, GUESS_DOUBT = 0.5, 0.5
_BLOCK, _FEW = 65_536, 4096


class Ranking:
    """Values the rows of a memory and learns from their polls."""

    def __init__(
        self,
        item_rows: ItemRows,
        budget_per_s: float,
        objective: str,
        now_s: float,
        *,
        names: Sequence[str] | None = None,
        shared: Arrays | None = None,
        of_items: int | None = None,
    ) -> None:
        """``names`` of all items tell who may change together; without them what was kept does.

        ``shared`` is what was learned before; the budget is for ``of_items`` items, of which the memory may
        hold only some.
        """
        self.item_rows, self._now_s, self._shift_s = item_rows, now_s, 0.0
        self.is_complete = of_items is None or item_rows.size >= of_items
        self.total_items = max(of_items or 0, item_rows.size)
        self._share = 1.0 if self.is_complete else max(item_rows.size, 1) / max(of_items or 1, 1)
        self.objective = objective
        self.families = self._families(names)
        kept, item_rows.pending_beliefs = item_rows.pending_beliefs, []
        self.policy = self._build_policy(budget_per_s)
        if shared is not None:
            self.policy.restore(self._fit_to_objective(shared))
        for first, found in kept:
            self._restore_rows(first + np.arange(found.not_before_s.size), found)
        self._start_rows(np.arange(item_rows.size))
        if shared is None and self.is_complete and self.policy.belief.polled.any():
            self.policy.refit(now_s)

    # Learning.

    def learn(self, rows: Ints, times_s: Float64s, elapsed_s: Float64s, changed: Bools) -> None:
        """Polls of distinct rows; the first look at an item only starts its clock."""
        self.grow()
        if rows.size == 0:
            return
        self._advance_time(float(times_s.max()))
        # Before the last poll only where the clock was set back and nobody has noticed yet.
        when = np.maximum(times_s + self._shift_s, self.policy.items.last_poll[rows])
        told = elapsed_s > 0
        self.policy.mark_copied(rows[~told], when[~told])
        self.policy.observe(rows[told], when[told], changed[told])

    def learn_past(self, rows: Ints, began_s: Float64s, times_s: Float64s, changed: Bools) -> None:
        """Polls of long ago, of distinct rows, each with the time of the poll before it."""
        self.policy.mark_copied(rows, np.minimum(began_s, self._now_s))
        told = times_s > began_s
        self.policy.observe(rows[told], np.minimum(times_s, self._now_s)[told], changed[told])

    def take_stored_beliefs(self, rows: Ids, polled_s: Float64s, joined: bytes, sizes: Ids) -> Float64s:
        """What others have learned of some items since (``beliefs``); when each may be tried again."""
        self.grow()
        found = stored_beliefs.unpack(joined, sizes)
        self._restore_rows(rows, found)
        polled = ~np.isnan(polled_s)
        self.policy.mark_copied(rows[polled], np.minimum(polled_s[polled] + self._shift_s, self._now_s))
        return found.not_before_s

    def notice(self, rows: Ids, now_s: float, source: str) -> None:
        """Hints that these items changed, from one source of hints."""
        self.grow()
        self.policy.notice(rows, self._advance_time(now_s), source)

    def update_weights(self, rows: Ids) -> None:
        """Another weight, cost or status of these rows; what is not polled is worth nothing."""
        rows = rows[rows < self.policy.items.size]
        item_rows = self.item_rows
        self.policy.reweigh(rows, item_rows.ranked_weight(rows), item_rows.ranked_cost(rows))

    def shift_clock(self, seconds: float) -> None:
        """The clock was set back: the policy's own time goes on as if it were not."""
        self._shift_s += seconds

    def notices_heard(self, source: str) -> float:
        """How many notices of this source have been followed by a poll."""
        notices = self.policy.notices
        return float(notices.received[notices.sources.index(source)]) if source in notices.sources else 0.0

    def set_objective(self, objective: str) -> None:
        """Another objective from now on; what was learned of each item stays."""
        if objective != self.objective:
            self.objective = objective
            self.rebuild(self.policy.items.budget / self._share, None)

    @property
    def budget_per_s(self) -> float:
        """The budget it ranks for, of all items."""
        return self.policy.items.budget / self._share

    def set_budget(self, budget_per_s: float) -> None:
        """Another budget from now on."""
        if budget_per_s * self._share != self.policy.items.budget:
            self.policy.set_budget(budget_per_s * self._share, self._now_s)

    def grow(self) -> None:
        """Take in items that came since; with many more of them the ladder of rates is made anew."""
        known, item_rows = self.policy.items.size, self.item_rows
        if known == item_rows.size:
            return
        more = slice(known, item_rows.size)
        self.families = np.pad(self.families, ((0, item_rows.size - known), (0, 0)), constant_values=-1)
        self.policy.add(item_rows.ranked_weight(more), item_rows.ranked_cost(more), self._now_s)
        kept, item_rows.pending_beliefs = item_rows.pending_beliefs, []
        for first, found in kept:
            self._restore_rows(first + np.arange(found.not_before_s.size), found)
        self._start_rows(np.arange(known, item_rows.size))

    # Asking.

    def values(self, now_s: float, wanted: Bools | None = None) -> Float64s:
        """What polling each row now gives per cost, of all or those ``wanted``; the others may be left at 0.

        Of very many rows only the urgent are valued exactly.
        """
        now_s = self._advance_time(now_s)
        self.grow()
        size = self.item_rows.size
        value = np.zeros(size)
        if size <= ALL_ROWS:
            self.policy.next(now_s, -(-size // POOL_SHARE))  # only to follow the level
            rows = np.arange(size) if wanted is None else np.flatnonzero(wanted)
            value[rows] = self.policy.poll_values(rows, now_s)
            return value
        urgent = self.policy.next(now_s, max(FEWEST, size // POOL_SHARE))
        exact = self.policy.poll_values(urgent, now_s)
        value[:] = np.minimum(self._rough_values(now_s), exact.min(initial=np.inf))
        value[urgent] = exact
        return value

    def _rough_values(self, now_s: float) -> Float64s:
        """About what each row is worth: its bound when its moment has come, ∝ τ^{p+1} before."""
        policy = self.policy
        last = policy.clock.read(policy.items.last_poll)
        wait = np.maximum(policy.next_review - last, 1e-9)
        part = np.maximum(policy.clock.read(np.array(now_s)) - last, 0.0) / wait
        power = policy.poll_value.objective.power + 1
        return np.asarray(policy.review_value * np.minimum(part, 1.0) ** power)

    def fresh(self, now_s: float, rows: Ids) -> Float64s:
        """The probability that the copy of each of these rows is right."""
        return self._blockwise(rows, lambda some: self.policy.fresh(some, now_s + self._shift_s))

    def fresh_at(self, now_s: float, rows: Ids) -> tuple[Float64s, Float64s]:
        """The same of a few rows at each rate of the ladder, and what their polls say of it (≤ 1)."""
        self.grow()
        belief = self.policy.belief
        told = belief.posteriors(rows) / belief.prior
        told /= np.maximum(told.max(axis=1, keepdims=True), 1e-300)
        return np.exp(-self.policy.forecast(rows, now_s + self._shift_s)[1]), told

    def ages(self, now_s: float, rows: Ids) -> Float64s:
        """The expected age of the copy of each of these rows."""
        return self._blockwise(rows, lambda some: self.policy.ages(some, now_s + self._shift_s))

    def rates(self) -> Float64s:
        """The mean rate of each row, per second."""
        self.grow()
        return self.policy.rates()

    def rate_range(self, rows: Ids, level: float) -> tuple[Float64s, Float64s, Float64s]:
        """Median of what is believed of each row's rate, and the interval that holds it at ``level``.

        Quantiles on the ladder, even in ln λ between its rates; what its families add comes on top. Plans go
        by it; people are shown ``own_rates``.
        """
        self.grow()
        belief = self.policy.belief
        mass = belief.posteriors(rows)
        mass = np.cumsum(mass / mass.sum(axis=1, keepdims=True), axis=1)
        octave = np.log(belief.rates[1] / belief.rates[0])
        edges = np.log(belief.rates[0]) + octave * (np.arange(belief.rates.size + 1) - 0.5)
        ends = (0.5, 0.5 - 0.5 * level, 0.5 + 0.5 * level)
        found = np.exp([np.interp(ends, np.r_[0.0, each], edges) for each in mass]).reshape(-1, 3)
        found += (self.policy.rates()[rows] - belief.mean(rows))[:, None]
        return found[:, 0], found[:, 1], found[:, 2]

    def time_to_reach(self, rows: Ids, level: Float64s | float) -> Float64s:
        """How long after a poll each row's worth reaches ``level``."""
        self.grow()
        return self.policy.time_to_reach(rows, level)

    def exact_time_to_reach(self, rows: Ids, level: Float64s | float, longest_s: float) -> Float64s:
        """The same, however long it takes, with the shocks of its families beside each row's own rate."""
        self.grow()
        policy, goal = self.policy, np.broadcast_to(level, rows.shape)

        def work(some: slice) -> Float64s:
            which = rows[some]
            rates = policy.calibration.factors(which)[:, None] * policy.belief.rates
            if policy.shocks is not None:
                rates += policy.shocks.rate(which)[:, None]
            price = policy.items.cost[which] / np.maximum(policy.items.weight[which], 1e-270)
            value, posterior = goal[some] * price, policy.belief.posterior[which]
            return policy.poll_value.exact_time_to_reach(posterior, rates, value, longest_s)

        parts = [work(slice(begin, begin + _FEW)) for begin in range(0, rows.size, _FEW)]
        return np.concatenate(parts) if parts else np.empty(0)

    # Keeping.

    def shared(self) -> Arrays:
        """What was learned of all items together."""
        return self.policy.shared() | {"objective": np.array(self.objective)}

    def pack(self, rows: Ids) -> list[bytes]:
        """These rows' beliefs as the store keeps them."""
        self.grow()
        return stored_beliefs.pack(
            self.policy.rows(rows), self.item_rows.not_before_s[rows], self.families[rows]
        )

    def rebuild(self, budget_per_s: float, names: Sequence[str] | None) -> None:
        """Begin with another ladder and other families, and go on with what was learned of each item."""
        self.grow()
        before = self.policy
        rows = before.rows(np.arange(before.items.size))
        if names is not None and len(names) == self.item_rows.size:
            self.families = families_of(names)
        self.policy = self._build_policy(budget_per_s)
        shared = _keep_notices(self.policy.shared(), before.shared())
        self.policy.restore(shared, np.arange(before.items.size), rows)
        self.policy.refit(self._now_s)

    def adopt_learned(self, shared: Arrays) -> None:
        """Go on with what another engine learned of all items together, and ours of each item."""
        self.grow()
        before, rows = self.policy, np.arange(self.item_rows.size)
        self.policy = self._build_policy(before.items.budget / self._share)
        self.policy.restore(self._fit_to_objective(shared), rows, before.rows(rows))

    def needs_new_grid(self) -> bool:
        """Whether items or budget are so many more that another ladder would fit better."""
        highest = self.policy.items.mean_frequency * 10.0**DECADES_ABOVE
        return not 1.0 / FAR <= highest / float(self.policy.belief.rates[-1]) <= FAR

    # Parts.

    def _build_policy(self, budget_per_s: float) -> Adaptive:
        item_rows = self.item_rows
        weight, cost = item_rows.ranked_weight(slice(None)), item_rows.ranked_cost(slice(None))
        families = self.families if self.families.shape[1] else None
        budget = budget_per_s * self._share
        return Adaptive(
            PolicyInput(budget, weight, cost, self._now_s, self.objective, families, slowest=SLOWEST_PER_S)
        )

    def _families(self, names: Sequence[str] | None) -> Ints:
        item_rows = self.item_rows
        if names is not None and len(names) == item_rows.size and item_rows.size:
            return families_of(names)
        kinds = max(
            (found.families.shape[1] for _, found in item_rows.pending_beliefs if found.known.size), default=0
        )
        families = np.full((item_rows.size, kinds), -1, dtype=np.int64)
        for first, found in item_rows.pending_beliefs:
            if found.families.shape[1] == kinds:
                families[first + found.known] = found.families
        return families

    def _restore_rows(self, to: Ids, found: StoredBeliefs) -> None:
        """Beliefs from the store, and the row that each belongs to."""
        rows = to[found.known]
        if rows.size:
            self.policy.restore(None, rows, self.policy.rows(rows) | found.rows)

    def _start_rows(self, rows: Ints) -> None:
        """When each row was copied, and what a listing guessed of the rates of those never polled."""
        item_rows = self.item_rows
        polled = rows[~np.isnan(item_rows.polled_s[rows])]
        for begin in range(0, polled.size, _BLOCK):  # all at once would be slower, and hold up other threads
            some = polled[begin : begin + _BLOCK]
            self.policy.mark_copied(some, np.minimum(item_rows.polled_s[some] + self._shift_s, self._now_s))
        guess = item_rows.prior_rate_per_s[rows]
        told = rows[(guess > 0) & ~self.policy.belief.polled[rows]]
        if told.size:
            belief, last = self.policy.belief, self.policy.items.last_poll[told]
            self.policy.set_gamma_belief(
                told, GUESS_SHAPE, GUESS_SHAPE / item_rows.prior_rate_per_s[told], last
            )
            # A guess may be anything: polls must be able to refute it, and it is no evidence for others.
            belief.posterior[told] += GUESS_DOUBT * (belief.prior.astype(np.float32) - belief.posterior[told])
            belief.polled[told] = False

    def _fit_to_objective(self, shared: Arrays) -> Arrays:
        """What was learned before, as far as it fits the objective of today and the items held here.

        It was learned at the budget of all items: these have their share of that, as they have of today's.
        """
        fitting = shared | {"budget": shared["budget"] * self._share}
        same = str(shared.get("objective", "")) == self.objective
        return fitting if same else fitting | {"bound": self.policy.shared()["bound"]}

    def _advance_time(self, now_s: float) -> float:
        """The policy's own time, which never goes back."""
        self._now_s = max(self._now_s, now_s + self._shift_s)
        return self._now_s

    def _blockwise(self, rows: Ids, work: Callable[[Ids], Float64s]) -> Float64s:
        self.grow()
        parts = [work(rows[begin : begin + _BLOCK]) for begin in range(0, rows.size, _BLOCK)]
        return np.concatenate(parts) if parts else np.empty(0)


def _keep_notices(fresh: Arrays, before: Arrays) -> Arrays:
    """What a policy starts with, and what the notices of each source were worth before."""
    notices = {name: value for name, value in before.items() if name.startswith("notices.")}
    return fresh | notices | {"notices.frequency": fresh["notices.frequency"]}
