"""Lets requests through as politeness and the budget allow; the only place where a source waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from afresh.sources.context import SourceContext
from afresh.sources.http.hosts import HostQueue
from afresh.sources.http.politeness import (
    HostCondition,
    HostState,
    Politeness,
    ready_s,
    record_end,
    record_start,
)
from afresh.sources.remembering import Rest
from afresh.values.units import format_duration

_RESTS_KEPT = 10_000


class HostBackoffError(Exception):
    """The group may not be asked for ``wait_s`` more seconds, longer than a poll may wait for its turn.

    ``spaced``: it is well, and asks for so much time between requests.
    """

    def __init__(self, group: str, wait_s: float, *, spaced: bool) -> None:
        super().__init__(f"{group} rests for {format_duration(wait_s)} more")
        self.wait_s, self.spaced = wait_s, spaced


class RequestSlot:
    """One request's turn: waited for, held and given back; whoever has it says how it ended."""

    def __init__(self, turnstile: HostThrottle, group: str) -> None:
        self._turnstile, self.group = turnstile, group
        self.verdict: HostCondition = "fine"
        self.retry_after_s: float | None = None
        self.why = ""

    async def __aenter__(self) -> Self:
        """Wait for it; ``HostBackoffError`` rather than wait beyond patience."""
        await self._turnstile.enter(self.group)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give it back."""
        self._turnstile.leave(self)


class HostThrottle:
    """Per group a delay, a number of requests at once, and rests after failures (see ``politeness``).

    Each source has its own, with its manners; the hosts behind them are those of the surroundings.
    """

    def __init__(
        self, source: str, manners: Politeness, context: SourceContext, *, patience_s: float
    ) -> None:
        self._source, self._manners, self._patience_s = source, manners, patience_s
        self._context, self._hosts = context, context.hosts

    def wait_s(self, group: str) -> float:
        """How long until the next request may start; infinite while the group's turns are all taken."""
        host = self._hosts.states.get(group)
        if host is None:
            return 0.0
        manners = self._hosts.manners(group, self._manners)
        return max(0.0, ready_s(host, manners) - self._context.clock.elapsed_s())

    def set_crawl_delay(self, group: str, delay_s: float) -> None:
        """What the group's robots.txt asks for, from now on."""
        host = self._hosts.states.get(group, HostState())
        if host.crawl_delay_s != delay_s:
            self._hosts.states[group] = replace(host, crawl_delay_s=delay_s)

    def asks(self, group: str) -> bool:
        """Whether the group was ever asked here."""
        return self._hosts.is_asked_by(group, self._source)

    def rests(self) -> tuple[Rest, ...]:
        """Of the groups asked here those that failed last or rest longer than their delay; bounded."""
        clock = self._context.clock
        now_s, offset_s = clock.elapsed_s(), clock.now_s() - clock.elapsed_s()
        found = [
            Rest(group, round(host.next_s + offset_s, 3), host.failures, host.why)
            for group, host in self._hosts.states.items()
            if host.next_s > now_s and (host.failures or host.why) and self.asks(group)
        ]
        return tuple(sorted(found, key=lambda rest: -rest.until_s)[:_RESTS_KEPT])

    def recall(self, rests: Sequence[Rest]) -> None:
        """Rests of an earlier process; a clock set back makes none longer than the longest allowed."""
        clock = self._context.clock
        for rest in rests:
            wait_s = min(rest.until_s - clock.now_s(), self._manners.longest_rest_s)
            if wait_s > 0:
                self._hosts.asked_by(rest.group, self._source, self._manners)
                host = self._hosts.states.get(rest.group, HostState())
                next_s = max(host.next_s, clock.elapsed_s() + wait_s)
                self._hosts.states[rest.group] = replace(
                    host, next_s=next_s, failures=max(host.failures, rest.failures), why=rest.why
                )

    def turn(self, group: str) -> RequestSlot:
        """``async with`` it: a request goes while the turn is held."""
        return RequestSlot(self, group)

    def close(self) -> None:
        """No more turns are asked for here."""
        self._hosts.let_go(self._source, self._manners)

    async def enter(self, group: str) -> None:
        """Wait until one more request to the group may start; it starts now."""
        hosts = self._hosts
        line = hosts.lines.setdefault(group, HostQueue())
        line.people += 1
        try:
            async with line.lock:
                hosts.asked_by(group, self._source, self._manners)
                await self._wait(group, line)
                await self._context.admit(group)
                now_s = self._context.clock.elapsed_s()
                hosts.states[group] = record_start(hosts.states.get(group, HostState()), now_s)
        finally:
            line.people -= 1
            if not line.people:
                del hosts.lines[group]

    def leave(self, turn: RequestSlot) -> None:
        """The request of this turn is over."""
        now_s, hosts, group = self._context.clock.elapsed_s(), self._hosts, turn.group
        manners = hosts.manners(group, self._manners)
        hosts.states[group] = record_end(
            hosts.states[group], manners, now_s, turn.verdict, turn.retry_after_s, turn.why
        )
        if group in hosts.lines:
            hosts.lines[group].freed.set()
        else:
            hosts.prune(now_s)

    async def _wait(self, group: str, line: HostQueue) -> None:
        while (wait_s := self.wait_s(group)) > 0:
            if wait_s == float("inf"):
                line.freed.clear()
                await line.freed.wait()
            elif wait_s > self._patience_s:
                raise HostBackoffError(group, wait_s, spaced=not self._hosts.states[group].why)
            else:
                await self._context.sleep(wait_s)
