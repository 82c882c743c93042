"""The hosts that the sources of one engine ask, known once: whoever asks, a host sees one visitor.

Where several sources have pages on a host the most careful of them sets the manners: the longest delay, the
fewest requests at once. Rests, Crawl-delay, turns and robots.txt are everybody's.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from afresh.sources.http.politeness import HostState, Politeness, ready_s, strictest

if TYPE_CHECKING:
    from afresh.sources.http.robots_cache import RobotsCache

_PRUNE_FROM = 10_000


@dataclass(slots=True)
class HostQueue:
    """Those who wait for one host, in order of arrival."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    freed: asyncio.Event = field(default_factory=asyncio.Event)
    people: int = 0


class HostRegistry:
    """What is remembered of each host, by its group. ``books``: robots.txt files by who asks for them.

    >>> hosts = HostRegistry()
    >>> hosts.asked_by("a.test", "news", Politeness(delay_s=5.0))
    >>> [hosts.manners(host, Politeness()).delay_s for host in ("a.test", "b.test")]
    [5.0, 1.0]
    """

    def __init__(self) -> None:
        self.states: dict[str, HostState] = {}
        self.lines: dict[str, HostQueue] = {}
        self.books: dict[object, RobotsCache] = {}
        self._manners: dict[str, Politeness] = {}
        self._askers: dict[str, set[str]] = {}
        self._prune_at = _PRUNE_FROM

    def asked_by(self, group: str, source: str, manners: Politeness) -> None:
        """This source asks the group, and has these manners from now on."""
        self._manners[source] = manners
        self._askers.setdefault(group, set()).add(source)

    def is_asked_by(self, group: str, source: str) -> bool:
        """Whether this source has asked the group."""
        return source in self._askers.get(group, ())

    def manners(self, group: str, own: Politeness) -> Politeness:
        """How the group is treated by one with manners of its ``own``."""
        for source in self._askers.get(group, ()):
            if self._manners.get(source, own) is not own:
                others = (self._manners.get(other, own) for other in self._askers[group])
                return strictest(own, *others)
        return own

    def let_go(self, source: str, manners: Politeness) -> None:
        """A source asks no more, unless another of its name has taken over."""
        if self._manners.get(source) is manners:
            del self._manners[source]

    def prune(self, now_s: float) -> None:
        """Forget hosts of which there is nothing to remember, so that a million fit."""
        if len(self.states) <= self._prune_at:
            return
        self.states = {
            group: host
            for group, host in self.states.items()
            if host.failures
            or group in self.lines
            or ready_s(host, self.manners(group, Politeness())) > now_s
        }
        self._askers = {group: names for group, names in self._askers.items() if group in self.states}
        self._prune_at = max(_PRUNE_FROM, 2 * len(self.states))
