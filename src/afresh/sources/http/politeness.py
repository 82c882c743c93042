"""When the next request to a host may start: a state machine that gets the time as an argument.

A host gets one request at a time, at least a delay apart, later if it asked for that (Crawl-delay,
Retry-After), and much later while it fails. Each failure in a row doubles the back-off, for the whole host
and not only for the item that met it; one good response ends it. Times are those of a monotonic clock.

The hosts that all sources of one engine ask are recorded once (``HostRegistry``), so that a host sees one
visitor. If several sources have pages on one host, the strictest rules apply: the longest delay and the
fewest requests at a time. Back-offs, Crawl-delay, request slots and robots.txt are shared by all of them.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from afresh.values.backoff import Backoff

if TYPE_CHECKING:
    from afresh.sources.http.robots import RobotsCache

HostCondition: TypeAlias = Literal["fine", "busy", "down"]
"""How a request ended for its host: it responded, asked us to come later (429, 503), or did not respond."""

_PRUNE_FROM = 10_000


@dataclass(frozen=True, slots=True)
class Politeness:
    """The rules for a host. ``delay_s`` is from start to start; ``longest_rest_s`` bounds every back-off."""

    delay_s: float = 1.0
    concurrency: int = 1
    first_rest_s: float = 10.0
    longest_rest_s: float = 86400.0


@dataclass(frozen=True, slots=True)
class HostState:
    """What is remembered of a host; the default is a host that was never asked. The host backs off until
    ``next_s`` for the reason ``why``; ``asked_s`` is when the last request started."""

    next_s: float = float("-inf")
    in_flight: int = 0
    failures: int = 0
    crawl_delay_s: float = 0.0
    why: str = ""
    asked_s: float = float("-inf")


def ready_s(host: HostState, rules: Politeness) -> float:
    """Return when the next request may start: infinite while as many as allowed are in flight.

    >>> asked, rules = record_start(HostState(), 100.0), Politeness(delay_s=2.0)
    >>> ready_s(asked, rules), ready_s(record_end(asked, rules, 100.5, "fine"), rules)
    (inf, 102.0)
    """
    if host.in_flight >= rules.concurrency:
        return float("inf")
    delay_s = max(rules.delay_s, min(host.crawl_delay_s, rules.longest_rest_s))
    return max(host.next_s, host.asked_s + delay_s)


def strictest(first: Politeness, *others: Politeness) -> Politeness:
    """Return rules that satisfy all of these.

    >>> strictest(Politeness(delay_s=1.0), Politeness(delay_s=3.0, longest_rest_s=60.0))
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
    """Return the state after a request has ended; ``why`` is the reason if the host is not fine.

    The back-off is first·2^(failures−1), or what Retry-After asks for if that is longer, but never more than
    the longest.

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
    """The requests that wait for one host, in order of arrival; ``waiters`` counts them."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    freed: asyncio.Event = field(default_factory=asyncio.Event)
    waiters: int = 0


class HostRegistry:
    """What is remembered of each host, by group. ``robots``: caches of robots.txt files, by visitor.

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
        """Record that a source asks the group, and the rules that the source has from now on."""
        self._rules[source] = rules
        self._sources.setdefault(group, set()).add(source)

    def is_asked_by(self, group: str, source: str) -> bool:
        return source in self._sources.get(group, ())

    def politeness(self, group: str, own: Politeness) -> Politeness:
        """Return the rules for a group, given the ``own`` rules of the source that asks."""
        for source in self._sources.get(group, ()):
            if self._rules.get(source, own) is not own:
                others = (self._rules.get(other, own) for other in self._sources[group])
                return strictest(own, *others)
        return own

    def unregister(self, source: str, rules: Politeness) -> None:
        """Forget the rules of a source that is closed, unless another of its name has replaced it."""
        if self._rules.get(source) is rules:
            del self._rules[source]

    def prune(self, now_s: float) -> None:
        """Forget hosts of which nothing needs to be remembered, so that millions of hosts fit."""
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
