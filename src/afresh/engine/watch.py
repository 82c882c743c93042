"""Beside polling: items added, changed and noticed by others, the prior learned anew, the clock watched."""

from __future__ import annotations

import asyncio
import logging

import numpy as np

from afresh.engine.accounts import Accounts
from afresh.engine.audits import audited
from afresh.engine.beliefs import Prior
from afresh.engine.logs import say
from afresh.engine.memory import Memory
from afresh.engine.picker import Picker
from afresh.engine.ranking import Ranking
from afresh.engine.snapshot import NAMES_LOOKED_AT, names_of
from afresh.engine.state_names import PRIOR
from afresh.engine.writer import Writer
from afresh.rates.observations import Polls
from afresh.rates.prior import fit_gamma, refit_due
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.stored import ObservationColumns, PolicyColumns

SAMPLE = 5_000  # items that settle a prior
FEWEST_POLLS = 30
TICK_S = 0.5
TARGET_EVERY_S = 60.0
_STEP_S = 1.0


class StoreNews:
    """What others did to the store since the last look; called in the store's thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.edit = store.items.edits(0).number
        self.notice = 0

    def added(self, after_id: int) -> list[PolicyColumns]:
        """Items registered since."""
        return list(self._store.plan.columns(after_id=after_id))

    def edited(self) -> tuple[tuple[int, ...], PolicyColumns | None, bool]:
        """Items changed or removed since, as they are now; False if too much happened to tell."""
        edits = self._store.items.edits(self.edit)
        self.edit = edits.number
        if not edits.complete or not edits.item_ids:
            return edits.item_ids, None, edits.complete
        return edits.item_ids, self._store.plan.columns_of(edits.item_ids), True

    def noticed(self) -> list[int]:
        """Items noticed since."""
        notices = self._store.notices.open(self.notice)
        self.notice = max((notice.number for notice in notices), default=self.notice)
        return [notice.item_id for notice in notices]


class ClockWatch:
    """Notices that the machine's clock was set back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset_s = clock.now_s() - clock.elapsed_s()

    def check(self, memory: Memory) -> float:
        """By how many seconds the clock went back since the last check; no poll stays in the future."""
        now_s = self._clock.now_s()
        offset_s = now_s - self._clock.elapsed_s()
        back_s, self._offset_s = self._offset_s - offset_s, offset_s
        if back_s < _STEP_S:
            return 0.0
        memory.polled_s[:] = np.minimum(memory.polled_s, now_s)
        held = np.isfinite(memory.hold_s)
        memory.hold_s[held] -= back_s
        say(logging.WARNING, "the clock was set back", seconds=back_s)
        return back_s


