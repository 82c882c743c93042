"""What a source needs from whoever runs it: the time, leave to ask, secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from afresh.sources.secret import Resolver
from afresh.values.clock import Clock, SystemClock

Admit: TypeAlias = Callable[[str], Awaitable[None]]
"""Awaited with the group before every single request; returns when the budget allows one more."""

Sleep: TypeAlias = Callable[[float], Awaitable[None]]


async def admit_all(group: str) -> None:
    """No budget: every request may go."""
    del group


def no_secrets(name: str) -> str | None:
    """A resolver that knows no secret."""
    del name
    return None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The outside of a source, as arguments: nothing in ``sources`` reads a clock, environment or global."""

    clock: Clock = field(default_factory=SystemClock)
    admit: Admit = admit_all
    sleep: Sleep = asyncio.sleep
    resolver: Resolver = no_secrets
