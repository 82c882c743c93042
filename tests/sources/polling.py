"""What the tests of sources share: sources for loopback, leases, a clock that stands still."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from afresh.sources.context import SourceContext
from afresh.sources.http.aiohttp_fetcher import AiohttpFetcher
from afresh.sources.http.settings import HttpSettings
from afresh.sources.http.source import HttpSource
from afresh.sources.http.trust import HostTrust
from afresh.sources.registry import BUILT_IN
from afresh.sources.settings import read_settings
from afresh.sources.source import Source
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease

QUICK = {
    "name": "web",
    "allow_private": True,
    "delay": 0,
    "first_rest": "0.001s",
    "longest_rest": "0.001s",
    "connect_timeout": "60s",
    "idle_timeout": "60s",
    "timeout": "60s",
    "max_size": "4MB",
}


class SetClock:
    """A clock that goes only when told to, or when someone sleeps by it."""

    def __init__(self, now_s: float = 1e9) -> None:
        self.time_s = now_s
        self.slept: list[float] = []

    def now_s(self) -> float:
        return self.time_s

    def elapsed_s(self) -> float:
        return self.time_s

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time_s += seconds


def quick_settings(**changes: Any) -> HttpSettings:
    """Settings for loopback, with time-outs that a busy machine keeps too."""
    return read_settings(HttpSettings, QUICK | changes)


def quick_source(context: SourceContext | None = None, **changes: Any) -> HttpSource:
    """A source for loopback, which never draws a poll as a check of validators."""
    settings = quick_settings(**changes)
    source = HttpSource(
        settings, context or SourceContext(), AiohttpFetcher(allow_private=settings.allow_private)
    )
    source.trust = HostTrust(draw=lambda _lease: 1.0)
    return source


def lease_of(key: str, **changes: Any) -> Lease:
    """A lease on an item never polled."""
    return replace(Lease(item_id=1, key=key, source="web", group="g", token=1, until_s=1e12), **changes)


def lease_with_copy(lease: Lease, fetched: Fetched, polled_s: float = 1e9) -> Lease:
    """The lease that follows after a poll was committed."""
    if not fetched.is_successful:
        return lease
    found = fetched.normal_hash if fetched.kind == "content" else lease.content_hash
    return replace(lease, validators=fetched.validators, content_hash=found, polled_s=polled_s)


def make_source(table: Mapping[str, Any], context: SourceContext) -> Source:
    """The source that a table of settings describes."""
    kind = BUILT_IN[table["kind"]]
    return kind.build(read_settings(kind.settings, table), context)
