"""Which politeness groups this worker may ask: those that it has claimed, for as long as it renews the claim.

A group is claimed when its first item comes up, and given up when it has not been asked for a claim's time.
Where other workers are there, whoever holds more than its fair share gives up what it has held longest; and
now and then everybody gives up one, for whoever waits for a host because a redirect or a user leads there.
Whoever takes a group that another may have asked just before waits the delay between requests first.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from afresh.engine.logs import log_event
from afresh.stores.store import group_claim
from afresh.values.clock import Clock


@dataclass(frozen=True, slots=True)
class TakenClaims:
    """Claims held until ``until_s``, and no request before ``open_s``; in elapsed seconds.

    ``others``: another worker may have held them a moment ago.
    """

    names: Sequence[str]
    until_s: float
    open_s: float
    others: bool = False


Take: TypeAlias = Callable[[Sequence[str]], Awaitable[TakenClaims]]
"""Claims what is free of these names."""

Inherit: TypeAlias = Callable[[Collection[str]], Awaitable[None]]
"""Learns what other workers knew of groups, before they are asked."""

TURN = 4.0  # claims' times that a group stays with one worker while others are there
_AGAIN_S = 0.25  # how long after a vain try the next
_SOON_S = 0.01  # a group that is being claimed is looked at again so soon
_GAP_S = 1.0  # a group given up for others is left to them for so long


@dataclass(slots=True)
class _Held:
    """A group of ours, in elapsed seconds. ``open_s``: no request before; ``closing``: its turn ends."""

    until_s: float
    open_s: float
    since_s: float
    used_s: float
    closing: bool = False


class Claims:
    """The groups of one worker. Everything is in elapsed seconds but for what ``ready_s`` says."""

    def __init__(self, clock: Clock, duration_s: float, take: Take, wakeup: asyncio.Event) -> None:
        """``wakeup`` is set whenever it is decided who has a group."""
        self._clock, self._duration_s, self._take, self._wakeup = clock, duration_s, take, wakeup
        self._held: dict[str, _Held] = {}
        self._retry_at_s: dict[str, float] = {}
        self._wanted: dict[str, None] = {}
        self._wants, self._news = asyncio.Event(), asyncio.Event()

    def __contains__(self, group: object) -> bool:
        """Return whether this worker holds the claim of this group."""
        return isinstance(group, str) and self._is_ours(group)

    @property
    def waits_for_others(self) -> bool:
        """Whether groups are wanted here, and all of them are with others."""
        return bool(self._retry_at_s) and not self._held

    def is_open(self, group: str) -> bool:
        """Whether requests to this group may start now."""
        held, now_s = self._held.get(group), self._clock.elapsed_s()
        return held is not None and held.open_s <= now_s < held.until_s

    def is_elsewhere(self, group: str) -> bool:
        """Whether another worker was found to have this group a moment ago, or may have it now."""
        return not self._is_ours(group) and self._retry_at_s.get(group, -math.inf) > self._clock.elapsed_s()

    def ready_s(self, group: str, now_s: float) -> float:
        """When polls of a group may start, in Unix seconds; one that nobody is known to hold is asked for."""
        held, elapsed_s = self._held.get(group), self._clock.elapsed_s()
        if held is not None and elapsed_s < held.until_s:
            if held.closing:
                return now_s + _AGAIN_S
            return now_s + max(held.open_s - elapsed_s, 0.0)
        again_s = self._retry_at_s.get(group, -math.inf)
        if again_s > elapsed_s:
            return now_s + again_s - elapsed_s
        self._request_claim(group)
        return now_s + _SOON_S

    async def wait_until_open(self, group: str) -> None:
        """Return when requests to this group may start."""
        while not self.is_open(group):
            if self._is_ours(group):
                await asyncio.sleep(self._held[group].open_s - self._clock.elapsed_s())
                continue
            wait_s = self._retry_at_s.get(group, -math.inf) - self._clock.elapsed_s()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
                continue
            self._request_claim(group)
            self._news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), _AGAIN_S)
        self._held[group].used_s = self._clock.elapsed_s()

    async def wait_for_decision(self) -> None:
        """Return when it is next decided who has the groups that were asked for."""
        await self._news.wait()

    async def run(self, inherit: Inherit) -> None:
        """Claim what is wanted, until cancelled."""
        while True:
            await self._wants.wait()
            self._wants.clear()
            groups, self._wanted = list(self._wanted), {}
            taken = await self._take([group_claim(group) for group in groups])
            names = set(taken.names)
            if names and taken.others:
                await inherit([group for group in groups if group_claim(group) in names])
            now_s = self._clock.elapsed_s()
            for group in groups:
                if group_claim(group) in names:
                    self._retry_at_s.pop(group, None)
                    self._record_claim(group, taken, now_s)
                else:
                    self._retry_at_s[group] = now_s + _AGAIN_S
            self._news.set()
            self._wakeup.set()

    def _record_claim(self, group: str, taken: TakenClaims, now_s: float) -> None:
        if group in self._held:  # asked for twice: renewed
            self._held[group].until_s = taken.until_s
        else:
            self._held[group] = _Held(taken.until_s, taken.open_s, now_s, now_s)

    def record_renewal(self, names: Sequence[str], begun_s: float) -> None:
        """Our claims were renewed at ``begun_s``; what is not among ``names`` is lost."""
        kept = set(names)
        for group in list(self._held):
            if group_claim(group) in kept:
                self._held[group].until_s = begun_s + self._duration_s
            else:
                del self._held[group]
                log_event(logging.INFO, "group lost to another worker", group=group)

    def release_idle(self, share: float, is_quiet: Callable[[str], bool]) -> list[str]:
        """The claims that are not needed any more, or that others may have; no longer ours from now on.

        ``share``: how many groups are a fair share, infinite where nobody else is there.
        """
        now_s, names = self._clock.elapsed_s(), []
        self._close(share, now_s)
        for group, held in list(self._held.items()):
            idle = now_s - held.used_s > self._duration_s
            if (idle or held.closing) and is_quiet(group):
                del self._held[group]
                if held.closing:
                    self._retry_at_s[group] = now_s + _GAP_S
                names.append(group_claim(group))
        self._retry_at_s = {group: again_s for group, again_s in self._retry_at_s.items() if again_s > now_s}
        return names

    def _close(self, share: float, now_s: float) -> None:
        """Let the turns of some groups end: nothing new is begun there, what is under way ends first."""
        longest = sorted(self._held.values(), key=lambda held: held.since_s)
        excess = max(len(longest) - share, 0)
        for place, held in enumerate(longest):
            turn = 1.0 if place < excess else TURN if place == 0 else math.inf
            held.closing = share < math.inf and now_s - held.since_s > turn * self._duration_s

    def _is_ours(self, group: str) -> bool:
        held = self._held.get(group)
        return held is not None and self._clock.elapsed_s() < held.until_s

    def _request_claim(self, group: str) -> None:
        self._wanted[group] = None
        self._wants.set()
