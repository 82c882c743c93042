"""Lets requests through as politeness and the budget allow; the only place where a source waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from afresh.sources.politeness import HostState, Manners, Verdict, finished, ready_s, started
from afresh.sources.remembering import Rest
from afresh.sources.surroundings import Surroundings
from afresh.values.units import format_duration

_PRUNE_FROM = 10_000
_RESTS_KEPT = 10_000


class RestingError(Exception):
    """The group may not be asked for ``wait_s`` more seconds, longer than a poll may wait for its turn."""

    def __init__(self, group: str, wait_s: float) -> None:
        super().__init__(f"{group} rests for {format_duration(wait_s)} more")
        self.wait_s = wait_s


@dataclass(slots=True)
class Turn:
    """One request's turn; whoever has it says how it ended."""

    verdict: Verdict = "fine"
    retry_after_s: float | None = None
    why: str = ""


@dataclass(slots=True)
class _Line:
    """Those who wait for one group, in order of arrival."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    freed: asyncio.Event = field(default_factory=asyncio.Event)
    people: int = 0


class Turnstile:
    """Per group a delay, a number of requests at once, and rests after failures (see ``politeness``)."""

    def __init__(self, manners: Manners, around: Surroundings, *, patience_s: float) -> None:
        self._manners, self._around, self._patience_s = manners, around, patience_s
        self._hosts: dict[str, HostState] = {}
        self._lines: dict[str, _Line] = {}
        self._prune_at = _PRUNE_FROM

    def wait_s(self, group: str) -> float:
        """How long until the next request may start; infinite while the group's turns are all taken."""
        host = self._hosts.get(group)
        return max(0.0, ready_s(host, self._manners) - self._around.clock.elapsed_s()) if host else 0.0

    def set_crawl_delay(self, group: str, delay_s: float) -> None:
        """What the group's robots.txt asks for, from now on."""
        host = self._hosts.get(group, HostState())
        if host.crawl_delay_s != delay_s:
            self._hosts[group] = replace(host, crawl_delay_s=delay_s)

    def rests(self) -> tuple[Rest, ...]:
        """The groups that failed last or rest longer than their delay, longest rest first; bounded."""
        clock = self._around.clock
        now_s, offset_s = clock.elapsed_s(), clock.now_s() - clock.elapsed_s()
        found = [
            Rest(group, round(host.next_s + offset_s, 3), host.failures, host.why)
            for group, host in self._hosts.items()
            if host.next_s > now_s and (host.failures or host.why)
        ]
        return tuple(sorted(found, key=lambda rest: -rest.until_s)[:_RESTS_KEPT])

    def recall(self, rests: Sequence[Rest]) -> None:
        """Rests of an earlier process; a clock set back makes none longer than the longest allowed."""
        clock = self._around.clock
        for rest in rests:
            wait_s = min(rest.until_s - clock.now_s(), self._manners.longest_rest_s)
            if wait_s > 0:
                host = self._hosts.get(rest.group, HostState())
                next_s = max(host.next_s, clock.elapsed_s() + wait_s)
                self._hosts[rest.group] = replace(
                    host, next_s=next_s, failures=max(host.failures, rest.failures), why=rest.why
                )

    @asynccontextmanager
    async def turn(self, group: str) -> AsyncIterator[Turn]:
        """Wait for a turn, hold it, give it back; ``RestingError`` rather than wait beyond patience."""
        await self._enter(group)
        turn = Turn()
        try:
            yield turn
        finally:
            now_s = self._around.clock.elapsed_s()
            host = self._hosts[group]
            self._hosts[group] = finished(
                host, self._manners, now_s, turn.verdict, turn.retry_after_s, turn.why
            )
            if group in self._lines:
                self._lines[group].freed.set()
            elif len(self._hosts) > self._prune_at:
                self._prune(now_s)

    async def _enter(self, group: str) -> None:
        line = self._lines.setdefault(group, _Line())
        line.people += 1
        try:
            async with line.lock:
                await self._wait(group, line)
                await self._around.admit(group)
                now_s = self._around.clock.elapsed_s()
                self._hosts[group] = started(self._hosts.get(group, HostState()), self._manners, now_s)
        finally:
            line.people -= 1
            if not line.people:
                del self._lines[group]

    async def _wait(self, group: str, line: _Line) -> None:
        while (wait_s := self.wait_s(group)) > 0:
            if wait_s == float("inf"):
                line.freed.clear()
                await line.freed.wait()
            elif wait_s > self._patience_s:
                raise RestingError(group, wait_s)
            else:
                await self._around.sleep(wait_s)

    def _prune(self, now_s: float) -> None:
        """Forget groups of which there is nothing to remember, so that a million hosts fit."""
        self._hosts = {
            group: host
            for group, host in self._hosts.items()
            if host.in_flight or host.failures or host.next_s > now_s or group in self._lines
        }
        self._prune_at = max(_PRUNE_FROM, 2 * len(self._hosts))
