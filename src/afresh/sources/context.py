"""What a source receives from the program that runs it: a clock, the budget, secrets, the state of hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from afresh.sources.http.fetcher import Fetcher
from afresh.sources.http.politeness import HostRegistry
from afresh.sources.http.requests_under_way import RequestsUnderWay
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.sources.secrets import Resolver, Secret
from afresh.values.clock import Clock, SystemClock

Admit: TypeAlias = Callable[[str], Awaitable[None]]
"""A function that a source awaits before every request to a group; it returns when the budget allows one."""

ReportCost: TypeAlias = Callable[[int, float], None]
"""A function that a source calls after each request, with the bytes received and the seconds it took."""

Sleep: TypeAlias = Callable[[float], Awaitable[None]]

NewFetcher: TypeAlias = Callable[[bool, Secret | None, Clock], Fetcher]
"""A function (allow_private, proxy, clock) that builds a fetcher. The clock measures durations."""


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
    """Everything that a source may use from outside: time, budget, secrets, hosts, the network and processes.
    Code in ``sources`` uses no other clock, no environment variables and no globals. Sources with the same
    context share ``hosts``, so that together they observe the limits of one host, and ``parsers``, which a
    source joins while it is open. Requests wait for their replies in ``under_way``."""

    clock: Clock = field(default_factory=SystemClock)
    admit: Admit = admit_all
    admit_reading: Admit = admit_all  # for a reading of change counters, which no debt of the budget delays
    cost: ReportCost = lambda received, seconds: None  # noqa: ARG005 (they are ignored)
    sleep: Sleep = asyncio.sleep
    resolver: Resolver = no_secrets
    hosts: HostRegistry = field(default_factory=HostRegistry)
    new_fetcher: NewFetcher = network_fetcher
    parsers: ParserPool = field(default_factory=ParserPool)
    under_way: RequestsUnderWay = field(default_factory=lambda: RequestsUnderWay(SystemClock()))
