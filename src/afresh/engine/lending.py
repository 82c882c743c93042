"""Lends items to programs that fetch them themselves, within the budget, and takes back what they found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from afresh.engine.external_polls import ExternalPollsResult, record_external
from afresh.engine.external_scheduler import ExternalScheduler
from afresh.engine.lent_requests import LendingPlan
from afresh.engine.scheduler.content_settings import forget_after_content_change
from afresh.engine.settings.tables import Settings
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.errors import UsageError, one_of
from afresh.values.items import Item
from afresh.values.lease import Lease
from afresh.values.reported import Reported

LONGEST_LEASE_S = 7 * 86400.0
"""No lease is longer than a week, because nobody else polls the item until it ends."""

_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.05, 60.0  # how soon and how late a program should come again


@dataclass(frozen=True, slots=True)
class Lent:
    """The leases that were given, the best first, and after how many seconds more can be given. It is 0 if as
    many were given as were asked for."""

    leases: tuple[Lease, ...]
    retry_after_s: float


class LeaseKey(NamedTuple):
    """A lease that was given: the key of its item, and its token. ``source`` is needed if several sources
    have an item with this key."""

    item: str
    token: int
    source: str | None = None


class Lending:
    """Lends the items of one project. ``settings`` returns the settings as they are now. Any thread may call;
    the calls wait for each other."""

    def __init__(
        self, store: Store, clock: Clock, settings: Callable[[], Settings], external: ExternalScheduler
    ) -> None:
        self._store, self._clock, self._settings, self._external = store, clock, settings, external

    def find_due(
        self, most: int, source: str | None = None, *, within_budget: bool = True, ahead_s: float = 0.0
    ) -> list[Item]:
        """Return at most ``most`` items to poll now, or within the next ``ahead_s`` seconds, of ``source`` or
        of all sources, the best first, without leases. Without ``within_budget``, budget and delays of hosts
        are ignored."""
        with self._external.lock:
            now_s, settings = self._clock.now_s(), self._settings()
            plan = self._external.plan_lending(settings, most, now_s, ahead_s)
            if not within_budget:
                plan = plan.without_limits(most)
            names = self._open_sources(settings, source, now_s)
            return self._store.items.by_id(self._external.pick(settings, plan, names, -math.inf))

    def lend(self, most: int, duration_s: float, source: str | None = None, *, ahead_s: float = 0.0) -> Lent:
        """Lend at most ``most`` items of ``source``, or of all sources, for ``duration_s`` seconds, as many
        as budget and hosts allow now. With ``ahead_s``, also requests that may start only within so many
        seconds, at the times that their leases state. Each lease reserves one request of the budget, even if
        it is never returned."""
        _check_duration(duration_s)
        if not 0 <= ahead_s <= duration_s:
            raise UsageError(
                f"requests of the next {ahead_s:g} s: give 0 s or more, at most the lease's time"
            )
        with self._external.lock:
            now_s, settings, external = self._clock.now_s(), self._settings(), self._external
            self._follow_content_settings(settings, now_s)
            plan = external.plan_lending(settings, most, now_s, ahead_s)
            names = self._open_sources(settings, source, now_s)
            # Slots are reserved before items are picked, so that no other process plans with the same slots.
            window = external.reserve(settings, plan.most, now_s)
            if window is not None:
                plan.begin_at(window.first_s)
            ids = external.pick(settings, plan, names, now_s + duration_s)
            if window is not None:
                external.give_back(window, plan)
            starts_s = dict(zip(ids, plan.starts_s, strict=True))
            ids = self._book(settings, plan, ids)
            taken = {
                lease.item_id: replace(lease, not_before_s=starts_s[lease.item_id])
                for lease in self._store.leases.take(ids, now_s, duration_s)
            }
            external.put_back([item_id for item_id in starts_s if item_id not in taken])
            leases = tuple(taken[item_id] for item_id in ids if item_id in taken)
            return Lent(leases, 0.0 if len(leases) >= most else self._wait_s(settings, plan, now_s))

    def _book(self, settings: Settings, plan: LendingPlan, ids: list[int]) -> list[int]:
        """Book the requests with their hosts; return the items whose hosts no other process has booked."""
        if not plan.busy_s:
            return ids
        refused = self._external.requests.book(plan, settings.plan.caps.keys())
        if not refused:
            return ids
        groups = {item.id: item.group for item in self._store.items.by_id(ids)}
        return [item_id for item_id in ids if groups.get(item_id) not in refused]

    def _wait_s(self, settings: Settings, plan: LendingPlan, now_s: float) -> float:
        """Return after how many seconds more items can be lent, because the budget or a host allows it."""
        slot_s = self._external.next_slot_s(settings, now_s) - plan.ahead_s
        next_s = max(slot_s, plan.next_s) if math.isfinite(plan.next_s) else slot_s
        if next_s <= now_s:  # budget and hosts are free: no item is worth a poll yet
            next_s = now_s + 1.0
        return min(max(next_s - now_s, _SHORTEST_WAIT_S), _LONGEST_WAIT_S)

    def _open_sources(self, settings: Settings, source: str | None, now_s: float) -> set[str]:
        """Return the names of the sources whose items may be polled at this hour."""
        names = {count.source for count in self._store.items.counts()} - settings.closed_sources(now_s).keys()
        if source is None:
            return names
        return names & {one_of("source", source, [table.settings.name for table in settings.sources])}

    def extend(self, leases: Sequence[LeaseKey], duration_s: float) -> tuple[str, ...]:
        """Let these leases end ``duration_s`` seconds from now, unless they end later. Return the keys of the
        items whose lease is not the newest one, so that it could not be extended. Raise ``AmbiguousKeyError``
        if several sources have an item with a key that is given without a source."""
        _check_duration(duration_s)
        with self._external.lock:
            until_s, held = self._clock.now_s() + duration_s, self._held(leases)
            kept = set(self._store.leases.extend([each for each in held if each is not None], until_s))
            self._external.put_back(sorted(kept), until_s)
            ended = (each is None or each.item_id not in kept for each in held)
            return tuple(lease.item for lease, has_ended in zip(leases, ended, strict=True) if has_ended)

    def release(self, leases: Sequence[LeaseKey]) -> tuple[str, ...]:
        """End these leases without a poll, so that others can poll their items. The requests that they
        reserved stay spent. Return the keys of the items whose lease had ended before."""
        with self._external.lock:
            held = self._held(leases)
            newest = [lease for lease in held if lease is not None]
            self._store.leases.release(newest)
            self._external.put_back([lease.item_id for lease in newest])
            return tuple(lease.item for lease, found in zip(leases, held, strict=True) if found is None)

    def _held(self, leases: Sequence[LeaseKey]) -> list[Lease | None]:
        """Return each of ``leases`` as the store has it, or None if it is not the newest one of its item."""
        ids: dict[tuple[str, str | None], int] = {}
        for source in {lease.source for lease in leases}:
            keys = [lease.item for lease in leases if lease.source == source]
            ids |= {(key, source): item for key, item in self._store.items.ids(keys, source).items()}
        newest = {lease.item_id: lease for lease in self._store.leases.read(sorted(set(ids.values())))}
        found = [newest.get(ids.get((lease.item, lease.source), 0)) for lease in leases]
        return [
            each if each is not None and each.token == lease.token else None
            for lease, each in zip(leases, found, strict=True)
        ]

    def record(self, reported: Iterable[Reported], *, skip_invalid: bool = False) -> ExternalPollsResult:
        """Record polls that other programs made; see ``record_external``."""
        settings, now_s = self._settings(), self._clock.now_s()
        with self._external.lock:
            self._follow_content_settings(settings, now_s)
        return record_external(
            self._store, settings, self._external, reported, now_s, skip_invalid=skip_invalid
        )

    def _follow_content_settings(self, settings: Settings, now_s: float) -> None:
        """Forget what was learned of items whose source has other content settings than before."""
        sources = [table.settings for table in settings.sources]
        if forget_after_content_change(self._store, sources, now_s):
            self._external.forget()


def _check_duration(duration_s: float) -> None:
    if not 0 < duration_s <= LONGEST_LEASE_S:
        raise UsageError(f"a lease of {duration_s:g} s: give more than 0 s, and at most 7 days")
