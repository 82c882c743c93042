"""Decide when the next request to a host may start. All functions are pure; the time is an argument.

By default, one request to a host runs at a time. Requests start at least a delay apart, and later if the host
asks for it (Crawl-delay, Retry-After) or fails. Each consecutive failure doubles the back-off of the whole
host, not only of the item that failed. One good response ends the back-off. Times are seconds of a monotonic
clock.

All sources of an engine share one ``HostRegistry``. If several sources have pages on one host, the strictest
rules apply: the longest delay and the fewest requests at a time. The sources also share back-offs,
Crawl-delay, request slots and robots.txt."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from afresh.values.backoff import Backoff

if TYPE_CHECKING:
    from afresh.sources.http.robots import RobotsCache

HostCondition: TypeAlias = Literal["fine", "busy", "down"]
"""What a request showed about its host: it responded, asked for later requests (429, 503), or was silent."""

_PRUNE_FROM = 10_000


@dataclass(frozen=True, slots=True)
class Politeness:
    """The rules for requests to a host. ``delay_s`` is the shortest time from the start of one request to the
    start of the next. At most ``concurrency`` requests run at a time. ``first_rest_s`` is the first back-off,
    ``longest_rest_s`` the longest."""

    delay_s: float = 1.0
    concurrency: int = 1
    first_rest_s: float = 10.0
    longest_rest_s: float = 86400.0


@dataclass(frozen=True, slots=True)
class HostState:
    """What is known about the requests to one host. The default is that of a host that was never asked.

    ``next_s`` is the end of the back-off, ``why`` its reason. ``in_flight`` is the number of running
    requests, ``failures`` the number of consecutive failures. ``asked_s`` is the time at which the last
    request started."""

    next_s: float = float("-inf")
    in_flight: int = 0
    failures: int = 0
    crawl_delay_s: float = 0.0
    why: str = ""
    asked_s: float = float("-inf")


def ready_s(host: HostState, rules: Politeness) -> float:
    """Return when the next request to a host may start, in seconds of a monotonic clock. The time is infinite
    while as many requests as allowed are running.

    >>> asked, rules = record_start(HostState(), 100.0), Politeness(delay_s=2.0)
    >>> ready_s(asked, rules), ready_s(record_end(asked, rules, 100.5, "fine"), rules)
    (inf, 102.0)
    """
    if host.in_flight >= rules.concurrency:
        return float("inf")
    delay_s = max(rules.delay_s, min(host.crawl_delay_s, rules.longest_rest_s))
    return max(host.next_s, host.asked_s + delay_s)


def strictest_rules(first: Politeness, *others: Politeness) -> Politeness:
    """Return rules that keep every limit of the given rules.

    >>> strictest_rules(Politeness(delay_s=1.0), Politeness(delay_s=3.0, longest_rest_s=60.0))
    Politeness(delay_s=3.0, concurrency=1, first_rest_s=10.0, longest_rest_s=86400.0)
    """
    every = (first, *others)
    return Politeness(
        max(each.delay_s for each in every),
        min(each.concurrency for each in every),
        max(each.first_rest_s for each in every),
        max(each.longest_rest_s for each in every),
    )


def record_start(host: HostState, now_s: float) -> HostState:
    asked_s = max(host.asked_s, now_s)
    return HostState(host.next_s, host.in_flight + 1, host.failures, host.crawl_delay_s, host.why, asked_s)


def record_end(
    host: HostState,
    rules: Politeness,
    now_s: float,
    condition: HostCondition,
    retry_after_s: float | None = None,
    why: str = "",
) -> HostState:
    """Return the state of the host after a request has ended with ``condition`` at the time ``now_s``. The
    back-off is the longer of first_rest_s·2^(failures−1) and ``retry_after_s`` (the Retry-After header), and
    at most longest_rest_s. ``why`` describes a failure.

    >>> host, rules = HostState(in_flight=1), Politeness(first_rest_s=10)
    >>> record_end(host, rules, 0.0, "busy").next_s, record_end(host, rules, 0.0, "busy", 60.0).next_s
    (10.0, 60.0)
    """
    in_flight = max(0, host.in_flight - 1)
    wait_s = retry_after_s or 0.0
    if condition == "fine":
        failures, why = 0, why if wait_s > 0 else ""
    else:
        failures = host.failures + 1
        wait_s = max(wait_s, Backoff(rules.first_rest_s, math.inf).wait_s(failures))
    next_s = max(host.next_s, now_s + min(max(wait_s, 0.0), rules.longest_rest_s))
    return HostState(next_s, in_flight, failures, host.crawl_delay_s, why, host.asked_s)


@dataclass(slots=True)
class HostQueue:
    """The requests that wait for one host. They start in the sequence in which they arrived. A waiting
    request holds ``lock``. ``freed`` is set when a request ends. ``waiters`` is the length of the queue."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    freed: asyncio.Event = field(default_factory=asyncio.Event)
    waiters: int = 0


class HostRegistry:
    """The state and the queue of each group, and the rules of the sources that send requests to it.
    ``robots`` has a cache of robots.txt files for each combination of user agent, proxy and
    ``allow_private``.

    >>> hosts = HostRegistry()
    >>> hosts.register("a.test", "news", Politeness(delay_s=5.0))
    >>> [hosts.politeness(host, Politeness()).delay_s for host in ("a.test", "b.test")]
    [5.0, 1.0]
    """

    def __init__(self) -> None:
        self.states: dict[str, HostState] = {}
        self.queues: dict[str, HostQueue] = {}
        self.robots: dict[object, RobotsCache] = {}
        self._rules: dict[str, Politeness] = {}
        self._sources: dict[str, set[str]] = {}
        self._prune_at = _PRUNE_FROM

    def register(self, group: str, source: str, rules: Politeness) -> None:
        """Record that ``source`` sends requests to the group, and the present ``rules`` of the source."""
        self._rules[source] = rules
        self._sources.setdefault(group, set()).add(source)

    def is_asked_by(self, group: str, source: str) -> bool:
        return source in self._sources.get(group, ())

    def politeness(self, group: str, own: Politeness) -> Politeness:
        """Return the strictest rules for a group. ``own`` are the rules of the source that calls."""
        # Fast path: if no other source asks this host, its own rules are returned without a new object.
        for source in self._sources.get(group, ()):
            if self._rules.get(source, own) is not own:
                others = (self._rules.get(other, own) for other in self._sources[group])
                return strictest_rules(own, *others)
        return own

    def unregister(self, source: str, rules: Politeness) -> None:
        """Remove the rules of a closed source, unless a new source of the same name has replaced them."""
        if self._rules.get(source) is rules:
            del self._rules[source]

    def prune(self, now_s: float) -> None:
        """Forget hosts that may be asked at once and whose last request did not fail, to limit the memory."""
        if len(self.states) <= self._prune_at:
            return
        self.states = {
            group: host
            for group, host in self.states.items()
            if host.failures
            or group in self.queues
            or ready_s(host, self.politeness(group, Politeness())) > now_s
        }
        self._sources = {group: names for group, names in self._sources.items() if group in self.states}
        self._prune_at = max(_PRUNE_FROM, 2 * len(self.states))
