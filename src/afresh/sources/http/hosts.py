"""The hosts that all sources of one engine ask, recorded once, so that a host sees one visitor.

If several sources have pages on one host, the strictest politeness rules apply: the longest delay and the
fewest requests at a time. Back-offs, Crawl-delay, request slots and robots.txt are shared by all of them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from afresh.sources.http.politeness import HostState, Politeness, ready_s, strictest

if TYPE_CHECKING:
    from afresh.sources.http.robots import RobotsCache

_PRUNE_FROM = 10_000


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
        """Tell whether this source has asked the group."""
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
