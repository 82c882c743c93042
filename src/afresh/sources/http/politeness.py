"""Decide when the next request to a host may start. All functions are pure; the time is an argument.

By default, one request to a host runs at a time. Requests start at least a delay apart, and later if the host
asks for it (Crawl-delay, Retry-After) or fails. Each consecutive failure doubles the back-off of the whole
host, not only of the item that failed. One good response ends the back-off. A host that asks for fewer
requests gets them at a lower pace, which ``pacing.pace`` learns. Times are seconds of a monotonic clock.

All sources of an engine share one ``HostRegistry``. If several sources have pages on one host, the strictest
rules apply: the longest delay and the fewest requests at a time. The sources also share back-offs,
Crawl-delay, request slots and robots.txt."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from afresh.sources.http.pacing.pace import (
    NO_ANSWERS,
    AnswerCount,
    Pace,
    after_answer,
    fall,
    refused_pace,
    spacing_s,
)
from afresh.sources.http.pacing.quota import NOTHING_USED, QuotaRule, UsedQuota, count_request, remaining
from afresh.sources.http.pacing.quota_headers import RemainingQuota
from afresh.values.backoff import Backoff

if TYPE_CHECKING:
    from afresh.sources.http.robots import RobotsCache

HostCondition: TypeAlias = Literal["fine", "limited", "busy", "down"]
"""What a request showed about its host: it responded, asked for fewer requests (429, or 503 with
Retry-After), is overloaded (502, 503, 504), or was silent."""

_PRUNE_FROM = 10_000
_REST_REQUESTS = 10.0  # after a 429 without Retry-After the host rests for the time of so many requests


@dataclass(frozen=True, slots=True)
class Politeness:
    """The rules for requests to a host. ``delay_s`` is the shortest time from the start of one request to the
    start of the next. At most ``concurrency`` requests run at a time. ``first_rest_s`` is the first back-off,
    ``longest_rest_s`` the longest. ``quota`` limits the requests in a period."""

    delay_s: float = 1.0
    concurrency: int = 1
    first_rest_s: float = 10.0
    longest_rest_s: float = 86400.0
    quota: QuotaRule | None = None


@dataclass(frozen=True, slots=True)
class HostState:
    """What is known about the requests to one host. The default is that of a host that was never asked.

    ``next_s`` is the end of the back-off, ``why`` its reason. ``in_flight`` is the number of running
    requests, ``failures`` the number of consecutive failures. ``asked_s`` is the time at which the last
    request started, ``gap_s`` the time between the last two starts. ``pace`` is the learned pace, None if the
    host has not asked for fewer requests; it fell last at ``fell_s``. ``answered`` counts good answers.
    Until ``quota_until_s``, requests are ``quota_gap_s`` apart, because the host allows no more of them.
    ``used`` counts requests if the rules have a quota."""

    next_s: float = float("-inf")
    in_flight: int = 0
    failures: int = 0
    crawl_delay_s: float = 0.0
    why: str = ""
    asked_s: float = float("-inf")
    gap_s: float = float("inf")
    pace: Pace | None = None
    fell_s: float = float("-inf")
    answered: AnswerCount = NO_ANSWERS
    quota_gap_s: float = 0.0
    quota_until_s: float = float("-inf")
    used: UsedQuota = NOTHING_USED


def ready_s(host: HostState, rules: Politeness) -> float:
    """Return when the next request to a host may start, in seconds of a monotonic clock. The time is infinite
    while as many requests as allowed are running.

    >>> asked, rules = record_start(HostState(), 100.0), Politeness(delay_s=2.0)
    >>> ready_s(asked, rules), ready_s(record_end(asked, rules, 100.5, "fine"), rules)
    (inf, 102.0)
    """
    if host.in_flight >= rules.concurrency:
        return float("inf")
    learned_s = max(host.crawl_delay_s, spacing_s(host.pace))
    delay_s = max(rules.delay_s, min(learned_s, rules.longest_rest_s))
    quota_s = min(host.asked_s + host.quota_gap_s, host.quota_until_s)
    return max(host.next_s, host.asked_s + delay_s, quota_s)


def strictest_rules(first: Politeness, *others: Politeness) -> Politeness:
    """Return rules that keep every limit of the given rules.

    >>> strictest_rules(Politeness(delay_s=1.0), Politeness(delay_s=3.0, longest_rest_s=60.0))
    Politeness(delay_s=3.0, concurrency=1, first_rest_s=10.0, longest_rest_s=86400.0, quota=None)
    """
    every = (first, *others)
    quotas = [each.quota for each in every if each.quota is not None]
    return Politeness(
        max(each.delay_s for each in every),
        min(each.concurrency for each in every),
        max(each.first_rest_s for each in every),
        max(each.longest_rest_s for each in every),
        min(quotas, key=lambda quota: quota.requests / quota.period_s, default=None),
    )


def record_start(host: HostState, now_s: float) -> HostState:
    asked_s = max(host.asked_s, now_s)
    return replace(host, in_flight=host.in_flight + 1, asked_s=asked_s, gap_s=asked_s - host.asked_s)


def record_end(
    host: HostState,
    rules: Politeness,
    now_s: float,
    condition: HostCondition,
    retry_after_s: float | None = None,
    why: str = "",
    *,
    started_s: float | None = None,
) -> HostState:
    """Return the state of the host after a request has ended with ``condition`` at the time ``now_s``. The
    back-off is the longer of first_rest_s·2^(failures−1) and ``retry_after_s`` (the Retry-After header), and
    at most longest_rest_s. ``why`` describes a failure. The request began at ``started_s``; if that is not
    known, it was the last one.

    >>> host, rules = HostState(in_flight=1), Politeness(first_rest_s=10)
    >>> record_end(host, rules, 0.0, "busy").next_s, record_end(host, rules, 0.0, "busy", 60.0).next_s
    (10.0, 60.0)

    A host that asks for fewer requests rests for exactly the time that it states, and gets fewer then:

    >>> limited = record_end(record_start(HostState(asked_s=0.0), 0.5), rules, 0.5, "limited", 2.0)
    >>> limited.next_s, limited.pace
    (2.5, Pace(per_s=0.85, refused_per_s=1.0, answers=0))
    """
    host = replace(host, in_flight=max(0, host.in_flight - 1))
    started_s = host.asked_s if started_s is None else started_s
    if condition == "fine":
        return _record_answer(host, rules, now_s, retry_after_s or 0.0, why, is_new=started_s >= host.fell_s)
    if condition == "limited":
        return _record_refusal(host, rules, now_s, retry_after_s, why, is_new=started_s >= host.fell_s)
    failures = host.failures + 1
    wait_s = max(retry_after_s or 0.0, Backoff(rules.first_rest_s, math.inf).wait_s(failures))
    return replace(host, next_s=_end_of_rest_s(host, rules, now_s, wait_s), failures=failures, why=why)


def record_quota(host: HostState, rules: Politeness, now_s: float, quota: RemainingQuota) -> HostState:
    """Return the state of the host after a reply that says how many requests it still allows. They are spread
    over the time until the quota is reset; if none remains, the host rests until then.

    >>> quota, rules = RemainingQuota(99, 3600.0), Politeness()
    >>> ready_s(record_quota(HostState(asked_s=0.0), rules, 0.0, quota), rules)
    36.0
    >>> record_quota(HostState(), rules, 0.0, RemainingQuota(0, 60.0)).why
    'its quota of requests is used up'
    """
    reset_s = min(quota.reset_s, rules.longest_rest_s)
    host = replace(host, quota_gap_s=quota.spacing_s, quota_until_s=now_s + reset_s)
    if quota.requests >= 1 or reset_s <= 0:
        return host
    why = host.why or "its quota of requests is used up"
    return replace(host, next_s=_end_of_rest_s(host, rules, now_s, reset_s), why=why)


def count_start(host: HostState, rules: Politeness, now_s: float, unix_s: float) -> HostState:
    """Count a request that starts, if the rules have a quota. ``unix_s`` is the same time as ``now_s``."""
    if rules.quota is None:
        return host
    host = replace(host, used=count_request(host.used, rules.quota, unix_s))
    return record_quota(host, rules, now_s, remaining(host.used, rules.quota, unix_s))


def strictest_quota(
    host: HostState, rules: Politeness, told: RemainingQuota | None, unix_s: float
) -> RemainingQuota | None:
    """Return the stricter one of the quota that the host has told and that of the rules."""
    if rules.quota is None or host.used.until_s <= unix_s:
        return told
    own = remaining(host.used, rules.quota, unix_s)
    return own if told is None or own.spacing_s > told.spacing_s else told


def _record_answer(
    host: HostState, rules: Politeness, now_s: float, wait_s: float, why: str, *, is_new: bool
) -> HostState:
    return replace(
        host,
        next_s=_end_of_rest_s(host, rules, now_s, wait_s),
        failures=0,
        why=why if wait_s > 0 else "",
        pace=after_answer(host.pace, host.gap_s) if is_new else host.pace,
        answered=host.answered.add(now_s),
    )


def _record_refusal(
    host: HostState, rules: Politeness, now_s: float, asked_for_s: float | None, why: str, *, is_new: bool
) -> HostState:
    """Record that the host asks for fewer requests. ``asked_for_s`` is its Retry-After. Without one it rests
    for the time of ten requests at the refused pace, at most first_rest_s. Refusals without a good answer in
    between double that rest, and the pace falls only once."""
    if not is_new:  # the request was under way when the pace fell: both refusals are about the same requests
        return replace(host, next_s=_end_of_rest_s(host, rules, now_s, asked_for_s or 0.0), why=why)
    pace, failures = host.pace, host.failures + 1
    if host.failures == 0:
        refused_per_s = refused_pace(pace, host.answered, host.gap_s, now_s)
        pace = pace if refused_per_s is None else fall(pace, refused_per_s)
    first_s = rules.first_rest_s
    if pace is not None:
        first_s = min(first_s, _REST_REQUESTS / pace.refused_per_s)
    doublings = failures if asked_for_s is None else failures - 1
    wait_s = Backoff(first_s, math.inf).wait_s(doublings) if doublings else 0.0
    wait_s = max(asked_for_s or 0.0, wait_s)
    next_s = _end_of_rest_s(host, rules, now_s, wait_s)
    return replace(host, next_s=next_s, failures=failures, why=why, pace=pace, fell_s=now_s)


def _end_of_rest_s(host: HostState, rules: Politeness, now_s: float, wait_s: float) -> float:
    return max(host.next_s, now_s + min(max(wait_s, 0.0), rules.longest_rest_s))


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
        """Forget hosts that may be asked at once, whose last request did not fail, and that have no learned
        pace, to limit the memory."""
        if len(self.states) <= self._prune_at:
            return
        self.states = {
            group: host
            for group, host in self.states.items()
            if host.failures
            or host.pace is not None
            or host.used.requests
            or group in self.queues
            or ready_s(host, self.politeness(group, Politeness())) > now_s
        }
        self._sources = {group: names for group, names in self._sources.items() if group in self.states}
        self._prune_at = max(_PRUNE_FROM, 2 * len(self.states))
