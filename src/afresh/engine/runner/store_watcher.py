"""Beside polling: items added, changed and noticed by others, what was learned kept, the clock watched."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

import numpy as np

from afresh.engine.runner.clock_watch import ClockWatch
from afresh.engine.runner.store_changes import StoreChanges
from afresh.engine.runner.target_watch import TargetWatch
from afresh.engine.scheduler.earnings import (
    apply_money_terms,
    has_income,
    money_terms,
    most_useful_polls_per_s,
)
from afresh.engine.scheduler.learned_state import pack_learned, unpack_learned
from afresh.engine.scheduler.picker import Picker
from afresh.engine.scheduler.poll_costs import PollCosts
from afresh.engine.scheduler.poll_recorder import PollRecorder
from afresh.engine.scheduler.ranking import Ranking
from afresh.engine.scheduler.restore import NAMES_LOOKED_AT, read_names
from afresh.engine.state_names import FIRST_RUN, LEARNED, POLL_COSTS
from afresh.engine.writer import Writer
from afresh.stores.store import Store
from afresh.values.clock import Clock

_LOOK_S = 0.5
KEEP_EVERY_S = 10.0
FOLLOWED_UP = 10.0  # notices of a source


class StoreWatcher:
    """Looks around twice a second and lets memory follow; ``wakeup`` wakes the feed."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        store_changes: StoreChanges,
        picker: Picker,
        recorder: PollRecorder,
        clock: Clock,
        wakeup: asyncio.Event,
        is_planner: Callable[[], bool],
    ) -> None:
        """``is_planner``: whether it is on us to keep what was learned of all items together."""
        self._store, self._writer, self._store_changes, self._wakeup = store, writer, store_changes, wakeup
        self._picker, self._item_rows, self._recorder = picker, picker.item_rows, recorder
        self._clock_watch = ClockWatch(clock)
        self._target_watch = TargetWatch(store, writer, picker, recorder, clock, is_planner)
        self._clock = clock
        self.names: dict[int, str] = {}
        self.looked_s = -math.inf  # what was there at this elapsed time has been taken in
        self._is_planner, self._adopted = is_planner, b""
        self._ranked, self._kept_polls = self._item_rows.size, 0
        self._keep_at_s, self._gap = clock.elapsed_s() + KEEP_EVERY_S, self._ranking.policy.refit_gap

    @property
    def _ranking(self) -> Ranking:
        return self._picker.policy.ranking

    def items_replaced(self) -> None:
        """All items are others now, and what was noticed is to be heard again."""
        self._ranked, self._store_changes.notice, self._gap = (
            self._item_rows.size,
            0,
            self._ranking.policy.refit_gap,
        )

    async def begin(self) -> None:
        """What must be known before the first poll."""
        self.names = await self._writer.call_with_retry(self._store.plan.names)
        packed = await self._writer.call_with_retry(lambda: self._store.state.get(POLL_COSTS))
        self._recorder.poll_costs = PollCosts.unpack(packed)
        if await self._writer.call_with_retry(lambda: self._store.state.get(FIRST_RUN)) is None:
            now = repr(self._clock.now_s()).encode()
            await self._writer.call_with_retry(lambda: self._store.state.set({FIRST_RUN: now}))
        await self._notices()

    async def _rebuild_if_grown(self) -> None:
        """With twice as many items, who belongs together and the ladder of rates are made anew."""
        self._ranking.grow()
        if self._item_rows.size < 2 * max(self._ranked, 1) and not self._ranking.needs_new_grid():
            return
        few = self._item_rows.size <= NAMES_LOOKED_AT
        names = await self._writer.call_with_retry(lambda: read_names(self._store)) if few else None
        settings = self._recorder.settings
        budget = settings.budget.requests
        if has_income(settings):
            policy, poll_costs = self._picker.policy, self._recorder.poll_costs
            apply_money_terms(policy, settings, self.names, poll_costs)
            terms = money_terms(self._item_rows, policy.staleness, settings, self.names, poll_costs)
            budget = most_useful_polls_per_s(self._item_rows, terms, settings.budget)
        self._ranking.rebuild(budget, names)
        self._ranked = self._item_rows.size

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            began_s = self._clock.elapsed_s()
            self._ranking.shift_clock(self._clock_watch.check(self._item_rows))
            await self._new_items()
            await self._edits()
            await self._notices()
            if self._keep_is_due():
                await (self.keep_learned() if self._is_planner() else self._adopt())
            await self._target_watch.check()
            self.looked_s = began_s
            self._wakeup.set()

    async def _new_items(self) -> None:
        last = int(self._item_rows.ids[-1]) if self._item_rows.size else 0
        added = await self._writer.call_with_retry(lambda: self._store_changes.added(last))
        if added and self._item_rows.load(added):
            self.names = await self._writer.call_with_retry(self._store.plan.names)
            self._recorder.restrict()
            await self._rebuild_if_grown()
            self._picker.invalidate()

    async def _edits(self) -> None:
        ids, now, complete = await self._writer.call_with_retry(self._store_changes.edited)
        if not complete:
            ids = tuple(self._item_rows.ids.tolist())
            now = await self._writer.call_with_retry(lambda: self._store.plan.columns_of(ids))
        if now is not None:
            self._item_rows.edit(ids, now, self._clock.now_s())
            self._ranking.update_weights(self._item_rows.rows(ids))
            self._picker.invalidate()

    async def _notices(self) -> None:
        """Hints are heard for each source; its first ones are followed up, to learn what they are worth."""
        noticed = await self._writer.call_with_retry(self._store_changes.noticed)
        rows = self._item_rows.rows(noticed)
        for code in np.unique(self._item_rows.source[rows]).tolist():
            theirs = rows[self._item_rows.source[rows] == code]
            source = self.names.get(code, "")
            if self._ranking.notices_heard(source) < FOLLOWED_UP:
                self._item_rows.is_requested[theirs] = True
            self._ranking.notice(theirs, self._clock.now_s(), source)
            self._picker.invalidate()

    def _keep_is_due(self) -> bool:
        """At every refit, and now and then between."""
        refit = self._gap != self._ranking.policy.refit_gap
        return refit or self._clock.elapsed_s() >= self._keep_at_s

    async def keep_learned(self) -> None:
        """Let the store remember what was learned of all items together; a hundredth of the time at most."""
        polls, begun_s = self._recorder.counts["told"], self._clock.elapsed_s()
        self._gap, self._keep_at_s = self._ranking.policy.refit_gap, begun_s + KEEP_EVERY_S
        if polls == self._kept_polls or not self._ranking.is_complete or not self._is_planner():
            return
        packed = {LEARNED: pack_learned(self._ranking.shared())}
        await self._writer.call_with_retry(lambda: self._store.state.set(packed))
        took_s = self._clock.elapsed_s() - begun_s
        self._kept_polls, self._keep_at_s = polls, begun_s + max(KEEP_EVERY_S, 100.0 * took_s)

    async def _adopt(self) -> None:
        """Another worker plans: what it has learned of all items together counts here too."""
        begun_s = self._clock.elapsed_s()
        packed = await self._writer.call_with_retry(lambda: self._store.state.get(LEARNED))
        if packed is not None and packed != self._adopted and self._ranking.is_complete:
            self._adopted, shared = packed, unpack_learned(packed)
            if shared is not None:
                self._ranking.adopt_learned(shared)
                self._picker.invalidate()
        took_s = self._clock.elapsed_s() - begun_s
        self._gap, self._keep_at_s = (
            self._ranking.policy.refit_gap,
            begun_s + max(KEEP_EVERY_S, 100.0 * took_s),
        )