class Learner:
    """Fits the prior of rates again whenever the evidence has grown by a quarter."""

    def __init__(self) -> None:
        self.polls = self._fitted_at = 0

    @property
    def due(self) -> bool:
        """Whether a fit would tell something new."""
        return self.polls >= FEWEST_POLLS and refit_due(self._fitted_at, self.polls)

    def fit(self, store: Store, memory: Memory) -> Prior | None:
        """The prior of the items polled so far (a sample, evenly spread); None if they tell too little."""
        self._fitted_at = self.polls
        known = np.flatnonzero(~np.isnan(memory.polled_s))
        chosen = known[:: max(1, known.size // SAMPLE)]
        polls = _polls(list(store.observations.read(memory.ids[chosen].tolist())))
        if polls is None or polls.size < FEWEST_POLLS:
            return None
        prior = fit_gamma(polls, max_shape=1.0)
        return Prior(float(prior.shape[0]), float(prior.rate[0]))


def _polls(batches: list[ObservationColumns]) -> Polls | None:
    if not batches:
        return None
    item = np.concatenate([batch.item_id for batch in batches])
    elapsed = np.concatenate([batch.elapsed_s for batch in batches])
    changed = np.concatenate([batch.changed for batch in batches])
    told = elapsed > 0
    names, rows = np.unique(item[told], return_inverse=True)
    return Polls(rows.astype(np.int64), elapsed[told], changed[told], int(names.size)) if names.size else None


class Watch:
    """Looks around twice a second and lets memory follow; ``stirred`` wakes the feed."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        news: StoreNews,
        picker: Picker,
        accounts: Accounts,
        clock: Clock,
        stirred: asyncio.Event,
    ) -> None:
        self._store, self._writer, self._news, self._stirred = store, writer, news, stirred
        self._picker, self._memory, self._accounts = picker, picker.memory, accounts
        self._clock_watch, self._learner = ClockWatch(clock), Learner()
        self._clock, self._target_s, self._missed = clock, clock.elapsed_s(), False
        self.names: dict[int, str] = {}
        self._ranked = 0

    async def begin(self, *, rank: bool) -> None:
        """What must be known before the first poll; ``rank``: let the adaptive policy value the items."""
        self.names = await self._writer.surely(self._store.plan.names)
        await self._notices()
        if rank:
            await self._rank()

    async def _rank(self) -> None:
        """Start the adaptive policy from what is known of each item; again when there are twice as many."""
        policy, memory, settings = self._picker.policy, self._memory, self._accounts.settings
        if policy.name != "adaptive" or memory.size < max(1, 2 * self._ranked):
            return
        few = memory.size <= NAMES_LOOKED_AT
        names = await self._writer.surely(lambda: names_of(self._store)) if few else None
        ranking = Ranking(memory, settings.budget.requests, policy.objective, self._clock.now_s(), names)
        ranking.recall(*policy.posterior())
        policy.ranking, self._ranked = ranking, memory.size

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(TICK_S)
            self._clock_watch.check(self._memory)
            await self._new_items()
            await self._edits()
            await self._notices()
            self._learner.polls = self._accounts.counts["told"]
            if self._learner.due and self._picker.policy.name == "adaptive":
                await self._learn()
            await self._check_target()
            self._stirred.set()

    async def _new_items(self) -> None:
        last = int(self._memory.ids[-1]) if self._memory.size else 0
        added = await self._writer.surely(lambda: self._news.added(last))
        if added and self._memory.load(added):
            self.names = await self._writer.surely(self._store.plan.names)
            self._accounts.restrict()
            await self._rank()
            self._picker.stale()

    async def _edits(self) -> None:
        ids, now, complete = await self._writer.surely(self._news.edited)
        if not complete:
            ids = tuple(self._memory.ids.tolist())
            now = await self._writer.surely(lambda: self._store.plan.columns_of(ids))
        if now is not None:
            self._memory.edit(ids, now)
            if self._picker.policy.ranking is not None:
                self._picker.policy.ranking.reweighed(self._memory.rows(now.id.tolist()))
            self._picker.stale()

    async def _notices(self) -> None:
        noticed = await self._writer.surely(self._news.noticed)
        if noticed:
            self._memory.noticed[self._memory.rows(noticed)] = True
            self._picker.stale()

    async def _learn(self) -> None:
        prior = await self._writer.surely(lambda: self._learner.fit(self._store, self._memory))
        if prior is not None:
            self._picker.policy.prior = prior
            await self._writer.surely(lambda: self._store.state.set({PRIOR: prior.pack()}))
            self._picker.stale()
            per_day = prior.shape / prior.rate * 86400.0
            say(logging.DEBUG, "prior learned", shape=prior.shape, changes_per_day=per_day)

    async def _check_target(self) -> None:
        """Say once when audits show, beyond chance, that the target is missed; and when it is met again."""
        target = self._accounts.settings.plan.target
        if target is None or self._clock.elapsed_s() < self._target_s + TARGET_EVERY_S:
            return
        self._target_s, now_s = self._clock.elapsed_s(), self._clock.now_s()
        audits = await self._writer.surely(lambda: self._store.observations.audits(0.0))
        found = audited(audits, now_s, self._picker.policy.covered())
        missed = found.n > 0 and found.high < target
        if missed != self._missed:
            words = "freshness is below the target" if missed else "freshness is back at the target"
            say(logging.WARNING if missed else logging.INFO, words, audited=found.value, target=target)
        self._missed = missed
