"""The scheduler that ``due`` and ``observe`` use: restored from the store, and kept for later calls.

It has all items, as the scheduler of a run, and what it learns is saved in the store. So programs that fetch
items themselves, in one process or in many, share beliefs, prior and shadow price with each other and with
runs. At each call the scheduler is brought up to date. If another process polled items since the last call,
it is restored again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from uuid import uuid4

from afresh.engine.ratelimit.request_slots import UNCOUNTED_PER_S, budget_limits, slots_until
from afresh.engine.scheduler.poll_costs import PollCosts
from afresh.engine.scheduler.poll_recorder import PollRecorder
from afresh.engine.scheduler.restore import pack_learned, pack_price, start_scheduler
from afresh.engine.scheduler.row_policy import Tier
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.scheduler.view_weights import apply_view_weights, read_view_weights
from afresh.engine.settings.tables import LiveSettings, Settings
from afresh.engine.state_names import EXTERNAL_CALL, LAST_LEFT, LEARNED
from afresh.stores.store import Store
from afresh.values.arrays import Ints
from afresh.values.clock import Clock
from afresh.values.lease import Lease
from afresh.values.outcome import Outcome, Refusal

MANY = 200_000
"""With more items than this, a new process picks among those that are due first."""

_FIRST, _PER_PICK, _MORE = 20_000, 20, 4  # how many of these it loads, at least and for each picked item
_COSTLY = 20.0  # saving what was learned may use at most 1/20 of the time of a process


class ExternalScheduler:
    """Picks items for programs that fetch them, within the budget, and learns from their polls. All its calls
    come from one thread."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._scheduler: Scheduler | None = None
        self._settings: Settings | None = None
        self._mark: tuple[object, ...] = ()
        self._edit_number = self._notice_number = 0
        self._save_at_s = -math.inf

    def refresh(self, settings: Settings, now_s: float) -> Scheduler:
        """Return the scheduler, up to date with the store. Nothing is written."""
        mark = self._store_mark(now_s - settings.run.claim)
        scheduler = self._scheduler if (mark, settings) == (self._mark, self._settings) else None
        if scheduler is None or not self._follow(scheduler, now_s):
            scheduler = self._restore(settings)
        self._scheduler, self._settings, self._mark = scheduler, settings, mark
        self._follow_notices(scheduler, now_s)
        return scheduler

    def _follow_notices(self, scheduler: Scheduler, now_s: float) -> None:
        """Apply the notices since the last call, and mark the rows that are leased now as busy."""
        notices = self._store.notices.open(self._notice_number)
        if notices:
            self._notice_number = notices[-1].number
        for origin in dict.fromkeys(notice.origin for notice in notices):
            scheduler.notice([notice.item_id for notice in notices if notice.origin == origin], now_s, origin)
        item_rows = scheduler.item_rows
        item_rows.is_busy[:] = False
        item_rows.is_busy[item_rows.rows([item_id for item_id, _ in self._store.leases.open(now_s)])] = True

    def forget(self) -> None:
        """Restore the scheduler at the next call, because the store was changed behind it."""
        self._scheduler = None

    def _store_mark(self, since_s: float) -> tuple[object, ...]:
        """Return values that change whenever another process may have polled items. An engine that was seen
        after ``since_s`` may poll at any time: while one runs, no two marks are equal."""
        state, is_running = self._store.state, bool(self._store.fleet.workers(since_s))
        return state.get(LAST_LEFT), state.get(EXTERNAL_CALL), uuid4() if is_running else None

    def _restore(self, settings: Settings) -> Scheduler:
        # The edit number is read before the items, so that edits made meanwhile are followed afterwards.
        self._edit_number, self._notice_number = self._store.items.edits(0).number, 0
        return start_scheduler(self._store, settings, self._store.plan.columns(), self._clock)

    def _follow(self, scheduler: Scheduler, now_s: float) -> bool:
        """Apply new and edited items; return False if the scheduler must be restored instead."""
        store, ids = self._store, scheduler.item_rows.ids
        added = list(store.plan.columns(after_id=int(ids[-1]) if ids.size else 0))
        if sum(part.id.size for part in added):
            scheduler.load(added, store.plan.names())
            assert self._settings is not None
            apply_view_weights(scheduler, read_view_weights(store, self._settings.views))
        edits = store.items.edits(self._edit_number)
        self._edit_number = edits.number
        if edits.item_ids:
            scheduler.edit(edits.item_ids, store.plan.columns_of(edits.item_ids), now_s)
        return edits.complete and not scheduler.has_outgrown()

    # Picking.

    def pick(self, settings: Settings, most: float, sources: Collection[str], now_s: float) -> list[int]:
        """Return the ids of at most ``most`` items of ``sources`` to poll now, the best first."""
        if most < 1:
            return []
        items = sum(count.items for count in self._store.items.counts())
        wanted = max(_FIRST, _PER_PICK * most)
        if items <= MANY or self._is_current(settings, now_s):
            wanted = items
        while wanted < items:
            ids = self._pick_of_first(settings, int(wanted), int(most), sources, now_s)
            if len(ids) == int(most):
                return ids
            wanted *= _MORE
        scheduler = self.refresh(settings, now_s)
        return [int(scheduler.item_rows.ids[row]) for row in scheduler.best_rows(now_s, int(most), sources)]

    def _is_current(self, settings: Settings, now_s: float) -> bool:
        """Return whether the scheduler of all items is at hand and need not be restored."""
        mark = self._store_mark(now_s - settings.run.claim)
        return self._scheduler is not None and (mark, settings) == (self._mark, self._settings)

    def _pick_of_first(
        self, settings: Settings, first: int, most: int, sources: Collection[str], now_s: float
    ) -> list[int]:
        """Pick among the ``first`` items in the order of stored due times, because to restore all items would
        take too long. They are the items whose poll values reach the shadow price first."""
        columns = self._store.plan.columns_of(self._store.items.due(math.inf, first))
        self._notice_number = 0
        scheduler = start_scheduler(self._store, settings, [columns], self._clock)
        self._follow_notices(scheduler, now_s)
        self._notice_number = 0
        return [int(scheduler.item_rows.ids[row]) for row in scheduler.best_rows(now_s, most, sources)]

    def reserve(self, settings: Settings, count: int, now_s: float) -> int:
        """Reserve ``count`` requests of the budget; return how many of them may start now."""
        limits = budget_limits(settings.budget)
        if limits.requests >= UNCOUNTED_PER_S or count == 0:
            return count
        window = self._store.fleet.reserve(count, limits.spacing_s, 0.0, now_s, limits.covered_s)
        return min(slots_until(window.first_s, now_s, limits.spacing_s), count)

    # Learning.

    def recorder(self, settings: Settings, now_s: float) -> PollRecorder:
        """Return the recorder that turns polls into outcomes; its scheduler is up to date."""
        return PollRecorder(LiveSettings(settings), self.refresh(settings, now_s), PollCosts())

    def commit(self, recorder: PollRecorder, polls: Sequence[Outcome], now_s: float) -> list[Refusal]:
        """Learn from ``polls`` of distinct items and commit them, with what was learned of all items."""
        scheduler = self._scheduler
        assert scheduler is not None
        rows = scheduler.item_rows.rows([poll.lease.item_id for poll in polls])
        self._record_picks(scheduler, rows, now_s)
        refusals = self._store.commit(recorder.complete(polls, now_s))
        scheduler.item_rows.is_busy[rows] = False
        if refusals:
            self.forget()  # it learned from polls that do not count
        else:
            self._save(scheduler)
        return refusals

    def _record_picks(self, scheduler: Scheduler, rows: Ints, now_s: float) -> None:
        """Record the poll values of the polled rows, so that the shadow price follows."""
        scheduler.item_rows.is_busy[rows] = False
        found = scheduler.policy.priorities(now_s)
        for row in rows[found.tier[rows] == Tier.RANKED].tolist():
            scheduler.policy.record_pick(float(found.value[row]))
        scheduler.policy.measure_price()

    def _save(self, scheduler: Scheduler) -> None:
        """Save price and learned state, unless an engine runs: then its planner saves its own."""
        began_s, call = self._clock.elapsed_s(), uuid4().hex.encode()
        values: dict[str, bytes | None] = {EXTERNAL_CALL: call}
        if self._mark[2] is None:
            values |= pack_price(scheduler.policy)
            learned = scheduler.learned_state() if began_s >= self._save_at_s else None
            values |= {} if learned is None else {LEARNED: pack_learned(learned)}
        self._store.state.set(values)
        if LEARNED in values:
            self._save_at_s = began_s + _COSTLY * (self._clock.elapsed_s() - began_s)
        self._mark = (self._mark[0], call, self._mark[2])


def order_leases(leases: Sequence[Lease], ids: Sequence[int]) -> list[Lease]:
    """Return the leases in the order of ``ids``."""
    taken = {lease.item_id: lease for lease in leases}
    return [taken[item_id] for item_id in ids if item_id in taken]
