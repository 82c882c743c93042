"""The scheduler picks the item that is polled next and learns from polls; it is the interface of this folder.

    item_rows   every item as a row of arrays
    policy      the poll value of each row and the time of its next poll (RowPolicy, which uses Ranking)
    forecast    estimates of freshness, ages and rates
    picker      picks the best rows of the groups to which requests may start now
    load, edit, notice, catch_up …         apply what people and other engines changed in the store
    learned_state, adopt, replace_items …  exchange what was learned with the store and other engines

Every way in uses such a scheduler of all items. ``run`` and ``run --once`` use one for as long as they run;
``due`` and ``observe`` restore one from the store and keep it for later calls (``external_scheduler``), while
``status`` and ``why`` restore one (``restore``) for a single answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from afresh.engine.scheduler import audits
from afresh.engine.scheduler.earnings import MoneyInput, apply_money_terms, has_income, plan_budget
from afresh.engine.scheduler.forecast import Forecast
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.picker import GroupKey, Picker, first_rows
from afresh.engine.scheduler.row_policy import RowPolicy, Tier
from afresh.engine.scheduler.stored_beliefs import FORGOTTEN
from afresh.policy.adaptive.common_lessons import CommonLessons, Lessons, lessons_of
from afresh.policy.adaptive.policy_rebuild import BuiltPolicy, Rebuild
from afresh.policy.adaptive.saved_state import Arrays
from afresh.values.arrays import Float64s, Ints
from afresh.values.lease import Lease
from afresh.values.stored import Ids, PolicyColumns

Admit: TypeAlias = Callable[[str, str], bool]
"""A function that gets the names of a source and of a group, and returns whether one more item of the group
can be polled now."""

FOLLOWED_UP = 10  # the first notices of an origin are followed by a poll, to learn how reliable they are


class Scheduler:
    """Picks rows and learns from their polls. ``names`` has the names of sources and groups by number."""

    def __init__(
        self,
        policy: RowPolicy,
        names: Mapping[int, str] | None = None,
        elapsed_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """``elapsed_s`` reads a stopwatch in seconds; it measures how long ranking takes."""
        self.names, self._elapsed_s = names or {}, elapsed_s
        self._set_policy(policy)

    def _set_policy(self, policy: RowPolicy) -> None:
        self.policy, self.forecast = policy, Forecast(policy)
        self.picker = Picker(policy, self._elapsed_s)
        self._ranked_size = policy.item_rows.size

    @property
    def item_rows(self) -> ItemRows:
        """Every item as a row of arrays. ``replace_items`` replaces this object, so do not keep it."""
        return self.policy.item_rows

    def group_names(self, group_key: GroupKey) -> tuple[str, str]:
        return self.names.get(group_key[0], ""), self.names.get(group_key[1], "")

    # Picking.

    def draw_audit(self, rng: np.random.Generator, now_s: float) -> int | None:
        """Draw a row to audit; None if none was found, or if its staleness is observed without polls."""
        row = audits.draw(self.item_rows, rng, now_s)
        return None if row is None or self.policy.is_observed()[row] else row

    def waiting_sources(self, now_s: float) -> set[str]:
        """Return the names of the sources that have rows to poll, even if their groups are not ready now."""
        waiting = self.policy.priorities(now_s).tier > Tier.BARRED
        return {self.names.get(code, "") for code in np.unique(self.item_rows.source[waiting]).tolist()}

    def bar_group(self, source: str, group: str, now_s: float) -> int:
        """Forbid all further polls of a group in a single round; return how many items are left out."""
        waiting = self.policy.priorities(now_s).tier > Tier.BARRED
        for column, wanted in ((self.item_rows.source, source), (self.item_rows.group, group)):
            waiting &= np.isin(column, [code for code, name in self.names.items() if name == wanted])
        self.item_rows.not_before_s[waiting] = np.inf
        self.picker.invalidate()
        return int(np.count_nonzero(waiting))

    def best_rows(
        self, now_s: float, most: int, sources: Collection[str], admit: Admit = lambda _source, _group: True
    ) -> list[int]:
        """Return at most ``most`` rows of ``sources`` that may be polled now, in the order of their tiers and
        poll values. They are not marked as busy. ``admit`` is called once for each returned row, and returns
        False if no further row of its group can be polled now."""
        found, item_rows = self.policy.priorities(now_s), self.item_rows
        codes = [code for code, name in self.names.items() if name in sources]
        waiting = (found.tier > Tier.BARRED) & np.isin(item_rows.source, codes)
        chosen: list[int] = []
        while len(chosen) < most and (rows := np.flatnonzero(waiting)).size:
            if rows.size > most - len(chosen):
                rows = first_rows(rows, found, most - len(chosen))
            closed: set[GroupKey] = set()
            for row in rows[np.lexsort((-found.value[rows], -found.tier[rows]))].tolist():
                group_key = item_rows.group_key(row)
                if group_key not in closed and admit(*self.group_names(group_key)):
                    chosen.append(row)
                else:
                    closed.add(group_key)
            waiting[rows] = False
            for source, group in closed:
                waiting &= (item_rows.source != source) | (item_rows.group != group)
        return chosen

    # Following others.

    def load(self, columns: Iterable[PolicyColumns], names: Mapping[int, str]) -> None:
        self.item_rows.load(columns)
        self.policy.ranking.grow()
        self.names = self.policy.sampling.names = names
        self.policy.follow_sources(names)
        self.picker.invalidate()

    def edit(self, item_ids: Sequence[int], columns: PolicyColumns, now_s: float) -> None:
        """Update the rows of items that were changed or removed; ``columns`` has those that still exist."""
        self.item_rows.edit(item_ids, columns, now_s)
        self.policy.ranking.update_weights(self.item_rows.rows(item_ids))
        forgotten = columns.id[columns.belief_size == len(FORGOTTEN)]
        self.policy.ranking.forget(self.item_rows.rows(forgotten.tolist()))
        self.picker.invalidate()

    def forget(self, rows: Ints, now_s: float, *, together: bool = False) -> None:
        """Forget what was learned of ``rows``; they may be polled at once. If these are many rows, what was
        learned of all rows ``together`` is learned again from the others."""
        item_rows, ranking = self.item_rows, self.policy.ranking
        is_active = item_rows.is_active[rows]
        item_rows.due_s[rows] = np.where(is_active, np.minimum(item_rows.due_s[rows], now_s), np.inf)
        ranking.forget(rows)
        if together:
            ranking.rebuild(ranking.budget_per_s, None, forgotten=rows)
        self.picker.invalidate()

    def notice(self, item_ids: Sequence[int], now_s: float, origin: str) -> None:
        """Record notices of one origin that items changed. The items of its first notices are requested, of
        as many hosts as possible: a listing may announce all items of a host at once, and be wrong."""
        rows, ranking = self.item_rows.rows(item_ids), self.policy.ranking
        wanted = FOLLOWED_UP - int(ranking.followed_notices(origin))
        if wanted > 0:
            first = np.unique(self.item_rows.group[rows], return_index=True)[1]
            spread = np.concatenate([rows[np.sort(first)], np.delete(rows, first)])
            self.item_rows.is_requested[spread[:wanted]] = True
        ranking.notice(rows, now_s, origin)
        self.picker.invalidate()

    def catch_up(self, lease: Lease, row: int, now_s: float) -> bool:
        """If another engine polled the item after this one, adopt the belief in ``lease`` and return True."""
        polled_s, item_rows = lease.polled_s, self.item_rows
        if polled_s is None or polled_s > now_s:  # never polled, or polled before the clock was set back
            return False
        if not item_rows.catch_up(row, polled_s):
            return False
        self.policy.sampling.miss(row, polled_s)
        belief = lease.belief
        self._adopt_beliefs(np.array([row]), np.array([polled_s]), belief, np.array([len(belief)]))
        return True

    def _adopt_beliefs(self, rows: Ids, polled_s: Float64s, beliefs: bytes, sizes: Ids) -> None:
        self.item_rows.not_before_s[rows] = self.policy.ranking.adopt_stored_beliefs(
            rows, polled_s, beliefs, sizes
        )

    def replace_items(self, full: Scheduler, polled: PolicyColumns) -> None:
        """Replace the items of this scheduler, which are only a part of all, by those of ``full``, which has
        all. ``polled`` contains the items held until now, as they are in the store. No row may be busy."""
        self._set_policy(full.policy)
        self.names = full.names
        item_rows, rows = self.item_rows, self.item_rows.rows(polled.id.tolist())
        item_rows.polled_s[rows], item_rows.due_s[rows] = polled.polled_s, polled.due_s
        self._adopt_beliefs(rows, polled.polled_s, polled.beliefs, polled.belief_size)
        item_rows.not_before_s[rows] = np.minimum(item_rows.not_before_s[rows], polled.due_s)

    def shift_clock(self, back_s: float) -> None:
        """Add ``back_s`` to the time of the policy, because the clock was set back by so many seconds."""
        self.policy.ranking.shift_s += back_s

    # Settings and learned state.

    def follow_settings(self, money: MoneyInput) -> None:
        """Apply the policy, objective, budget and prices of the settings, which may have changed."""
        settings, ranking = money.settings, self.policy.ranking
        self.policy.name = settings.plan.policy
        self.policy.sampling.follow_settings(settings, self.names)
        self.policy.follow_sources(self.names, settings)
        ranking.set_objective(settings.plan.objective)
        if not has_income(settings):
            ranking.set_budget(settings.budget.requests)
        apply_money_terms(self.policy, money)
        self.picker.invalidate()

    def has_outgrown(self) -> bool:
        """Return whether families and grid of rates must be built again: the number of items has doubled
        since they were built, or the grid no longer fits."""
        grown = self.item_rows.size >= 2 * max(self._ranked_size, 1)
        return grown or self.policy.ranking.needs_new_grid()

    def rebuild(self, money: MoneyInput, names: Sequence[str] | None) -> None:
        self.policy.ranking.rebuild(plan_budget(self.policy, money), names)
        self._ranked_size = self.item_rows.size

    def prepare_rebuild(self, money: MoneyInput) -> Rebuild:
        """Return what ``rebuild`` builds from, for another thread; ``finish_rebuild`` takes the result."""
        return self.policy.ranking.prepare_rebuild(plan_budget(self.policy, money))

    def finish_rebuild(self, built: BuiltPolicy, money: MoneyInput) -> None:
        """Use what was built. If the settings changed meanwhile, they are applied, or it is built again."""
        if self.policy.ranking.replace_policy(built):
            self._ranked_size = self.item_rows.size
            self.follow_settings(money)

    @property
    def refits(self) -> float:
        """A number that changes each time the prior of the rates is fitted again."""
        return self.policy.ranking.adaptive.refit_gap

    def learned_state(self) -> Arrays | None:
        """Return what was learned of all items together, or None if this scheduler has only some of them."""
        return self.policy.ranking.shared() if self.policy.ranking.is_complete else None

    def lessons(self) -> Lessons | None:
        """Return what was learned, for other schedulers with other items; None while items are loaded."""
        return lessons_of(self.policy.ranking.adaptive) if self.policy.ranking.is_complete else None

    def adopt_common(self, common: CommonLessons, now_s: float) -> None:
        """Follow what several schedulers with other items learned together with this one."""
        if self.policy.ranking.is_complete:
            self.policy.ranking.adopt_common(common, now_s)
            self.picker.invalidate()

    def adopt(self, learned: Arrays) -> None:
        """Adopt what another engine learned of all items together, if this scheduler has all items."""
        if self.policy.ranking.is_complete:
            self.policy.ranking.adopt_learned(learned)
            self.picker.invalidate()
