"""When programs that fetch items themselves may send their requests, so that budget and host delays hold.

A lease reserves one request slot of the budget. Its request starts at its slot or later, at most as late as
the burst of the budget allows (``request_slots``), and not before its host may be asked: after the delay
since the last request, after a back-off, and within the cap of the host. These times are shared through the
store: the claim ``lent:HOST`` of a lender lasts until the host may be asked again. Other lenders leave the
host alone until then, and a running engine follows these claims (``StoreWatcher``).

An engine and lenders take turns at a host that both want. The next request to it can be lent ahead, because
the engine starts its own in the moment in which the host may be asked, before anybody else could ask for a
lease. After requests to a host were lent, it is the engine's turn for as many requests.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol
from uuid import uuid4

from afresh.engine.ratelimit.request_slots import Limits, slots_until
from afresh.engine.reporting.group_status import (
    pack_backoffs,
    read_backoffs,
    read_crawl_delays,
    read_paces,
    unpack_backoffs,
)
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import BACKOFFS, CAPPED_STARTS, LAST_LEFT
from afresh.sources.capabilities import GroupBackoff
from afresh.sources.http.fetcher import Reply
from afresh.sources.http.pacing.pace import spacing_s
from afresh.sources.http.pacing.quota import NOTHING_USED, count_request, remaining
from afresh.sources.http.politeness import HostState, Politeness, record_end, record_quota
from afresh.sources.http.statuses import host_condition
from afresh.stores.store import LENT_GROUPS, Store, lent_claim
from afresh.values.clock import Clock

FOLLOWED_S = 1.0
"""An engine in another process knows of a lent request, and keeps clear of it, after at most this time."""

ENGINE_AHEAD_S = 1.0
"""Beside an engine, which reserves its slots ahead, slots of the next second may be lent."""

_ROUNDING_S = 1e-6
_DELAYS_KEPT_S = 30.0  # the delays that robots.txt files ask for are read again after this time


class GroupStarts(Protocol):
    """When requests to groups may start. ``ready_s`` is the earliest start of the next request in Unix
    seconds, ``delay_s`` the seconds between two requests, and ``ahead_s`` how many seconds after its slot of
    the budget a request may start. ``is_reserved``: whether the next request is that of a running engine, so
    that none is lent now."""

    def ready_s(self, source: str, group: str) -> float: ...
    def delay_s(self, source: str, group: str) -> float: ...
    def ahead_s(self, source: str, group: str) -> float: ...
    def is_reserved(self, source: str, group: str) -> bool: ...


@dataclass(slots=True)
class LendingPlan:
    """The requests that are lent in one call. ``first_s`` is the first free slot of the budget, and at most
    ``most`` slots are used, of which the last is at most ``ahead_s`` seconds after ``now_s``. ``starts_s``
    has the start of each admitted request. Of each group that has a delay, ``begin_s`` and ``last_s`` have
    the starts of its first and last request, ``requests`` their number, and ``busy_s`` the time until which
    it is busy. ``next_s`` is the earliest time at which a group that was not admitted may be asked."""

    groups: GroupStarts
    limits: Limits
    first_s: float
    most: int
    now_s: float
    ahead_s: float = 0.0
    starts_s: list[float] = field(default_factory=list)
    begin_s: dict[str, float] = field(default_factory=dict)
    last_s: dict[str, float] = field(default_factory=dict)
    busy_s: dict[str, float] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    next_s: float = math.inf

    def without_limits(self, most: int) -> LendingPlan:
        """Return a plan for ``most`` requests that ignores the budget and the delays of groups."""
        return LendingPlan(_NoDelays(), Limits(), self.now_s, most, self.now_s)

    def begin_at(self, first_s: float) -> None:
        """Let ``first_s`` be the first slot, and use no slot that is later than ``ahead_s`` from now."""
        self.first_s = first_s
        slots = slots_until(first_s, self.now_s + self.ahead_s, self.limits.spacing_s)
        self.most = min(slots, self.most)

    def clear(self) -> None:
        """Forget the requests that were admitted, because other items will be picked."""
        self.starts_s, self.next_s = [], math.inf
        self.begin_s, self.last_s, self.busy_s, self.requests = {}, {}, {}, Counter()

    def admit(self, source: str, group: str) -> bool:
        """Admit one more request to ``group``, if budget and group allow it; return whether they do."""
        if len(self.starts_s) >= self.most:
            return False
        slot_s = self.first_s + len(self.starts_s) * self.limits.spacing_s
        ready_s = self.busy_s[group] if group in self.busy_s else self.groups.ready_s(source, group)
        start_s = max(self.now_s, slot_s, ready_s)
        latest_s = max(self.now_s, slot_s) + self.groups.ahead_s(source, group)
        latest_s = max(latest_s, slot_s + self.limits.covered_s) + _ROUNDING_S
        is_reserved = group not in self.busy_s and self.groups.is_reserved(source, group)
        if start_s > latest_s or is_reserved:
            self.next_s = min(self.next_s, start_s)
            return False
        self.starts_s.append(start_s)
        delay_s = self.groups.delay_s(source, group)
        if delay_s > 0:
            self.begin_s.setdefault(group, start_s)
            self.last_s[group], self.busy_s[group] = start_s, start_s + delay_s
            self.requests[group] += 1
        return True


class _NoDelays:
    """``GroupStarts`` of groups that may be asked at any time."""

    def ready_s(self, _source: str, _group: str) -> float:
        return -math.inf

    def delay_s(self, _source: str, _group: str) -> float:
        return 0.0

    def ahead_s(self, _source: str, _group: str) -> float:
        return 0.0

    def is_reserved(self, _source: str, _group: str) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class StoredGroups:
    """``GroupStarts`` as far as the store knows them: ``busy_s`` has the times until which groups may not be
    asked, and ``asked_delays`` the seconds between requests that hosts ask for (Crawl-delay) or that were
    learned. ``engine_groups`` are those to which a running engine may send requests at any time, and it is
    the engine's turn at the groups ``reserved``. At
    ``left_s`` the last engine stopped, which may have sent requests to any group until then."""

    settings: Settings
    now_s: float
    busy_s: Mapping[str, float]
    engine_groups: frozenset[str]
    reserved: frozenset[str]
    left_s: float
    asked_delays: Mapping[str, float]

    def ready_s(self, source: str, group: str) -> float:
        ready_s = max(self.now_s + self.ahead_s(source, group), self.left_s + self.delay_s(source, group))
        return max(self.busy_s.get(group, ready_s), ready_s)

    def delay_s(self, source: str, group: str) -> float:
        return group_delay_s(self.settings, source, group, self.asked_delays.get(group, 0.0))

    def ahead_s(self, source: str, group: str) -> float:
        return FOLLOWED_S + self.delay_s(source, group) if group in self.engine_groups else 0.0

    def is_reserved(self, _source: str, group: str) -> bool:
        return group in self.reserved


def group_delay_s(settings: Settings, source: str, group: str, asked_s: float = 0.0) -> float:
    """Return the least seconds between two requests to ``group``: the delay of the source, the one that the
    host asks for (``asked_s``), or the one that follows from its cap."""
    table = settings.source(source)
    own_s = 0.0 if table is None else table.settings.delay_s or 0.0
    cap = settings.plan.caps.get(group)
    return max(own_s, asked_s, 0.0 if cap is None else 1.0 / cap)


class LentRequests:
    """Knows when groups may be asked, books the requests that are lent, and records how they ended."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._worker = f"lender:{uuid4().hex}"
        self._turns_s: dict[str, float] = {}  # until when it is the engine's turn, after many lent requests
        self._delays: Mapping[str, float] = {}
        self._delays_read_s = -math.inf

    def read(self, settings: Settings, now_s: float) -> StoredGroups:
        """Return when the groups of all items may be asked."""
        busy_s, engines = dict[str, float](), set[str]()
        for claim in self._store.fleet.claims(now_s):
            kind, _, group = claim.name.partition(":")
            if kind == LENT_GROUPS:
                busy_s[group] = claim.until_s
            elif kind == "group":
                engines.add(group)
        reserved = engines & (busy_s.keys() | {group for group, end in self._turns_s.items() if end > now_s})
        for _, rest in read_backoffs(self._store, settings, now_s):
            busy_s[rest.group] = max(rest.until_s, busy_s.get(rest.group, now_s))
        for group, cap in settings.plan.caps.items():
            began = self._store.state.get(CAPPED_STARTS + group)
            if began:
                busy_s[group] = max(float(began) + 1.0 / cap, busy_s.get(group, now_s))
        left, delays = self._store.state.get(LAST_LEFT), dict(self._crawl_delays(settings))
        for group, per_s in read_paces(self._store, settings).items():
            delays[group] = max(1.0 / per_s, delays.get(group, 0.0))
        # If the clock was set back, the time at which the last engine stopped lies in the future.
        left_s = min(float(left), now_s) if left else -math.inf
        return StoredGroups(settings, now_s, busy_s, frozenset(engines), frozenset(reserved), left_s, delays)

    def _crawl_delays(self, settings: Settings) -> Mapping[str, float]:
        now_s = self._clock.elapsed_s()
        if now_s > self._delays_read_s + _DELAYS_KEPT_S:
            self._delays, self._delays_read_s = read_crawl_delays(self._store, settings), now_s
        return self._delays

    def book(self, plan: LendingPlan, caps: Collection[str]) -> set[str]:
        """Book the requests of ``plan``; return the groups that another lender has booked in this moment.
        ``caps`` are the groups that have a cap. Bookings that are over are removed."""
        now_s, by_time = plan.now_s, defaultdict[float, list[str]](list)
        self._end_bookings(plan)
        for group, until_s in plan.busy_s.items():
            by_time[until_s].append(group)
        taken = set()
        for until_s, groups in by_time.items():
            taken.update(self._take(groups, now_s, until_s))
        self._turns_s = {group: end_s for group, end_s in self._turns_s.items() if end_s > now_s}
        for group, until_s in plan.busy_s.items():
            if plan.requests[group] > 1:  # otherwise its claim in the store says it
                self._turns_s[group] = until_s + plan.last_s[group] - plan.begin_s[group]
        starts = {group: start_s for group, start_s in plan.last_s.items() if group in caps}
        if starts:
            named = {CAPPED_STARTS + group: repr(start_s).encode() for group, start_s in starts.items()}
            self._store.state.set(named)
        return plan.busy_s.keys() - taken

    def _end_bookings(self, plan: LendingPlan) -> None:
        """End the bookings that are over, and those of other lenders that the requests of ``plan`` follow:
        its own bookings begin with theirs."""
        fleet = self._store.fleet
        for claim in fleet.claims(-math.inf):
            kind, _, group = claim.name.partition(":")
            is_own = claim.worker == self._worker
            follows_s = plan.now_s if is_own else plan.begin_s.get(group, plan.now_s) + _ROUNDING_S
            if kind == LENT_GROUPS and claim.until_s <= follows_s:
                fleet.release([claim.name], claim.worker)

    def _take(self, groups: Iterable[str], now_s: float, until_s: float) -> list[str]:
        names = [lent_claim(group) for group in groups]
        held = self._store.fleet.take(names, self._worker, now_s, until_s - now_s)
        return [name.partition(":")[2] for name in held]

    def record_ends(self, settings: Settings, ends: Sequence[tuple[str, RequestEnd]], now_s: float) -> None:
        """Record how requests ended, each with the name of its source. After a failure the whole host rests,
        as in a run."""
        for source in dict.fromkeys(name for name, _ in ends):
            rules, name = rules_of(settings, source), BACKOFFS + source
            if rules is None:
                continue
            stored = {rest.group: rest for rest in unpack_backoffs(self._store.state.get(name))}
            before = dict(stored)
            for end in (end for each, end in ends if each == source):
                after = next_backoff(stored.pop(end.group, None), rules, end, now_s)
                if after is not None:
                    stored[end.group] = after
            for group, rest in stored.items():
                if rest != before.get(group) and rest.until_s > now_s:
                    self._take([group], now_s, rest.until_s)  # a running engine follows these claims
            if stored != before:
                self._store.state.set({name: pack_backoffs(stored.values())})


