"""What the robots.txt of a host allows (RFC 9309): the rules in a reply, and a cache of rules by host.

A missing file (4xx) allows everything (§2.3.1.3). A file that cannot be read (5xx, no reply, and 429, which
means "not now") forbids everything (§2.3.1.4), unless older rules are known, which then stay valid. Such a
file is requested again after a minute; this wait doubles with each failure, up to a day. If no reply came at
all, the back-off of the host decides instead, and nothing is saved: a server that was down says nothing about
its pages, and whoever has started it again does not want to wait for a minute. A reply that is not
text (a server may send an image for every address) contains no rules. Only the first 512,000 bytes of a file
are read, and of these only the groups for this program and for all."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeAlias

from protego import Protego

from afresh.sources.http.fetcher import Reply
from afresh.sources.http.robots_groups import own_groups
from afresh.sources.http.statuses import REDIRECTS
from afresh.sources.http.urls import host_group, resolve_link, without_dots
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.sources.text_decoding import decode
from afresh.values.backoff import Backoff
from afresh.values.clock import Clock
from afresh.values.errors import UsageError
from afresh.values.formatting import format_moment

RobotsNote: TypeAlias = tuple[str, float, str, str, int]
"""A saved robots.txt: (address, expiry in Unix seconds, text, why it is unreadable, number of failures)."""

FetchFile: TypeAlias = Callable[[str], Awaitable[Reply]]
"""A function that fetches the robots.txt at an address, within the limits of budget, host and size."""

AGENT = "afresh"  # the name of this program in robots.txt
MAX_BYTES = 512_000  # RFC 9309 requires at least 500 KiB; the rest of a longer file is not read
DAY_S = 86400.0
HOUR_S = 3600.0
_RETRIES = Backoff(first_s=60.0, longest_s=DAY_S, most_steps=10)
_LONGEST_SAVED = 32_768  # characters; a longer file is fetched again after a restart
_MOST_HOSTS = 10_000
_MOST_WILDCARDS = 5_000  # each rule with wildcards is compared with the address of every poll
_MOST_SAVED = 1000
_MOST_SAVED_CHARACTERS = 4_000_000  # in all: they are parsed when a process starts
_MAX_REDIRECTS = 5  # as RFC 9309 asks
_MAX_AGE = re.compile(r"max-age\s*=\s*(\d{1,9})", re.IGNORECASE)
_ROOT = re.compile(r"https?://[^/?#]+", re.IGNORECASE)
_TEXT_TYPES = ("text/", "application/octet-stream")


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """The rules in the robots.txt of a host, valid until ``expires_s`` (seconds of a monotonic clock).

    If ``unreadable`` is not empty, it is the reason why no page may be requested now. If ``refused`` is not
    empty, it is the reason why no page may ever be requested (the address is private). ``failures`` counts
    consecutive failures to read the file. ``text`` is the content of the file, or empty if it is too long to
    be saved. ``is_unanswered``: no reply came. ``is_loaded``: an earlier process read the file."""

    expires_s: float
    rules: Protego | None = field(default=None, repr=False)
    unreadable: str = ""
    refused: str = ""
    failures: int = 0
    text: str = field(default="", repr=False)
    is_unanswered: bool = False
    is_loaded: bool = False

    def problem(self, now_s: float, unix_s: float) -> str:
        """Return why the file is unreadable. ``unix_s`` is the same time as ``now_s``. If an earlier process
        read it, the words say so, because no request is sent.

        >>> robots = RobotsRules(70.0, unreadable="robots.txt cannot be read (status 503)", failures=1)
        >>> robots.problem(10.0, 1000.0)
        'robots.txt cannot be read (status 503)'
        >>> replace(robots, is_loaded=True).problem(40.0, 1030.0).partition("); ")[2]
        'remembered since 1970-01-01 00:16:40 UTC, asked for again from 1970-01-01 00:17:40 UTC on'
        """
        if not self.is_loaded:
            return self.unreadable
        again_s = unix_s + self.expires_s - now_s
        since = format_moment(again_s - _RETRIES.wait_s(self.failures)) if self.failures else "an earlier run"
        return (
            f"{self.unreadable}; remembered since {since}, asked for again from {format_moment(again_s)} on"
        )

    def allows(self, url: str, agent: str) -> bool:
        """Return whether ``agent`` may fetch ``url``, however its path is written.

        >>> robots = read_file(b"User-agent: *\\nDisallow: /private", {}, 0.0)
        >>> robots.allows("http://a.test/private/1", "afresh"), robots.allows("http://a.test/", "afresh")
        (False, True)
        >>> robots.allows("http://a.test/x/%2e%2e/private/1", "afresh")
        False
        """
        if self.unreadable or self.refused:
            return False
        return self.rules is None or self.rules.can_fetch(without_dots(url), agent)

    def crawl_delay_s(self, agent: str) -> float:
        """Return the seconds between requests that the host asks of ``agent``; 0 if it asks for no delay."""
        delay = self.rules.crawl_delay(agent) if self.rules else None
        rate = self.rules.request_rate(agent) if self.rules else None
        spacing = rate.seconds / rate.requests if rate and rate.requests else 0.0
        return max(delay or 0.0, spacing)

    @property
    def sitemaps(self) -> tuple[str, ...]:
        return tuple(self.rules.sitemaps) if self.rules else ()


def robots_url(url: str) -> str:
    """Return the address of the robots.txt that applies to ``url``.

    >>> robots_url("https://a.test:8443/x?y")
    'https://a.test:8443/robots.txt'
    """
    root = _ROOT.match(url)
    if root is None:
        raise UsageError(f"{url[:100]!r} is not an http or https address")
    return f"{root[0]}/robots.txt"


def read_file(body: bytes, headers: Mapping[str, str], now_s: float) -> RobotsRules:
    """Return the rules in the body of a successful reply."""
    text = decode(body[:MAX_BYTES], headers.get("content-type", ""))
    age = _MAX_AGE.search(headers.get("cache-control", ""))
    lifetime_s = min(max(float(age[1]), HOUR_S), DAY_S) if age else DAY_S
    return restore_rules(now_s + lifetime_s, text, "", 0)


def rules_without_file(reply: Reply, now_s: float, before: RobotsRules | None) -> RobotsRules | None:
    """Return the rules for a reply that has no rules in it, or None if it may have some. If the host cannot
    serve the file now, the rules ``before`` stay valid."""
    status = reply.status
    if reply.trouble is not None or status is None or status >= 500 or status == 429:
        return _unreadable(reply, now_s, before)
    if not 200 <= status < 300 or not _is_text(reply):
        return RobotsRules(now_s + DAY_S)
    return None


def restore_rules(expires_s: float, text: str, unreadable: str, failures: int) -> RobotsRules:
    """Return the rules from the text of a robots.txt. An empty ``text`` contains no rules.

    >>> restore_rules(9.0, "User-agent: *\\nDisallow: /x", "", 0).allows("http://a.test/x", "afresh")
    False
    """
    own = own_groups(text, AGENT)
    if own.count("*") + own.count("$") > _MOST_WILDCARDS:  # also those that are no wildcards, which are few
        unreadable = f"robots.txt has more than {_MOST_WILDCARDS:,} wildcards: too many to follow"
        return RobotsRules(expires_s, unreadable=unreadable, failures=failures)
    rules = Protego.parse(own) if text else None
    saved = text if len(text) <= _LONGEST_SAVED else ""
    return RobotsRules(expires_s, rules, unreadable, failures=failures, text=saved)


def _unreadable(reply: Reply, now_s: float, before: RobotsRules | None) -> RobotsRules:
    failures = before.failures + 1 if before else 1
    wait_s = _RETRIES.wait_s(failures)
    if before is not None and not (before.unreadable or before.refused):
        return RobotsRules(now_s + wait_s, before.rules, failures=failures, text=before.text)
    if reply.trouble == "private":
        return RobotsRules(now_s + wait_s, refused=reply.problem, failures=failures)
    why = reply.problem or f"status {reply.status}"
    words = f"robots.txt cannot be read ({why})"
    lost = reply.host_is_down
    return RobotsRules(now_s + wait_s, unreadable=words, failures=failures, is_unanswered=lost)


def _is_text(reply: Reply) -> bool:
    kind = reply.headers.get("content-type", "text/plain").strip().lower()
    # UTF-16 text contains zero bytes as well, but begins with a byte-order mark.
    binary = b"\x00" in reply.body[:1024] and not reply.body.startswith((b"\xff\xfe", b"\xfe\xff"))
    return kind.startswith(_TEXT_TYPES) and not binary


class RobotsCache:
    """The rules of the hosts that were asked last. ``fetching`` has a lock for each file that is being
    fetched, so that two polls of one host do not fetch its robots.txt at the same time."""

    def __init__(self, clock: Clock, parsers: ParserPool) -> None:
        self._clock, self._parsers = clock, parsers
        self._rules: OrderedDict[str, RobotsRules] = OrderedDict()
        self.fetching: dict[str, asyncio.Lock] = {}

    async def rules(
        self, url: str, fetch: FetchFile, backoff_s: Callable[[], float] = lambda: 0.0
    ) -> RobotsRules:
        """Return the rules for ``url`` from the cache. If it has none, call ``fetch`` to get the file. If
        there is no reply, the file is not fetched again for ``backoff_s()``, the back-off of its host."""
        place = robots_url(url)
        known = self._valid(place)
        if known is not None:
            return known
        lock = self.fetching.setdefault(place, asyncio.Lock())
        try:
            async with lock:
                # Another poll may have fetched the file while this one waited for the lock.
                known = self._valid(place)
                if known is None:
                    reply = await _follow_redirects(place, fetch)
                    known = await self._read(place, reply)
                    if known.is_unanswered and (rest_s := backoff_s()) > 0:
                        until_s = min(known.expires_s, self._clock.elapsed_s() + rest_s)
                        known = replace(known, expires_s=until_s)
                    self._add(place, known)
                return known
        finally:
            if not lock.locked():
                self.fetching.pop(place, None)

    async def _read(self, place: str, reply: Reply) -> RobotsRules:
        """Return the rules in the reply of a place. A long file does not stop the event loop."""
        before, now_s = self._rules.get(place), self._clock.elapsed_s()
        known = rules_without_file(reply, now_s, before)
        if known is not None:
            return known
        try:
            return await self._parsers.parse(
                read_file, reply.body[:MAX_BYTES], dict(reply.headers), now_s, party=host_group(place)
            )
        except ParseBudgetError as error:
            return _unreadable(replace(reply, problem=str(error)), now_s, before)

    def unreadable_rules(self, group: str) -> RobotsRules | None:
        """Return the rules of a host if they forbid all pages because robots.txt is unreadable, else None."""
        places = (f"https://{group}/robots.txt", f"http://{group}/robots.txt")
        known = [rules for rules in map(self._valid, places) if rules is not None]
        if not known or not all(rules.unreadable for rules in known):
            return None
        return min(known, key=lambda rules: rules.expires_s)

    def unreadable_groups(self) -> set[str]:
        return {host_group(place) for place, rules in self._rules.items() if rules.unreadable}

    def save(self) -> list[RobotsNote]:
        """Return the files that were read last, as far as they are not too large together."""
        offset_s = self._clock.now_s() - self._clock.elapsed_s()
        notes: list[RobotsNote] = []
        left = _MOST_SAVED_CHARACTERS
        for place, rules in islice(reversed(self._rules.items()), _MOST_SAVED):
            is_told = not (rules.refused or rules.is_unanswered)
            if is_told and (rules.text or rules.rules is None) and len(rules.text) <= left:
                left -= len(rules.text)
                notes.append(
                    (place, rules.expires_s + offset_s, rules.text, rules.unreadable, rules.failures)
                )
        return notes[::-1]

    def load(self, notes: Iterable[RobotsNote]) -> None:
        """Load the rules that an earlier process saved. They are valid for at most a day."""
        for place, expires_s, text, unreadable, failures in notes:
            left_s = min(expires_s - self._clock.now_s(), DAY_S)
            if left_s > 0 and place not in self._rules:
                rules = restore_rules(self._clock.elapsed_s() + left_s, text, unreadable, failures)
                self._add(place, replace(rules, is_loaded=True))

    def _valid(self, place: str) -> RobotsRules | None:
        known = self._rules.get(place)
        return known if known is not None and self._clock.elapsed_s() < known.expires_s else None

    def _add(self, place: str, rules: RobotsRules) -> None:
        self._rules[place] = rules
        self._rules.move_to_end(place)
        while len(self._rules) > _MOST_HOSTS:
            self._rules.popitem(last=False)


async def _follow_redirects(place: str, fetch: FetchFile) -> Reply:
    for _ in range(_MAX_REDIRECTS + 1):
        reply = await fetch(place)
        if reply.status not in REDIRECTS:
            return reply
        target = resolve_link(place, reply.headers.get("location", ""))
        if target is None:
            return reply
        place = target
    return Reply(404)  # RFC 9309: after five redirects the file may be treated as missing
