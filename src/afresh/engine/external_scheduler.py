"""The scheduler for programs that fetch items themselves: restored from the store, and kept for later calls.

It has all items, as the scheduler of a run, and what it learns is saved in the store. So programs that fetch
items themselves, in one process or in many, share beliefs, prior and shadow price with each other and with
runs. At each call the scheduler is brought up to date. If another process polled items since the last call,
it is restored again.

If a run is under way in the same process, its own scheduler is used instead (``LiveRun``). While an engine
runs in another process, and in a new process with very many items, a scheduler of the reported items alone
learns from their polls, because to restore all items would take too long. It does not learn what all items
have in common: the engine does, or a process that lives for a minute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from threading import RLock
from typing import Protocol, TypeAlias, TypeVar
from uuid import uuid4

import numpy as np

from afresh.engine.lent_requests import ENGINE_AHEAD_S, GroupStarts, LendingPlan, LentRequests, RequestEnd
from afresh.engine.ratelimit.request_slots import UNCOUNTED_PER_S, budget_limits
from afresh.engine.scheduler.poll_recorder import PollRecorder
from afresh.engine.scheduler.restore import (
    pack_learned,
    pack_price,
    read_poll_costs,
    settled_sources,
    start_scheduler,
)
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.scheduler.view_weights import (
    apply_link_gains,
    apply_view_weights,
    read_link_gains,
    read_view_weights,
)
from afresh.engine.settings.tables import LiveSettings, Settings
from afresh.engine.state_names import EXTERNAL_CALL, LAST_LEFT, LEARNED, POLL_COSTS
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.outcome import Outcome, Refusal, Spent
from afresh.values.stored import RequestWindow

T = TypeVar("T")
MANY = 200_000
"""With more items than this, a new process picks among those that are due first."""

_FIRST, _PER_PICK, _MORE = 20_000, 20, 4  # how many of these it loads, at least and for each picked item
_LONG_LIVED_S = 60.0  # a process that lives longer restores all items at its next report, however many
_LATE_LISTING_S = 60.0  # while listings are read, no listing is so late
_COSTLY = 20.0  # saving what was learned may use at most 1/20 of the time of a process

ALL_ANYWAY = 2_000  # with at most so many items, all are restored at every call
Build: TypeAlias = Callable[[PollRecorder], list[Outcome]]
"""A function that decides what polls mean, with the recorder that will learn from them."""

Finish: TypeAlias = Callable[[list[Outcome]], list[Outcome]]
"""A function that gets the outcomes to be committed, and returns them with what it adds."""


class LiveRun(Protocol):
    """A run in this process. ``call`` calls a function in the thread of the run, where its scheduler may be
    used, and returns the result. ``groups`` returns when its sources may ask hosts. ``book`` lets the run
    keep clear of lent requests, and ``record_ends`` lets hosts rest to which such requests have failed; both
    must be called through ``call``."""

    @property
    def scheduler(self) -> Scheduler: ...
    @property
    def recorder(self) -> PollRecorder: ...
    def call(self, work: Callable[[], T]) -> T: ...
    def groups(self, now_s: float) -> GroupStarts: ...
    def book(self, plan: LendingPlan) -> None: ...
    def record_ends(self, ends: Sequence[tuple[str, RequestEnd]], now_s: float) -> None: ...


class ExternalScheduler:
    """Picks items for programs that fetch them, within the budget, and learns from their polls. Threads hold
    ``lock`` while they use it. ``live`` is the run of this process, if one is under way."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self.lock = RLock()
        self.live: LiveRun | None = None
        self.requests = LentRequests(store, clock)
        self._scheduler: Scheduler | None = None
        self._settings: Settings | None = None
        self._mark: tuple[object, ...] = ()
        self._edit_number = self._notice_number = 0
        self._save_at_s, self._made_s = -math.inf, clock.elapsed_s()

    def refresh(self, settings: Settings, now_s: float) -> Scheduler:
        """Return the scheduler of all items, up to date with the store. Nothing is written."""
        mark = self._store_mark(now_s - settings.run.claim)
        scheduler = self._scheduler if (mark, settings) == (self._mark, self._settings) else None
        if scheduler is None or not self._follow(scheduler, now_s):
            scheduler = self._restore(settings)
        self._scheduler, self._settings, self._mark = scheduler, settings, mark
        self._follow_notices(scheduler, now_s)
        return scheduler

    def _follow_notices(self, scheduler: Scheduler, now_s: float) -> None:
        """Apply the notices since the last call, and mark the rows that are leased now as busy."""
        scheduler.policy.settled_sources = settled_sources(
            self._store, scheduler.names, now_s - _LATE_LISTING_S
        )
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
            apply_link_gains(scheduler, read_link_gains(store))
        edits = store.items.edits(self._edit_number)
        self._edit_number = edits.number
        if edits.item_ids:
            scheduler.edit(edits.item_ids, store.plan.columns_of(edits.item_ids), now_s)
        return edits.complete and not scheduler.has_outgrown()

    # Picking.

    def plan_lending(
        self, settings: Settings, wanted: int, now_s: float, ahead_s: float = 0.0
    ) -> LendingPlan:
        """Return a plan for at most ``wanted`` requests, as many as the budget allows now, or within the next
        ``ahead_s`` seconds."""
        limits, live = budget_limits(settings.budget), self.live
        groups = self.requests.read(settings, now_s) if live is None else live.groups(now_s)
        if limits.requests >= UNCOUNTED_PER_S:
            return LendingPlan(groups, limits, now_s, wanted, now_s)
        is_running = live is not None or bool(self._store.fleet.workers(now_s - settings.run.claim))
        ahead_s = max(ahead_s, ENGINE_AHEAD_S if is_running else 0.0)
        plan = LendingPlan(groups, limits, 0.0, wanted, now_s, ahead_s)
        plan.begin_at(self.next_slot_s(settings, now_s))
        return plan

    def next_slot_s(self, settings: Settings, now_s: float) -> float:
        """Return the first slot of the budget that is free, in Unix seconds."""
        limits = budget_limits(settings.budget)
        if limits.requests >= UNCOUNTED_PER_S:
            return now_s
        return self._store.fleet.next_slot_s(limits.spacing_s, now_s, limits.covered_s)

    def pick(
        self, settings: Settings, plan: LendingPlan, sources: Collection[str], until_s: float
    ) -> list[int]:
        """Return the ids of the items of ``sources`` whose polls ``plan`` admits, the best first. A run of
        this process leaves them alone until ``until_s``."""
        if plan.most < 1:
            return []
        now_s, live = plan.now_s, self.live
        if live is not None:
            return live.call(lambda: _pick_live(live, plan, sources, until_s))
        items = sum(count.items for count in self._store.items.counts())
        wanted = max(_FIRST, _PER_PICK * plan.most)
        # A current scheduler is at hand; without one, all items are restored unless that takes too long.
        mark = self._store_mark(now_s - settings.run.claim)
        is_current = self._scheduler is not None and (mark, settings) == (self._mark, self._settings)
        if is_current or (items <= MANY and mark[2] is None) or items <= ALL_ANYWAY:
            wanted = items
        while wanted < items:
            ids = self._pick_of_first(settings, int(wanted), plan, sources)
            if len(ids) == plan.most:
                return ids
            plan.clear()
            wanted *= _MORE
        scheduler = self.refresh(settings, now_s)
        return _best_ids(scheduler, plan, sources)

    def _pick_of_first(
        self, settings: Settings, first: int, plan: LendingPlan, sources: Collection[str]
    ) -> list[int]:
        """Pick among the ``first`` items in the order of stored due times, because to restore all items would
        take too long. They are the items whose poll values reach the shadow price first."""
        columns = self._store.plan.columns_of(self._store.items.due(math.inf, first))
        self._notice_number = 0
        scheduler = start_scheduler(self._store, settings, [columns], self._clock)
        self._follow_notices(scheduler, plan.now_s)
        self._notice_number = 0
        return _best_ids(scheduler, plan, sources)

    def reserve(self, settings: Settings, count: int, now_s: float) -> RequestWindow | None:
        """Reserve ``count`` requests of the budget; return their slots, or None if they are not counted."""
        limits = budget_limits(settings.budget)
        if limits.requests >= UNCOUNTED_PER_S or count < 1:
            return None
        return self._store.fleet.reserve(count, limits.spacing_s, 0.0, now_s, limits.covered_s)

    def give_back(self, window: RequestWindow, plan: LendingPlan) -> None:
        """Give back the slots of ``window`` that the requests of ``plan`` do not need."""
        last_s = window.first_s + (len(plan.starts_s) - 1) * plan.limits.spacing_s
        if last_s < window.until_s:
            self._store.fleet.give_back(window.until_s, last_s)

    def owe(self, settings: Settings, costs: Iterable[Spent], now_s: float) -> None:
        """Record the bytes, seconds and money of polls as a debt, if the budget limits them."""
        limits = budget_limits(settings.budget)
        owed_s = 0.0 if limits.counts_only else sum(limits.owed_s(cost) for cost in costs)
        if owed_s > 0:
            self._store.fleet.owe(owed_s, now_s)

    def record_ends(self, settings: Settings, ends: Sequence[tuple[str, RequestEnd]], now_s: float) -> None:
        """Record how requests ended, each with the name of its source: hosts that failed rest."""
        live = self.live
        if live is not None:
            live.call(lambda: live.record_ends(ends, now_s))
        else:
            self.requests.record_ends(settings, ends, now_s)

    def put_back(self, item_ids: Sequence[int], until_s: float = -math.inf) -> None:
        """Let a run of this process poll these items again from ``until_s`` on: their leases ended or were
        extended."""
        live = self.live
        if live is not None:

            def work() -> None:
                item_rows = live.scheduler.item_rows
                item_rows.not_before_s[item_rows.rows(item_ids)] = until_s
                live.scheduler.picker.invalidate()

            live.call(work)

    # Learning.

    def commit(
        self, settings: Settings, item_ids: Sequence[int], build: Build, finish: Finish, now_s: float
    ) -> list[Refusal]:
        """Learn from polls of the distinct items ``item_ids`` and commit them, with what was learned of all
        items. ``build`` decides what the polls mean, in the order of the ids; ``finish`` may add to the
        outcomes when the times of the next polls are known."""
        live = self.live
        outcomes = None if live is None else live.call(lambda: _learn_live(live, item_ids, build, now_s))
        if outcomes is not None:
            return self._store.commit(finish(outcomes))
        scheduler, is_whole = self._learner(settings, item_ids, now_s)
        recorder = PollRecorder(LiveSettings(settings), scheduler, read_poll_costs(self._store))
        outcomes = _learn(scheduler, recorder, item_ids, build, now_s)
        costs = {POLL_COSTS: recorder.poll_costs.pack()} if self._mark[2] is None else {}
        refusals = self._store.commit(finish(outcomes), costs)
        rows = scheduler.item_rows.rows(item_ids)
        scheduler.item_rows.is_busy[rows] = False
        if not is_whole:
            self._save(scheduler, learned=False)
            self.forget()
        elif refusals:
            self.forget()  # it learned from polls that do not count
        else:
            self._save(scheduler, learned=True)
        return refusals

    def _learner(self, settings: Settings, item_ids: Sequence[int], now_s: float) -> tuple[Scheduler, bool]:
        """Return a tuple (scheduler that learns from polls of these items, whether it has all items)."""
        items = sum(count.items for count in self._store.items.counts())
        mark = self._store_mark(now_s - settings.run.claim)
        is_current = self._scheduler is not None and (mark, settings) == (self._mark, self._settings)
        is_quick = items <= MANY or self._clock.elapsed_s() - self._made_s > _LONG_LIVED_S
        if is_current or (is_quick and mark[2] is None) or items <= ALL_ANYWAY:
            return self.refresh(settings, now_s), True
        self._mark = mark
        columns = self._store.plan.columns_of(sorted(item_ids))
        return start_scheduler(self._store, settings, [columns], self._clock), False

    def _save(self, scheduler: Scheduler, *, learned: bool) -> None:
        """Save price and learned state, unless an engine runs: then its planner saves its own."""
        began_s, call = self._clock.elapsed_s(), uuid4().hex.encode()
        values: dict[str, bytes | None] = {EXTERNAL_CALL: call}
        if self._mark[2] is None:
            values |= pack_price(scheduler.policy)
            state = scheduler.learned_state() if learned and began_s >= self._save_at_s else None
            values |= {} if state is None else {LEARNED: pack_learned(state)}
        self._store.state.set(values)
        if LEARNED in values:
            self._save_at_s = began_s + _COSTLY * (self._clock.elapsed_s() - began_s)
        self._mark = (self._mark[0], call, self._mark[2])


