"""Delay each request until its host and the budget allow it. An HTTP source waits nowhere else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from afresh.sources.capabilities import GroupBackoff
from afresh.sources.context import SourceContext
from afresh.sources.http.pacing.quota_headers import RemainingQuota
from afresh.sources.http.politeness import (
    HostCondition,
    HostQueue,
    HostState,
    Politeness,
    count_start,
    ready_s,
    record_end,
    record_quota,
    record_start,
    strictest_quota,
)
from afresh.values.units import format_duration

_MOST_BACKOFFS = 10_000


class HostBackoffError(Exception):
    """No request to the group may start for ``wait_s`` more seconds, longer than a poll may wait. ``spaced``
    is True if the host did not fail, but the delay between its requests is that long. ``why`` is the
    cause of the back-off."""

    def __init__(self, group: str, wait_s: float, *, spaced: bool, why: str = "") -> None:
        cause = f" ({why}) before it is asked again" if why else ""
        super().__init__(f"{group} rests for {format_duration(wait_s)} more{cause}")
        self.wait_s, self.spaced = wait_s, spaced


@dataclass(slots=True)
class RequestSlot:
    """The permission for one request. The code that sends the request records its result here. The fields are
    the arguments of ``politeness.record_end`` and ``record_quota``."""

    started_s: float
    condition: HostCondition = "fine"
    retry_after_s: float | None = None
    why: str = ""
    quota: RemainingQuota | None = None


class HostThrottle:
    """Enforces the delay, the number of requests at a time and the back-off of each host. The rules are in
    ``politeness``. Each source has a throttle with its own rules; all throttles share what is known about
    hosts. A poll waits at most ``max_wait_s`` seconds."""

    def __init__(self, source: str, rules: Politeness, context: SourceContext, *, max_wait_s: float) -> None:
        self._source, self._rules, self._max_wait_s = source, rules, max_wait_s
        self._context, self._hosts = context, context.hosts

    def wait_s(self, group: str) -> float:
        """Return the seconds until a request to ``group`` may start; infinite while all slots are used."""
        host = self._hosts.states.get(group)
        if host is None:
            return 0.0
        rules = self._hosts.politeness(group, self._rules)
        return max(0.0, ready_s(host, rules) - self._context.clock.elapsed_s())

    def backoff_s(self, group: str) -> float:
        """Return the seconds until the back-off of ``group`` after failures ends; 0 without one."""
        host = self._hosts.states.get(group)
        if host is None or not host.failures:
            return 0.0
        return max(0.0, host.next_s - self._context.clock.elapsed_s())

    def set_crawl_delay(self, group: str, delay_s: float) -> None:
        host = self._hosts.states.get(group, HostState())
        if host.crawl_delay_s != delay_s:
            self._hosts.states[group] = replace(host, crawl_delay_s=delay_s)

    def has_asked(self, group: str) -> bool:
        return self._hosts.is_asked_by(group, self._source)

    def backoffs(self) -> tuple[GroupBackoff, ...]:
        """Return the hosts of this source that back off after a failure or a Retry-After, whose pace was
        learned, or whose quota is used in part; at most 10,000, those that rest longest first."""
        clock = self._context.clock
        now_s, offset_s = clock.elapsed_s(), clock.now_s() - clock.elapsed_s()
        found = [
            _backoff_of(group, host, now_s, offset_s)
            for group, host in self._hosts.states.items()
            if self.has_asked(group) and _is_worth_saving(host, now_s, offset_s)
        ]
        return tuple(sorted(found, key=lambda backoff: -backoff.until_s)[:_MOST_BACKOFFS])

    def load_backoffs(self, backoffs: Sequence[GroupBackoff]) -> None:
        """Load the back-offs of an earlier process, of limited length in case the clock was set back, the
        learned paces, and what is used of quotas."""
        clock = self._context.clock
        for backoff in backoffs:
            wait_s = min(backoff.until_s - clock.now_s(), self._rules.longest_rest_s)
            learned = backoff.pace or backoff.used
            if wait_s <= 0 and learned is None:
                continue
            if backoff.failures or backoff.why or learned:  # otherwise another program sends a request
                self._hosts.register(backoff.group, self._source, self._rules)
            host = self._hosts.states.get(backoff.group, HostState())
            used = max(host.used, backoff.used or host.used, key=lambda used: (used.until_s, used.requests))
            host = replace(host, pace=backoff.pace or host.pace, used=used)
            if wait_s > 0:
                host = replace(
                    host,
                    next_s=max(host.next_s, clock.elapsed_s() + wait_s),
                    failures=max(host.failures, backoff.failures),
                    why=backoff.why or host.why,
                )
            self._hosts.states[backoff.group] = host

    @asynccontextmanager
    async def slot(self, group: str) -> AsyncIterator[RequestSlot]:
        """Wait until a request may start, and hold its slot until the block ends. Raise ``HostBackoffError``
        if the wait would be too long."""
        slot = RequestSlot(await self._acquire(group))
        try:
            yield slot
        finally:
            self._release(group, slot)

    def close(self) -> None:
        """Remove the rules of this source from the registry of hosts."""
        self._hosts.unregister(self._source, self._rules)

    async def _acquire(self, group: str) -> float:
        """Wait until a request may start; return the time at which it starts."""
        hosts = self._hosts
        queue = hosts.queues.setdefault(group, HostQueue())
        queue.waiters += 1
        try:
            # The lock is held while waiting, so that requests start in the order of their arrival.
            async with queue.lock:
                hosts.register(group, self._source, self._rules)
                await self._wait(group, queue)
                # The budget comes last: a request that still waits for its host must not use it.
                await self._context.admit(group)
                while self.wait_s(group) > 0:  # meanwhile a request to this host was lent to another program
                    await self._wait(group, queue)
                    await self._context.admit(group)
                now_s = self._context.clock.elapsed_s()
                host = record_start(hosts.states.get(group, HostState()), now_s)
                rules = hosts.politeness(group, self._rules)
                hosts.states[group] = count_start(host, rules, now_s, self._context.clock.now_s())
                return now_s
        finally:
            queue.waiters -= 1
            if not queue.waiters:
                del hosts.queues[group]

    def _release(self, group: str, slot: RequestSlot) -> None:
        now_s, hosts = self._context.clock.elapsed_s(), self._hosts
        rules = hosts.politeness(group, self._rules)
        hosts.states[group] = record_end(
            hosts.states[group],
            rules,
            now_s,
            slot.condition,
            slot.retry_after_s,
            slot.why,
            started_s=slot.started_s,
        )
        host, unix_s = hosts.states[group], self._context.clock.now_s()
        quota = strictest_quota(host, rules, slot.quota, unix_s)
        if quota is not None:
            hosts.states[group] = record_quota(host, rules, now_s, quota)
        if group in hosts.queues:
            hosts.queues[group].freed.set()
        else:
            hosts.prune(now_s)

    async def _wait(self, group: str, queue: HostQueue) -> None:
        while (wait_s := self.wait_s(group)) > 0:
            if wait_s == float("inf"):
                # No other task runs between the check above and this wait, so no wake-up is lost.
                queue.freed.clear()
                await queue.freed.wait()
            elif wait_s > self._max_wait_s:
                why = self._hosts.states[group].why
                raise HostBackoffError(group, wait_s, spaced=not why, why=why)
            else:
                await self._context.sleep(wait_s)


def _is_worth_saving(host: HostState, now_s: float, offset_s: float) -> bool:
    rests = host.next_s > now_s and bool(host.failures or host.why)
    return rests or host.pace is not None or host.used.until_s > now_s + offset_s


def _backoff_of(group: str, host: HostState, now_s: float, offset_s: float) -> GroupBackoff:
    used = host.used if host.used.requests else None
    if host.next_s <= now_s:
        return GroupBackoff(group, 0.0, pace=host.pace, used=used)
    return GroupBackoff(group, round(host.next_s + offset_s, 3), host.failures, host.why, host.pace, used)
