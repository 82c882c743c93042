"""What a source needs from whoever runs it: the time, leave to ask, secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from afresh.sources.fetcher import Fetcher
from afresh.sources.hosts import Hosts
from afresh.sources.secret import Resolver, Secret
from afresh.values.clock import Clock, SystemClock

Admit: TypeAlias = Callable[[str], Awaitable[None]]
"""Awaited with the group before every single request; returns when the budget allows one more."""

Cost: TypeAlias = Callable[[int, float], None]
"""Told the bytes and seconds of a request that is over, where more of the same poll may follow at once."""

Sleep: TypeAlias = Callable[[float], Awaitable[None]]

NewFetcher: TypeAlias = Callable[[bool, Secret | None, Clock], Fetcher]
"""Makes what sends requests: may it ask private addresses, through which proxy, measured by which clock."""


async def admit_all(group: str) -> None:
    """No budget: every request may go."""
    del group


def cost_nothing(received: int, seconds: float) -> None:
    """Nothing is paid for."""
    del received, seconds


def no_secrets(name: str) -> str | None:
    """A resolver that knows no secret."""
    del name
    return None


def network_fetcher(allow_private: bool, proxy: Secret | None, clock: Clock) -> Fetcher:
    """A fetcher that asks over the network."""
    from afresh.sources.aiohttp_fetcher import AiohttpFetcher

    return AiohttpFetcher(allow_private=allow_private, proxy=proxy, clock=clock)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The outside of a source, as arguments: nothing in ``sources`` reads a clock, environment or global.

    Sources with the same surroundings share what is known of ``hosts``.
    """

    clock: Clock = field(default_factory=SystemClock)
    admit: Admit = admit_all
    cost: Cost = cost_nothing
    sleep: Sleep = asyncio.sleep
    resolver: Resolver = no_secrets
    hosts: Hosts = field(default_factory=Hosts)
    new_fetcher: NewFetcher = network_fetcher
