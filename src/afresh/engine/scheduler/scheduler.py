"""The scheduler: which item is polled next, and what its poll teaches; the door to all of this folder.

    item_rows   every item as a row of arrays
    policy      what each row is worth, and when it is due (RowPolicy over Ranking)
    forecast    what is believed of the copies: freshness, ages, rates
    picker      takes the best rows of the groups that may be asked now, each busy until its poll is over
    load, edit, notice, catch_up …      follow what people and other engines did
    learned, adopt, replace_items …     what outlives a process, or comes from another one

``run`` and ``run --once`` poll through a scheduler that lives as long as they do; ``status``, ``why`` and
``observe`` restore one from the store (``restore``) for a single answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from afresh.engine.scheduler import audits
from afresh.engine.scheduler.earnings import MoneyInput, apply_money_terms, has_income, plan_budget
from afresh.engine.scheduler.forecast import Forecast
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.picker import GroupKey, Picker
from afresh.engine.scheduler.row_policy import RowPolicy, Tier
from afresh.policy.adaptive.saved_state import Arrays
from afresh.values.arrays import Float64s
from afresh.values.lease import Lease
from afresh.values.stored import Ids, PolicyColumns

FOLLOWED_UP = 10.0  # the first notices of a source are followed by a poll, to learn what they are worth


class Scheduler:
    """Picks rows and learns from their polls. Items hold the number of their source and of their group;
    ``names`` maps these numbers to names."""

    def __init__(
        self,
        policy: RowPolicy,
        names: Mapping[int, str] | None = None,
        elapsed_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """``elapsed_s`` measures how long ranking takes."""
        self.names, self._elapsed_s = names or {}, elapsed_s
        self._set_policy(policy)

    def _set_policy(self, policy: RowPolicy) -> None:
        self.policy, self.forecast = policy, Forecast(policy)
        self.picker = Picker(policy, self._elapsed_s)
        self._ranked_size = policy.item_rows.size

    @property
    def item_rows(self) -> ItemRows:
        """Every item as a row of arrays; another table after ``replace_items``."""
        return self.policy.item_rows

    def group_names(self, group_key: GroupKey) -> tuple[str, str]:
        return self.names.get(group_key[0], ""), self.names.get(group_key[1], "")

    # Picking.

    def draw_audit(self, rng: np.random.Generator, now_s: float) -> int | None:
        """Draw a row in proportion to weight; None if there is none, or its staleness is observed anyway."""
        row = audits.draw(self.item_rows, rng, now_s)
        return None if row is None or self.policy.is_observed()[row] else row

    def waiting_sources(self, now_s: float) -> set[str]:
        """Return the sources that have rows to poll, be it in groups that may not be asked now."""
        waiting = self.policy.priorities(now_s).tier > Tier.BARRED
        return {self.names.get(code, "") for code in np.unique(self.item_rows.source[waiting]).tolist()}

    # Following others.

    def load(self, columns: Iterable[PolicyColumns], names: Mapping[int, str]) -> None:
        self.item_rows.load(columns)
        self.policy.ranking.grow()
        self.names = names
        self.picker.invalidate()

    def edit(self, item_ids: Sequence[int], columns: PolicyColumns, now_s: float) -> None:
        """Follow items that were changed or removed; ``columns`` has those that are still there."""
        self.item_rows.edit(item_ids, columns, now_s)
        self.policy.ranking.update_weights(self.item_rows.rows(item_ids))
        self.picker.invalidate()

    def notice(self, item_ids: Sequence[int], now_s: float) -> None:
        """Take hints that items changed; the first ones of each source are followed by a poll."""
        rows, ranking = self.item_rows.rows(item_ids), self.policy.ranking
        for code in np.unique(self.item_rows.source[rows]).tolist():
            theirs, source = rows[self.item_rows.source[rows] == code], self.names.get(code, "")
            if ranking.followed_notices(source) < FOLLOWED_UP:
                self.item_rows.is_requested[theirs] = True
            ranking.notice(theirs, now_s, source)
            self.picker.invalidate()

    def catch_up(self, lease: Lease, row: int, now_s: float) -> bool:
        """Take over what another engine learned of an item since we polled it; return whether any did."""
        polled_s, item_rows = lease.polled_s, self.item_rows
        if polled_s is None or polled_s > now_s:  # never, or by a clock that was set back since
            return False
        if not item_rows.catch_up(row, polled_s):
            return False
        self._take_stored(np.array([row]), np.array([polled_s]), lease.belief, np.array([len(lease.belief)]))
        return True

    def _take_stored(self, rows: Ids, polled_s: Float64s, beliefs: bytes, sizes: Ids) -> None:
        self.item_rows.not_before_s[rows] = self.policy.ranking.take_stored_beliefs(
            rows, polled_s, beliefs, sizes
        )

    def replace_items(self, full: Scheduler, polled: PolicyColumns) -> None:
        """Continue with all items instead of some; ``polled`` are ours, as the store has them now. This is
        the only place where the items of a scheduler are exchanged. No row may be busy."""
        self._set_policy(full.policy)
        self.names = full.names
        item_rows, rows = self.item_rows, self.item_rows.rows(polled.id.tolist())
        item_rows.polled_s[rows], item_rows.due_s[rows] = polled.polled_s, polled.due_s
        self._take_stored(rows, polled.polled_s, polled.beliefs, polled.belief_size)
        item_rows.not_before_s[rows] = np.minimum(item_rows.not_before_s[rows], polled.due_s)

    def shift_clock(self, back_s: float) -> None:
        """Continue as if the clock had not been set back by so many seconds."""
        self.policy.ranking.shift_s += back_s

    # Settings and learned state.

    def follow_settings(self, money: MoneyInput) -> None:
        settings, ranking = money.settings, self.policy.ranking
        self.policy.name = settings.plan.policy
        ranking.set_objective(settings.plan.objective)
        if not has_income(settings):
            ranking.set_budget(settings.budget.requests)
        apply_money_terms(self.policy, money)
        self.picker.invalidate()

    def has_outgrown(self) -> bool:
        """Return whether there are so many more items that families and grid should be built again."""
        grown = self.item_rows.size >= 2 * max(self._ranked_size, 1)
        return grown or self.policy.ranking.needs_new_grid()

    def rebuild(self, money: MoneyInput, names: Sequence[str] | None) -> None:
        self.policy.ranking.rebuild(plan_budget(self.policy, money), names)
        self._ranked_size = self.item_rows.size

    @property
    def refits(self) -> float:
        """A number that changes whenever the prior of the rates is fitted again."""
        return self.policy.ranking.adaptive.refit_gap

    def learned(self) -> Arrays | None:
        """Return what was learned of all items together; None if this scheduler holds only some of them."""
        return self.policy.ranking.shared() if self.policy.ranking.is_complete else None

    def adopt(self, learned: Arrays) -> None:
        """Continue with what another engine learned of all items together, if all of them are held here."""
        if self.policy.ranking.is_complete:
            self.policy.ranking.adopt_learned(learned)
            self.picker.invalidate()