@dataclass(frozen=True, slots=True)
class RequestEnd:
    """How a lent request to ``group`` ended: the reply, the wait that it asks for, and what went wrong."""

    group: str
    reply: Reply
    retry_after_s: float | None
    problem: str


def rules_of(settings: Settings, source: str) -> Politeness | None:
    """Return the rules for the hosts of a source; None for a source without hosts."""
    table = settings.source(source)
    return None if table is None else getattr(table.settings, "politeness", None)


def next_backoff(
    before: GroupBackoff | None, rules: Politeness, end: RequestEnd, now_s: float
) -> GroupBackoff | None:
    """Return the back-off of a group after a request has ended, or None if it has none.

    >>> busy = RequestEnd("a.test", Reply(503), None, "503")
    >>> next_backoff(None, Politeness(first_rest_s=10.0), busy, 100.0)
    GroupBackoff(group='a.test', until_s=110.0, failures=1, why='503', pace=None, used=None)
    """
    host = HostState()
    if before is not None:
        host = HostState(next_s=before.until_s, failures=before.failures, why=before.why, pace=before.pace)
        # Only the program that sends the requests knows their pace; the learned one was refused.
        gap_s = spacing_s(before.pace) if before.pace else math.inf
        host = replace(host, gap_s=gap_s)
    condition = host_condition(end.reply)
    if condition == "busy" and end.retry_after_s is not None:
        condition = "limited"
    after = record_end(host, rules, now_s, condition, end.retry_after_s, end.problem)
    used = None if before is None else before.used
    if rules.quota is not None:
        used = count_request(used or NOTHING_USED, rules.quota, now_s)
        after = record_quota(after, rules, now_s, remaining(used, rules.quota, now_s))
    if after.next_s <= now_s and not after.failures and after.pace is None and used is None:
        return None
    return GroupBackoff(end.group, after.next_s, after.failures, after.why, after.pace, used)
