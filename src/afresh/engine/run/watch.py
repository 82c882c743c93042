"""Beside polling: items added, changed and noticed by others, what was learned kept, the clock watched."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

import numpy as np

from afresh.engine.mind.accounts import Accounts
from afresh.engine.mind.earnings import appraise, earns, terms_of, useful_polls_per_s
from afresh.engine.mind.learned_state import pack_shared, unpack_shared
from afresh.engine.mind.picker import Picker
from afresh.engine.mind.ranking import Ranking
from afresh.engine.mind.snapshot import NAMES_LOOKED_AT, names_of
from afresh.engine.mind.uses import Uses
from afresh.engine.run.clock_watch import ClockWatch
from afresh.engine.run.store_news import StoreNews
from afresh.engine.run.target_watch import TargetWatch
from afresh.engine.state_names import BEGAN, LEARNED, USES
from afresh.engine.writer import Writer
from afresh.stores.store import Store
from afresh.values.clock import Clock

_LOOK_S = 0.5
KEEP_EVERY_S = 10.0
FOLLOWED_UP = 10.0  # notices of a source


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
        plans: Callable[[], bool],
    ) -> None:
        """``plans``: whether it is on us to keep what was learned of all items together."""
        self._store, self._writer, self._news, self._stirred = store, writer, news, stirred
        self._picker, self._memory, self._accounts = picker, picker.memory, accounts
        self._clock_watch = ClockWatch(clock)
        self._target_watch = TargetWatch(store, writer, picker, accounts, clock, plans)
        self._clock = clock
        self.names: dict[int, str] = {}
        self.looked_s = -math.inf  # what was there at this elapsed time has been taken in
        self._plans, self._adopted = plans, b""
        self._ranked, self._kept_polls = self._memory.size, 0
        self._keep_at_s, self._gap = clock.elapsed_s() + KEEP_EVERY_S, self._ranking.policy.refit_gap

    @property
    def _ranking(self) -> Ranking:
        return self._picker.policy.ranking

    def refilled(self) -> None:
        """All items are others now, and what was noticed is to be heard again."""
        self._ranked, self._news.notice, self._gap = self._memory.size, 0, self._ranking.policy.refit_gap

    async def begin(self) -> None:
        """What must be known before the first poll."""
        self.names = await self._writer.surely(self._store.plan.names)
        packed = await self._writer.surely(lambda: self._store.state.get(USES))
        self._accounts.uses = Uses.unpack(packed)
        if await self._writer.surely(lambda: self._store.state.get(BEGAN)) is None:
            now = repr(self._clock.now_s()).encode()
            await self._writer.surely(lambda: self._store.state.set({BEGAN: now}))
        await self._notices()

    async def _regrown(self) -> None:
        """With twice as many items, who belongs together and the ladder of rates are made anew."""
        self._ranking.grow()
        if self._memory.size < 2 * max(self._ranked, 1) and not self._ranking.is_far():
            return
        few = self._memory.size <= NAMES_LOOKED_AT
        names = await self._writer.surely(lambda: names_of(self._store)) if few else None
        settings = self._accounts.settings
        budget = settings.budget.requests
        if earns(settings):
            policy, uses = self._picker.policy, self._accounts.uses
            appraise(policy, settings, self.names, uses)
            terms = terms_of(self._memory, policy.sight, settings, self.names, uses)
            budget = useful_polls_per_s(self._memory, terms, settings.budget)
        self._ranking.remade(budget, names)
        self._ranked = self._memory.size

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            began_s = self._clock.elapsed_s()
            self._ranking.set_back(self._clock_watch.check(self._memory))
            await self._new_items()
            await self._edits()
            await self._notices()
            if self._keep_is_due():
                await (self.keep_learned() if self._plans() else self._adopt())
            await self._target_watch.check()
            self.looked_s = began_s
            self._stirred.set()

    async def _new_items(self) -> None:
        last = int(self._memory.ids[-1]) if self._memory.size else 0
        added = await self._writer.surely(lambda: self._news.added(last))
        if added and self._memory.load(added):
            self.names = await self._writer.surely(self._store.plan.names)
            self._accounts.restrict()
            await self._regrown()
            self._picker.stale()

    async def _edits(self) -> None:
        ids, now, complete = await self._writer.surely(self._news.edited)
        if not complete:
            ids = tuple(self._memory.ids.tolist())
            now = await self._writer.surely(lambda: self._store.plan.columns_of(ids))
        if now is not None:
            self._memory.edit(ids, now, self._clock.now_s())
            self._ranking.reweighed(self._memory.rows(ids))
            self._picker.stale()

    async def _notices(self) -> None:
        """Hints are heard for each source; its first ones are followed up, to learn what they are worth."""
        noticed = await self._writer.surely(self._news.noticed)
        rows = self._memory.rows(noticed)
        for code in np.unique(self._memory.source[rows]).tolist():
            theirs = rows[self._memory.source[rows] == code]
            source = self.names.get(code, "")
            if self._ranking.notices_heard(source) < FOLLOWED_UP:
                self._memory.asked[theirs] = True
            self._ranking.notice(theirs, self._clock.now_s(), source)
            self._picker.stale()

    def _keep_is_due(self) -> bool:
        """At every refit, and now and then between."""
        refit = self._gap != self._ranking.policy.refit_gap
        return refit or self._clock.elapsed_s() >= self._keep_at_s

    async def keep_learned(self) -> None:
        """Let the store remember what was learned of all items together; a hundredth of the time at most."""
        polls, begun_s = self._accounts.counts["told"], self._clock.elapsed_s()
        self._gap, self._keep_at_s = self._ranking.policy.refit_gap, begun_s + KEEP_EVERY_S
        if polls == self._kept_polls or not self._ranking.whole or not self._plans():
            return
        packed = {LEARNED: pack_shared(self._ranking.shared())}
        await self._writer.surely(lambda: self._store.state.set(packed))
        took_s = self._clock.elapsed_s() - begun_s
        self._kept_polls, self._keep_at_s = polls, begun_s + max(KEEP_EVERY_S, 100.0 * took_s)

    async def _adopt(self) -> None:
        """Another worker plans: what it has learned of all items together counts here too."""
        begun_s = self._clock.elapsed_s()
        packed = await self._writer.surely(lambda: self._store.state.get(LEARNED))
        if packed is not None and packed != self._adopted and self._ranking.whole:
            self._adopted, shared = packed, unpack_shared(packed)
            if shared is not None:
                self._ranking.adopt(shared)
                self._picker.stale()
        took_s = self._clock.elapsed_s() - begun_s
        self._gap, self._keep_at_s = (
            self._ranking.policy.refit_gap,
            begun_s + max(KEEP_EVERY_S, 100.0 * took_s),
        )
