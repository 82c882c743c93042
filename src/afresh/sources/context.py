"""What a source needs from the program that runs it: clock, budget, secrets, and what is known of hosts."""

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
"""Awaited with the group before every single request; returns when the budget allows one more."""

ReportCost: TypeAlias = Callable[[int, float], None]
"""Receives the bytes and seconds of a finished request when more requests of the same poll may follow."""

Sleep: TypeAlias = Callable[[float], Awaitable[None]]

NewFetcher: TypeAlias = Callable[[bool, Secret | None, Clock], Fetcher]
"""Builds a fetcher: whether it may ask private addresses, its proxy, and the clock that measures requests."""


async def admit_all(group: str) -> None:
    """Allow every request: there is no budget."""
    del group


def no_secrets(name: str) -> str | None:
    del name
    return None


def network_fetcher(allow_private: bool, proxy: Secret | None, clock: Clock) -> Fetcher:
    from afresh.sources.http.aiohttp_fetcher import AiohttpFetcher

    return AiohttpFetcher(allow_private=allow_private, proxy=proxy, clock=clock)


@dataclass(frozen=True, slots=True)
class SourceContext:
    """The environment of a source, passed in: no code in ``sources`` reads a clock, environment or global.
    Sources with the same context share what is known of ``hosts``."""

    clock: Clock = field(default_factory=SystemClock)
    admit: Admit = admit_all
    cost: ReportCost = lambda received, seconds: None  # noqa: ARG005 (they are ignored)
    sleep: Sleep = asyncio.sleep
    resolver: Resolver = no_secrets
    hosts: HostRegistry = field(default_factory=HostRegistry)
    new_fetcher: NewFetcher = network_fetcher
