"""The gate that every request of every source passes: it opens when the budget allows one more."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from afresh.engine.budget import RESERVE_S, Limits, Reserve, resumed
from afresh.values.clock import Clock
from afresh.values.outcome import Spent

Keep: TypeAlias = Callable[[Reserve], Awaitable[None]]
"""Makes the store remember the budget; returns when it does."""

_COARSE_S = 0.002  # a sleeping loop wakes up late by about so much
_LONGEST_SLEEP_S = 0.5  # the budget may be raised meanwhile


class Gate:
    """One line for all sources; the pacer decides, the store is told before a request starts."""

    def __init__(
        self,
        clock: Clock,
        limits: Limits,
        reserve: Reserve,
        keep: Keep,
        caps: Mapping[str, float] | None = None,
    ) -> None:
        """``caps`` limit the requests per second of single groups, evenly spaced."""
        self._clock, self._keep = clock, keep
        self._caps, self._began_s = dict(caps or {}), dict(reserve.groups)
        self._pacer = resumed(limits, reserve, clock.now_s(), clock.elapsed_s())
        self._reserved_s = -math.inf
        self._line = asyncio.Lock()
        self.requests = 0
        self.waiting = 0

    async def admit(self, group: str) -> None:
        """Return when one more request may start: the caller starts it at once."""
        while (wait_s := self.ready_s(group) - self._clock.now_s()) > 0:
            await asyncio.sleep(min(wait_s, _LONGEST_SLEEP_S))
        self.waiting += 1
        try:
            async with self._line:
                if group in self._caps:
                    self._began_s[group] = max(self._clock.now_s(), self.ready_s(group))
                    await self._reserve()
                await self._wait()
                self._pacer = self._pacer.started(self._clock.elapsed_s())
                self.requests += 1
        finally:
            self.waiting -= 1

    def ready_s(self, group: str) -> float:
        """When the cap of a group allows its next request, in Unix seconds; −∞ where it has none."""
        cap, began_s = self._caps.get(group), self._began_s.get(group)
        if cap is None or began_s is None:
            return -math.inf
        # A clock that was set back makes nobody wait longer than one request's time.
        return min(began_s, self._clock.now_s()) + 1.0 / cap

    async def _wait(self) -> None:
        while True:
            wait_s = self.wait_s()
            if wait_s > _COARSE_S:
                await asyncio.sleep(min(wait_s - _COARSE_S / 2, _LONGEST_SLEEP_S))
            elif wait_s > 0:
                await asyncio.sleep(0)  # the last moment is waited for awake, so that none is lost
            elif self._clock.now_s() > self._reserved_s:
                await self._reserve()
            else:
                return

    async def _reserve(self) -> None:
        until_s = self._clock.now_s() + RESERVE_S
        await self._keep(Reserve(until_s, self.debt_until_s(), self._groups()))
        self._reserved_s = until_s

    def wait_s(self) -> float:
        """How long until the next request may start."""
        now_s = self._clock.elapsed_s()
        return self._pacer.ready_s(now_s) - now_s

    def paid(self, spent: Spent) -> None:
        """What a request turned out to cost."""
        self._pacer = self._pacer.paid(self._clock.elapsed_s(), spent)

    def limit(self, limits: Limits, caps: Mapping[str, float] | None = None) -> None:
        """Another budget from now on."""
        self._pacer, self._caps = self._pacer.limited(limits), dict(caps or {})

    def _groups(self) -> dict[str, float]:
        return {group: began_s for group, began_s in self._began_s.items() if group in self._caps}

    def debt_until_s(self) -> float:
        """When all debts are paid, in Unix seconds."""
        return self._pacer.debt_s - self._clock.elapsed_s() + self._clock.now_s()

    def reserve(self) -> Reserve:
        """What the next engine must know, once no request is under way."""
        started_s = self._pacer.started_s - self._clock.elapsed_s() + self._clock.now_s()
        return Reserve(started_s, self.debt_until_s(), self._groups())
