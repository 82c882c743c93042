"""What a source needs from whoever runs it: the time, leave to ask, secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from afresh.sources.http.hosts import HostRegistry
from afresh.sources.secrets import Resolver
from afresh.values.clock import Clock, SystemClock

Admit: TypeAlias = Callable[[str], Awaitable[None]]
"""Awaited with the group before every single request; returns when the budget allows one more."""

Cost: TypeAlias = Callable[[int, float], None]
"""Told the bytes and seconds of a request that is over, where more of the same poll may follow at once."""

Sleep: TypeAlias = Callable[[float], Awaitable[None]]


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


@dataclass(frozen=True, slots=True)
class SourceContext:
    """The outside of a source, as arguments: nothing in ``sources`` reads a clock, environment or global.

    Sources with the same surroundings share what is known of ``hosts``.
    """

    clock: Clock = field(default_factory=SystemClock)
    admit: Admit = admit_all
    cost: Cost = cost_nothing
    sleep: Sleep = asyncio.sleep
    resolver: Resolver = no_secrets
    hosts: HostRegistry = field(default_factory=HostRegistry)
