"""What a source receives from the program that runs it: clock, budget, secrets and the states of hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from afresh.sources.http.fetcher import Fetcher
from afresh.sources.http.politeness import HostRegistry
from afresh.sources.secrets import Resolver, Secret
from afresh.values.clock import Clock, SystemClock

Admit: TypeAlias = Callable[[str], Awaitable[None]]
"""Is awaited with the group before every request; returns when the budget allows the request."""

ReportCost: TypeAlias = Callable[[int, float], None]
"""Is called with the bytes and seconds of each finished request, before its poll has ended."""

Sleep: TypeAlias = Callable[[float], Awaitable[None]]

NewFetcher: TypeAlias = Callable[[bool, Secret | None, Clock], Fetcher]
"""Builds a fetcher from: whether private addresses are allowed, the proxy, and the clock for durations."""


async def admit_all(group: str) -> None:
    """Allow every request at once, as if the budget were unlimited."""
    del group


def no_secrets(name: str) -> str | None:
    del name
    return None


def network_fetcher(allow_private: bool, proxy: Secret | None, clock: Clock) -> Fetcher:
    from afresh.sources.http.aiohttp_fetcher import AiohttpFetcher

    return AiohttpFetcher(allow_private=allow_private, proxy=proxy, clock=clock)


@dataclass(frozen=True, slots=True)
class SourceContext:
    """The environment of a source. No code in ``sources`` reads a clock, environment variables or globals.
    Sources with the same context share the states of ``hosts``."""

    clock: Clock = field(default_factory=SystemClock)
    admit: Admit = admit_all
    cost: ReportCost = lambda received, seconds: None  # noqa: ARG005 (they are ignored)
    sleep: Sleep = asyncio.sleep
    resolver: Resolver = no_secrets
    hosts: HostRegistry = field(default_factory=HostRegistry)
    new_fetcher: NewFetcher = network_fetcher
