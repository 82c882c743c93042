"""The groups to which this worker may send requests: it claims them, and renews the claims it needs.

A group is claimed when its first item is picked, and released when it was not used for the length of a claim.
If there are other workers, a worker that holds more than its fair share releases the groups that it has held
longest. In addition, every worker releases one group from time to time, because another worker may need it
for a redirect or for a user. A worker that takes over a group first waits for the delay between requests.
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
    """The claims ``names``, taken until ``until_s``; no request may start before ``open_s``. Both are elapsed
    seconds (``Clock.elapsed_s``). ``others`` is True if another worker may have held them a moment ago."""

    names: Sequence[str]
    until_s: float
    open_s: float
    others: bool = False


TakeClaims: TypeAlias = Callable[[Sequence[str]], Awaitable[TakenClaims]]
"""A function that takes the named claims, as far as they are free."""

Inherit: TypeAlias = Callable[[Collection[str]], Awaitable[None]]
"""A function that loads what other workers learned about groups, before this one sends requests to them."""

TURN = 4.0  # if there are other workers, one keeps a group for at most 4 times the length of a claim
_AGAIN_S = 0.25  # the wait after a claim that was not free
_SOON_S = 0.01  # the wait while a claim is being taken
_GAP_S = 1.0  # a group that was released for other workers is not claimed again within this time


@dataclass(slots=True)
class _Held:
    """A claimed group, in elapsed seconds: held from ``since_s`` to ``until_s``, last used at ``used_s``. No
    poll starts before ``open_s``, or while the group is ``closing``, that is, about to be released."""

    until_s: float
    open_s: float
    since_s: float
    used_s: float
    closing: bool = False


class Claims:
    """The claimed groups of one worker. All times are elapsed seconds, except those of ``ready_s``."""

    def __init__(self, clock: Clock, duration_s: float, take: TakeClaims, wakeup: asyncio.Event) -> None:
        """``duration_s`` is the length of a claim; ``wakeup`` is set when claims were taken or refused."""
        self._clock, self._duration_s, self._take, self._wakeup = clock, duration_s, take, wakeup
        self._held: dict[str, _Held] = {}
        self._retry_at_s: dict[str, float] = {}
        self._wanted: dict[str, None] = {}
        self._wants, self._news = asyncio.Event(), asyncio.Event()

    def __contains__(self, group: object) -> bool:
        """Return whether this worker holds the claim of ``group``."""
        held = self._held.get(group) if isinstance(group, str) else None
        return held is not None and self._clock.elapsed_s() < held.until_s

    @property
    def waits_for_others(self) -> bool:
        """Whether this worker wants groups, but other workers hold all of them."""
        return bool(self._retry_at_s) and not self._held

    def is_open(self, group: str) -> bool:
        """Return whether requests to ``group`` may start now."""
        held, now_s = self._held.get(group), self._clock.elapsed_s()
        return held is not None and held.open_s <= now_s < held.until_s

    def is_elsewhere(self, group: str) -> bool:
        """Return whether another worker probably holds ``group``: its claim was not free a moment ago."""
        return group not in self and self._retry_at_s.get(group, -math.inf) > self._clock.elapsed_s()

    def ready_s(self, group: str, now_s: float) -> float:
        """Return when polls of ``group`` may start, in Unix seconds; request the claim if it is not held."""
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
        """Wait until requests to ``group`` may start."""
        while not self.is_open(group):
            if group in self:
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

    async def run(self, inherit: Inherit) -> None:
        """Take the claims that ``ready_s`` and ``wait_until_open`` request, until cancelled."""
        while True:
            await self._wants.wait()
            self._wants.clear()
            groups, self._wanted = list(self._wanted), {}
            taken = await self._take([group_claim(group) for group in groups])
            names = set(taken.names)
            # Done before the claims count as held, so that no request ignores the last holder's back-offs.
            if names and taken.others:
                await inherit([group for group in groups if group_claim(group) in names])
            now_s = self._clock.elapsed_s()
            for group in groups:
                if group_claim(group) not in names:
                    self._retry_at_s[group] = now_s + _AGAIN_S
                    continue
                self._retry_at_s.pop(group, None)
                held = self._held.setdefault(group, _Held(taken.until_s, taken.open_s, now_s, now_s))
                held.until_s = taken.until_s  # a claim that was requested twice is renewed
            self._news.set()
            self._wakeup.set()

    def record_renewal(self, names: Sequence[str], begun_s: float) -> None:
        """Record that the claims ``names`` were renewed at ``begun_s``, and that all others are lost."""
        kept = set(names)
        for group in list(self._held):
            if group_claim(group) in kept:
                self._held[group].until_s = begun_s + self._duration_s
            else:
                del self._held[group]
                log_event(logging.INFO, "group lost to another worker", group=group)

    def release_idle(self, share: float, is_quiet: Callable[[str], bool]) -> list[str]:
        """Release claims that are no longer needed, or that other workers should get; return their names.
        ``share`` is the fair share of one worker, as a number of groups; it is infinite without other
        workers. ``is_quiet`` returns whether a group can be released now."""
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
        """Mark the groups to be released as closing: they are released as soon as their polls have ended."""
        longest = sorted(self._held.values(), key=lambda held: held.since_s)
        excess = max(len(longest) - share, 0)
        for place, held in enumerate(longest):
            turn = 1.0 if place < excess else TURN if place == 0 else math.inf
            held.closing = share < math.inf and now_s - held.since_s > turn * self._duration_s

    def _request_claim(self, group: str) -> None:
        self._wanted[group] = None
        self._wants.set()
