"""Tells the others, through the store, that the engine lives and how it goes.

Every two seconds a sign of life; every ten, a point of the course of the last day (see ``pulse``).
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, replace

import numpy as np

from afresh.engine.logs import say
from afresh.engine.pace.asked import Asked, asked
from afresh.engine.run.loop import Loop
from afresh.engine.settings.tables import Settings
from afresh.engine.show.pulse import BEAT_S, Course, Pulse, delays_of, with_point
from afresh.engine.show.status import mean_age_s, modelled
from afresh.engine.state_names import PULSE
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.errors import StoreError

POINT_S = 10.0
_COSTLY = 100.0  # a point may take a hundredth of the time at most


class Beat:
    """Tells of one loop until cancelled, and lets it follow the budget that is asked for; ``current`` says
    the settings that count."""

    def __init__(self, loop: Loop, store: Store, clock: Clock, current: Callable[[], Settings]) -> None:
        self._loop, self._store, self._clock, self._current = loop, store, clock, current
        self._started_s = clock.now_s()
        self._point_s, self._every_s = -math.inf, POINT_S
        self._asked: Asked | None = asked(store)  # what the loop begins with

    async def run(self) -> None:
        """Until cancelled; then a last beat says that it ended in order."""
        try:
            while True:
                if self._loop.running:
                    await self._quietly(self._once)
                await asyncio.sleep(BEAT_S)
        finally:
            if self._loop.running and self._loop.member.plans:
                last = self._pulse(stopped=True).pack()
                await self._quietly(lambda: self._keep({PULSE: last}))

    async def _once(self) -> None:
        await self._follow()
        if not self._loop.member.plans:
            return  # one speaks for all
        values: dict[str, bytes | None] = {PULSE: self._pulse().pack()}
        if self._clock.elapsed_s() >= self._point_s + self._every_s:
            self._point_s = self._clock.elapsed_s()
            point = self._point()
            self._every_s = max(POINT_S, _COSTLY * (self._clock.elapsed_s() - self._point_s))
            values |= await asyncio.to_thread(with_point, self._store, point)
        await self._keep(values)

    async def _follow(self) -> None:
        """Another budget was asked for since, or none any more."""
        before, self._asked = self._asked, await asyncio.to_thread(asked, self._store)
        if self._asked != before:
            budget = (await asyncio.to_thread(self._current)).budget
            self._loop.reload(replace(self._loop.settings, budget=budget))
            say(logging.INFO, "budget asked for", requests_per_s=budget.requests)

    async def _keep(self, values: Mapping[str, bytes | None]) -> None:
        await asyncio.to_thread(self._store.state.set, values)

    async def _quietly(self, work: Callable[[], Awaitable[None]]) -> None:
        """A store in trouble is the writer's business; a beat that was not kept shows as silence."""
        try:
            await work()
        except StoreError as error:
            say(logging.DEBUG, "pulse not kept", problem=str(error))

    def _pulse(self, *, stopped: bool = False) -> Pulse:
        counted = asdict(self._loop.counted())
        del counted["freshness"]
        budget_per_s = self._loop.settings.budget.requests
        times_s = self._clock.now_s(), self._started_s
        delays = delays_of(self._loop.settings)
        return Pulse(*times_s, **counted, stopped=stopped, budget_per_s=budget_per_s, delays=delays)

    def _point(self) -> Course:
        now_s, policy = self._clock.now_s(), self._loop.policy
        share, counted = modelled(policy, now_s), self._loop.counted()
        counts = (counted.polls, counted.changes, counted.failures, counted.requests)
        age_s = mean_age_s(policy, now_s)
        return np.array([[now_s, share.value, share.low, share.high, age_s, *counts]])
