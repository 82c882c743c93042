"""The robots.txt of every host asked, fetched once and kept until it expires."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from afresh.sources.http.fetcher import Reply
from afresh.sources.http.robots import DAY_S, RobotsRules, read_robots, restore_rules, robots_url
from afresh.sources.http.urls import host_group, resolve_link
from afresh.values.clock import Clock

Ask: TypeAlias = Callable[[str], Awaitable[Reply]]
"""Fetches one robots.txt address: polite, counted, bounded."""

_HOSTS_KEPT = 10_000
_NOTES_KEPT = 1000
_MAX_REDIRECTS = 5  # as RFC 9309 asks
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class RobotsCache:
    """Remembers the rules of the hosts asked last; two polls of one host never fetch them twice at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rules: OrderedDict[str, RobotsRules] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}

    async def rules(self, url: str, ask: Ask) -> RobotsRules:
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

    def barred(self, group: str) -> RobotsRules | None:
        """The rules that bar the whole group now; None where some of it may be asked, or nothing is known."""
        places = (f"https://{group}/robots.txt", f"http://{group}/robots.txt")
        known = [rules for rules in map(self._fresh, places) if rules is not None]
        if not known or not all(rules.barred for rules in known):
            return None
        return min(known, key=lambda rules: rules.expires_s)

    def barred_groups(self) -> set[str]:
        """The groups with a robots.txt that could not be had."""
        return {host_group(place) for place, rules in self._rules.items() if rules.barred}

    def notes(self) -> list[list[object]]:
        """Place, when it expires (Unix seconds), text, why barred, failures: of the hosts asked last."""
        offset_s = self._clock.now_s() - self._clock.elapsed_s()
        return [
            [place, rules.expires_s + offset_s, rules.text, rules.barred, rules.failures]
            for place, rules in list(self._rules.items())[-_NOTES_KEPT:]
            if not rules.refused and (rules.text or rules.rules is None)
        ]

    def recall(self, notes: Iterable[tuple[str, float, str, str, int]]) -> None:
        """What an earlier process knew; no longer than a day."""
        for place, expires_s, text, barred, failures in notes:
            left_s = min(expires_s - self._clock.now_s(), DAY_S)
            if left_s > 0 and place not in self._rules:
                self._keep(place, restore_rules(self._clock.elapsed_s() + left_s, text, barred, failures))

    def _fresh(self, place: str) -> RobotsRules | None:
        known = self._rules.get(place)
        return known if known is not None and self._clock.elapsed_s() < known.expires_s else None

    def _keep(self, place: str, rules: RobotsRules) -> None:
        self._rules[place] = rules
        self._rules.move_to_end(place)
        while len(self._rules) > _HOSTS_KEPT:
            self._rules.popitem(last=False)

    async def _fetch(self, place: str, ask: Ask) -> Reply:
        reply = Reply()
        for _ in range(_MAX_REDIRECTS + 1):
            reply = await ask(place)
            target = (
                resolve_link(place, reply.headers.get("location", "")) if reply.status in _REDIRECTS else None
            )
            if target is None:
                return reply
            place = target
        return Reply(404)  # more redirects than RFC 9309 asks to follow: as if there were none
