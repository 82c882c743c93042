"""Applies changes of other processes to the store, saves what was learned, and removes old costs."""

from __future__ import annotations

import asyncio
import logging
import math

import numpy as np

from afresh.engine.logs import log_event
from afresh.engine.runner.run_context import RunContext
from afresh.engine.scheduler.audits import audited_freshness
from afresh.engine.scheduler.restore import (
    MOST_NAMES,
    pack_learned,
    pack_price,
    read_names,
    unpack_learned,
)
from afresh.engine.scheduler.row_policy import CURSOR
from afresh.engine.scheduler.view_weights import (
    apply_link_gains,
    apply_view_weights,
    read_link_gains,
    read_view_weights,
)
from afresh.engine.settings.item_views import ItemViews
from afresh.engine.state_names import FIRST_RUN, LEARNED
from afresh.sources.capabilities import GroupBackoff
from afresh.stores.store import LENT_GROUPS, Store
from afresh.values.clock import Clock

_CHECK_EVERY_S = 0.5
_PARTS_AT_ONCE = 4  # of about 8,000 new items each
_FEW = 20_000  # a policy of so many items is built again within a few tenths of a second
SAVE_EVERY_S, TARGET_EVERY_S, FORGET_EVERY_S = 10.0, 60.0, 86400.0
LEDGER_KEPT_S = 31 * 86400.0  # an engine that starts reads the costs of a week, reports those of an hour
_COSTLY = 100.0  # saving may use at most 1/100 of the time
_CLOCK_STEP_S = 1.0  # smaller steps back of the clock are corrections and are ignored