def _best_ids(scheduler: Scheduler, plan: LendingPlan, sources: Collection[str]) -> list[int]:
    rows = scheduler.best_rows(plan.now_s, plan.most, sources, plan.admit)
    return [int(scheduler.item_rows.ids[row]) for row in rows]


def _pick_live(live: LiveRun, plan: LendingPlan, sources: Collection[str], until_s: float) -> list[int]:
    """Pick items by the scheduler of a run, which must not poll them until ``until_s``."""
    scheduler = live.scheduler
    ids = _best_ids(scheduler, plan, sources)
    if until_s > plan.now_s:
        scheduler.item_rows.not_before_s[scheduler.item_rows.rows(ids)] = until_s
        scheduler.picker.invalidate()
        live.book(plan)
    return ids


def _learn(
    scheduler: Scheduler, recorder: PollRecorder, item_ids: Sequence[int], build: Build, now_s: float
) -> list[Outcome]:
    scheduler.policy.record_picks(scheduler.item_rows.rows(item_ids), now_s)
    return recorder.complete(build(recorder), now_s)


def _learn_live(live: LiveRun, item_ids: Sequence[int], build: Build, now_s: float) -> list[Outcome] | None:
    """Let the scheduler of a run learn from polls; return None if it has not loaded all of their items."""
    item_rows = live.scheduler.item_rows
    rows = item_rows.rows(item_ids)
    if rows.size < len(item_ids):
        return None
    item_rows.not_before_s[rows] = np.minimum(item_rows.not_before_s[rows], now_s)  # no longer lent
    return _learn(live.scheduler, live.recorder, item_ids, build, now_s)
