"""The groups (hosts) of a project: their items, the requests per second that each allows, and back-offs.

A group is listed once even if several sources have items in it. Together, these sources send no more requests
than the longest of their delays, the host's Crawl-delay, its learned pace and the group's cap allow.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import BACKOFFS, SOURCE_STATE
from afresh.sources.capabilities import GroupBackoff
from afresh.sources.http.pacing.pace import Pace
from afresh.sources.http.pacing.quota import UsedQuota
from afresh.sources.http.saved_hosts import crawl_delays, read_state
from afresh.sources.http.settings import HttpSettings
from afresh.stores.store import Store
from afresh.values.items import ItemCount


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """One group: the names of its sources, the number of its items, and the most requests per second that it
    allows. In a back-off, ``rests_until_s`` is its end and ``why`` its reason; otherwise −∞ and empty.
    ``pace_per_s`` is the learned pace in requests per second, ∞ if the group never asked for fewer. If the
    settings state a quota, ``quota_used`` of ``quota`` requests were sent in the period that ends at
    ``quota_until_s`` (−∞: none is under way)."""

    source: str
    group: str
    items: int
    most_per_s: float
    rests_until_s: float = -math.inf
    why: str = ""
    pace_per_s: float = math.inf
    quota: int = 0
    quota_used: int = 0
    quota_until_s: float = -math.inf


def group_statuses(
    store: Store, counts: Iterable[ItemCount], settings: Settings, now_s: float
) -> list[GroupStatus]:
    """Return the status of all groups that have active items."""
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for count in counts:
        if count.status == "active":
            sources = found[count.group]
            sources[count.source] = sources.get(count.source, 0) + count.items
    # If several sources back off from a host, the longest back-off counts: it comes last and replaces others.
    rests = {rest.group: rest for _, rest in reversed(read_backoffs(store, settings, now_s))}
    asked_s, paces = read_crawl_delays(store, settings), read_paces(store, settings)
    groups = []
    for group, sources in found.items():
        pace_per_s = paces.get(group, math.inf)
        most_per_s = min(_most_per_s(settings, source, group, asked_s.get(group, 0.0)) for source in sources)
        found_group = GroupStatus(
            ", ".join(sorted(sources)),
            group,
            sum(sources.values()),
            min(most_per_s, pace_per_s),
            pace_per_s=pace_per_s,
        )
        found_group = _with_quota(found_group, settings, list(sources), store, now_s)
        rest = rests.get(group)
        if rest is not None:
            why = rest.why or "asked to be left alone"
            found_group = replace(found_group, rests_until_s=rest.until_s, why=why)
        groups.append(found_group)
    return groups


def _with_quota(
    found: GroupStatus, settings: Settings, sources: Sequence[str], store: Store, now_s: float
) -> GroupStatus:
    """Return the status of a group with the strictest quota of its sources, if one has a quota."""
    for source in sources:
        table = settings.source(source)
        own = None if table is None else table.settings
        # The settings of sources of records have those of their requests as ``http``.
        http = own if isinstance(own, HttpSettings) else getattr(own, "http", None)
        rule = http.quota_rule if isinstance(http, HttpSettings) else None
        if rule is None or rule.requests / rule.period_s >= found.most_per_s:
            continue
        found = replace(found, quota=rule.requests, quota_used=0, most_per_s=rule.requests / rule.period_s)
        for backoff in unpack_backoffs(store.state.get(BACKOFFS + source)):
            is_its = backoff.group == found.group or http is not own
            if is_its and backoff.used is not None and backoff.used.until_s > now_s:
                used = backoff.used
                found = replace(found, quota_used=used.requests, quota_until_s=used.until_s)
    return found


def pack_backoffs(backoffs: Iterable[GroupBackoff]) -> bytes:
    return json.dumps([astuple(each) for each in backoffs]).encode()


def unpack_backoffs(packed: bytes | None) -> tuple[GroupBackoff, ...]:
    """Return the back-offs that ``pack_backoffs`` packed.

    >>> unpack_backoffs(b'[["a.test", 5.0, 2, "503"]]')
    (GroupBackoff(group='a.test', until_s=5.0, failures=2, why='503', pace=None, used=None),)
    """
    return tuple(map(_unpack_backoff, json.loads(packed))) if packed else ()


def _unpack_backoff(row: Sequence[Any]) -> GroupBackoff:
    group, until_s, failures, why, *more = row  # version 0.1.0 stored no pace
    pace, used = (*more, None, None)[:2]
    return GroupBackoff(
        group, until_s, failures, why, Pace(*pace) if pace else None, UsedQuota(*used) if used else None
    )


def read_backoffs(store: Store, settings: Settings, now_s: float) -> tuple[tuple[str, GroupBackoff], ...]:
    """Return tuples (source, back-off) of the back-offs that are not over, the longest first."""
    stored = [
        (table.settings.name, backoff)
        for table in settings.sources
        for backoff in unpack_backoffs(store.state.get(BACKOFFS + table.settings.name))
        if backoff.until_s > now_s
    ]
    return tuple(sorted(stored, key=lambda pair: -pair[1].until_s))


def read_paces(store: Store, settings: Settings) -> dict[str, float]:
    """Return the learned pace in requests per second by group, of the groups that have one. The items of a
    web API are one group, with the name of the source: it has the pace of the host."""
    found: dict[str, float] = {}
    for table in settings.sources:
        name = table.settings.name
        for backoff in unpack_backoffs(store.state.get(BACKOFFS + name)):
            if backoff.pace is not None:
                groups = {backoff.group, backoff.group if isinstance(table.settings, HttpSettings) else name}
                for group in groups:
                    found[group] = min(backoff.pace.per_s, found.get(group, math.inf))
    return found


def read_crawl_delays(store: Store, settings: Settings) -> dict[str, float]:
    """Return the Crawl-delay in seconds by host, from each robots.txt that a source has read and obeys."""
    found: dict[str, float] = {}
    for table in settings.sources:
        if isinstance(table.settings, HttpSettings) and table.settings.respect_robots:
            notes = read_state(store.state.get(SOURCE_STATE + table.settings.name) or b"")
            for host, delay_s in crawl_delays(notes).items():
                found[host] = max(delay_s, found.get(host, 0.0))
    return found


def _most_per_s(settings: Settings, source: str, group: str, asked_s: float) -> float:
    table = settings.source(source)
    if table is None:
        return 0.0
    delay_s = max(table.settings.delay_s or 0.0, asked_s)
    cap = settings.plan.caps.get(group, math.inf)
    return min(1.0 / delay_s if delay_s > 0 else math.inf, cap)