class StoreWatcher:
    """Reads twice per second what other processes changed in the store, and updates the scheduler. All
    changes made before ``synced_s`` (elapsed seconds) have been applied. ``edit_number`` is the number of the
    last edit before the items were loaded; later edits are applied."""

    def __init__(self, context: RunContext, edit_number: int) -> None:
        self._context, self._store, self._clock = context, context.store, context.clock
        self._scheduler, self._recorder, self._member = context.scheduler, context.recorder, context.member
        self._target_checked_s, self._is_target_missed = self._clock.elapsed_s(), False
        self._offset_s = _clock_offset_s(context.clock)
        self._edit_number, self._notice_number = edit_number, 0
        self.synced_s = -math.inf
        self._adopted, self._saved_polls, self._forget_at_s = b"", 0, -math.inf
        self._save_at_s, self._refits = self._clock.elapsed_s() + SAVE_EVERY_S, self._scheduler.refits
        self._views, self._viewed_size = ItemViews(), 0

    async def begin(self) -> None:
        """Save the time of the first run on this store, if none is saved, and read the pending notices."""
        if await self._store.run(self._store.sync.state.get, FIRST_RUN) is None:
            await self._store.run(self._store.sync.state.set, {FIRST_RUN: repr(self._clock.now_s()).encode()})
        await self._read_notices()

    def restart(self) -> None:
        """Read notices and learned state again, because the items of the scheduler were replaced."""
        self._notice_number, self._refits, self._adopted = 0, self._scheduler.refits, b""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_EVERY_S)
            began_s = self._clock.elapsed_s()
            self._check_clock()
            await self._read_new_items()  # first, because a notice of an item without a row would be lost
            await self._read_edits()
            await self._follow_views()
            await self._read_notices()
            await self.follow_lent_requests()
            if self._scheduler.refits != self._refits or self._clock.elapsed_s() >= self._save_at_s:
                await (self.save_learned() if self._member.is_planner else self._adopt_learned())
            await self._check_target()
            await self._forget_costs()
            self.synced_s = began_s
            self._context.wakeup.set()

    def _check_clock(self) -> None:
        """If the clock was set back, move the times of polls back, so that none is in the future."""
        item_rows, now_s = self._scheduler.item_rows, self._clock.now_s()
        before_s, self._offset_s = self._offset_s, _clock_offset_s(self._clock)
        # Done at every check, because a poll that was under way when the clock was set back has a later time.
        item_rows.polled_s[item_rows.polled_s > now_s + _CLOCK_STEP_S] = now_s
        back_s = before_s - self._offset_s
        if back_s >= _CLOCK_STEP_S:
            item_rows.not_before_s[np.isfinite(item_rows.not_before_s)] -= back_s
            log_event(logging.WARNING, "the clock was set back", seconds=back_s)
            self._scheduler.shift_clock(back_s)

    async def _read_new_items(self) -> None:
        ids, store = self._scheduler.item_rows.ids, self._store
        last = int(ids[-1]) if ids.size else 0
        added = await store.run(lambda: list(store.sync.plan.columns(after_id=last)))
        if sum(part.id.size for part in added):
            known = await store.run(store.sync.plan.names)
            for begin in range(0, len(added), _PARTS_AT_ONCE):
                self._scheduler.load(added[begin : begin + _PARTS_AT_ONCE], known)
                self._recorder.restrict()
                await asyncio.sleep(0)  # polls go on between the parts of very many items
            apply_link_gains(self._scheduler, await store.run(read_link_gains, store.sync))
            if self._scheduler.has_outgrown():
                await self._rebuild()

    async def _rebuild(self) -> None:
        """Build the policy again; if there are many items, in another thread, because it takes seconds."""
        store, scheduler, money = self._store, self._scheduler, self._recorder.money_input()
        few = scheduler.item_rows.size <= MOST_NAMES
        # A listing may add further items meanwhile, which have no rows yet.
        last_id = int(scheduler.item_rows.ids[-1]) if scheduler.item_rows.size else 0
        names = await store.run_beside(read_names, store.sync, last_id) if few else None
        if scheduler.item_rows.size <= _FEW:
            scheduler.rebuild(money, names)
            return
        # Nobody but this task adds items or changes their weights meanwhile.
        built = await asyncio.to_thread(scheduler.prepare_rebuild(money).build, names)
        scheduler.finish_rebuild(built, self._recorder.money_input())

    async def _read_edits(self) -> None:
        edits = await self._store.run(self._store.sync.items.edits, self._edit_number)
        self._edit_number = edits.number
        # If the store no longer has the list of all edits, all items are read again.
        ids = edits.item_ids if edits.complete else tuple(self._scheduler.item_rows.ids.tolist())
        if ids:
            columns = await self._store.run(self._store.sync.plan.columns_of, ids)
            self._scheduler.edit(ids, columns, self._clock.now_s())

    async def _follow_views(self) -> None:
        """Apply the weights of the item views, which a reload may have replaced. An item that was just added
        may belong to a view too."""
        views, size = self._context.settings.now.views, self._scheduler.item_rows.size
        if views is self._views and (size == self._viewed_size or not views.tables):
            return
        if views is not self._views:
            await self._store.run(_warn_of_unknown_items, self._store.sync, views)
        self._views, self._viewed_size = views, size
        apply_view_weights(self._scheduler, await self._store.run(read_view_weights, self._store.sync, views))

    async def _read_notices(self) -> None:
        notices = await self._store.run(self._store.sync.notices.open, self._notice_number)
        self._notice_number = max((notice.number for notice in notices), default=self._notice_number)
        for origin in dict.fromkeys(notice.origin for notice in notices):
            ids = [notice.item_id for notice in notices if notice.origin == origin]
            self._scheduler.notice(ids, self._clock.now_s(), origin)
            if origin == CURSOR:
                self._recorder.admit_announced(ids)

    async def follow_lent_requests(self) -> None:
        """Let the sources keep clear of requests that are lent to other programs."""
        fleet = self._store.sync.fleet
        claims = await self._store.run(fleet.claims, self._member.time.now_s())
        self._context.sources.load_backoffs(
            [
                GroupBackoff(claim.name.partition(":")[2], claim.until_s)
                for claim in claims
                if claim.name.partition(":")[0] == LENT_GROUPS
            ]
        )

    async def save_learned(self) -> None:
        """Save what was learned of all items together, if this worker is the planner."""
        polls, began_s = self._recorder.counts["told"], self._clock.elapsed_s()
        self._refits, self._save_at_s = self._scheduler.refits, began_s + SAVE_EVERY_S
        is_needed = polls != self._saved_polls and self._member.is_planner
        learned = self._scheduler.learned_state() if is_needed else None
        if learned is not None:
            state = {LEARNED: pack_learned(learned), **pack_price(self._scheduler.policy)}
            await self._store.run(self._store.sync.state.set, state)
            self._saved_polls = polls
            self._save_later(began_s)

    async def _adopt_learned(self) -> None:
        """Adopt what the planner has learned of all items together."""
        began_s = self._clock.elapsed_s()
        packed = await self._store.run(self._store.sync.state.get, LEARNED)
        if packed is not None and packed != self._adopted:
            self._adopted, learned = packed, unpack_learned(packed)
            if learned is not None:
                self._scheduler.adopt(learned)
        self._refits = self._scheduler.refits
        self._save_later(began_s)

    def _save_later(self, began_s: float) -> None:
        took_s = self._clock.elapsed_s() - began_s
        self._save_at_s = began_s + max(SAVE_EVERY_S, _COSTLY * took_s)

    async def _check_target(self) -> None:
        """Check once a minute whether the audited freshness, or the content lag, misses the target; log when
        this changes."""
        plan, elapsed_s = self._context.settings.now.plan, self._clock.elapsed_s()
        is_early = elapsed_s < self._target_checked_s + TARGET_EVERY_S
        if plan.target is None or is_early or not self._member.is_planner:
            return
        self._target_checked_s = elapsed_s
        content_lag_target_s, target = plan.target_for("lag"), plan.target_for("freshness")
        if target is not None:
            audits = await self._store.run(self._store.sync.observations.audits, 0.0)
            found = audited_freshness(audits, self._clock.now_s(), self._scheduler.forecast.covered_share())
            is_missed = found.n > 0 and found.high < target
            words = "freshness is below the target" if is_missed else "freshness is back at the target"
            self._log_target(is_missed, words, audited=found.value, target=target)
        if content_lag_target_s is not None:
            lag_s = self._scheduler.forecast.content_lag_s(self._clock.now_s())
            is_missed = lag_s > content_lag_target_s
            words = "content lag is above the target" if is_missed else "content lag is back at the target"
            self._log_target(is_missed, words, lag_s=lag_s, target_s=content_lag_target_s)

    def _log_target(self, is_missed: bool, words: str, **more: float) -> None:
        if is_missed != self._is_target_missed:
            log_event(logging.WARNING if is_missed else logging.INFO, words, **more)
        self._is_target_missed = is_missed

    async def _forget_costs(self) -> None:
        """Remove the costs of more than a month ago, and the changes that are older than ``[feed] keep``, at
        the start and then once a day."""
        if self._clock.elapsed_s() >= self._forget_at_s and self._member.is_planner:
            self._forget_at_s = self._clock.elapsed_s() + FORGET_EVERY_S
            before_s = self._clock.now_s() - LEDGER_KEPT_S
            await self._store.run(self._store.sync.ledger.forget, before_s)
            old_s = self._clock.now_s() - self._context.settings.now.feed.keep
            await self._store.run_beside(self._store.sync.feed.trim, old_s)


def _warn_of_unknown_items(store: Store, views: ItemViews) -> None:
    for view in views.tables:
        known = {item.key for item in store.items.find(list(view.items))}
        unknown = [key for key in view.items if key not in known]
        if unknown:
            words = "a view has items that do not exist yet"
            log_event(logging.WARNING, words, view=view.name, items=len(unknown), example=unknown[0])


def _clock_offset_s(clock: Clock) -> float:
    return clock.now_s() - clock.elapsed_s()
