"""The robots.txt of every host asked, fetched once and kept until it expires."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from afresh.sources.fetcher import Reply
from afresh.sources.robots import Robots, read_robots, robots_url
from afresh.sources.urls import followed
from afresh.values.clock import Clock

Ask: TypeAlias = Callable[[str], Awaitable[Reply]]
"""Fetches one robots.txt address: polite, counted, bounded."""

_HOSTS_KEPT = 10_000
_MAX_REDIRECTS = 5  # as RFC 9309 asks
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class RobotsBook:
    """Remembers the rules of the hosts asked last; two polls of one host never fetch them twice at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rules: OrderedDict[str, Robots] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}

    async def rules(self, url: str, ask: Ask) -> Robots:
        """The rules for ``url``, from memory or by ``ask``."""
        place = robots_url(url)
        known = self._fresh(place)
        if known is not None:
            return known
        lock = self._locks.setdefault(place, asyncio.Lock())
        try:
            async with lock:
                known = self._fresh(place)
                if known is None:
                    reply = await self._fetch(place, ask)
                    known = read_robots(reply, self._clock.elapsed_s(), self._rules.get(place))
                    self._keep(place, known)
                return known
        finally:
            if not lock.locked():
                self._locks.pop(place, None)

    def _fresh(self, place: str) -> Robots | None:
        known = self._rules.get(place)
        return known if known is not None and self._clock.elapsed_s() < known.expires_s else None

    def _keep(self, place: str, rules: Robots) -> None:
        self._rules[place] = rules
        self._rules.move_to_end(place)
        while len(self._rules) > _HOSTS_KEPT:
            self._rules.popitem(last=False)

    async def _fetch(self, place: str, ask: Ask) -> Reply:
        reply = Reply()
        for _ in range(_MAX_REDIRECTS + 1):
            reply = await ask(place)
            target = (
                followed(place, reply.headers.get("location", "")) if reply.status in _REDIRECTS else None
            )
            if target is None:
                return reply
            place = target
        return Reply(404)  # more redirects than RFC 9309 asks to follow: as if there were none
