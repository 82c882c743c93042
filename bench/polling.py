"""Polls per second of the HTTP source and of its fetcher, conditional GETs against a loopback site."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvloop

from afresh.sources.context import SourceContext
from afresh.sources.http.aiohttp_fetcher import AiohttpFetcher
from afresh.sources.http.fetcher import Request
from afresh.sources.http.settings import HttpSettings
from afresh.sources.http.source import HttpSource
from afresh.sources.settings import read_settings
from afresh.values.lease import Lease
from bench.fast_site import BODY, ETAG
from bench.rows import Row

AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Speed:
    """Polls per second, by wall-clock time and by the processor time of this process."""

    per_second: float
    cpu_seconds: float


def rows(*, quick: bool) -> list[Row]:
    """Measure the fetcher alone, and the source with politeness, robots.txt and change detection."""
    count = 500 if quick else 20_000
    with site() as port:
        fetcher = uvloop.run(fetcher_speed(port, count))
        same = uvloop.run(source_speed(port, count, conditional=True))
        whole = uvloop.run(source_speed(port, count, conditional=False))
    found = []
    for name, speed in (("fetcher, 304", fetcher), ("source, 304", same), ("source, 2 kB page", whole)):
        found.append(Row(name, speed.per_second, "polls/s"))
        found.append(Row(f"{name}, processor time", 1e6 * speed.cpu_seconds, "µs/poll"))
    return found


@contextmanager
def site() -> Iterator[int]:
    """Run the site in a process of its own, and yield its port."""
    command = [sys.executable, "-m", "bench.fast_site"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())  # at the end its standard input is closed, which ends it


async def fetcher_speed(port: int, count: int) -> Speed:
    """Measure conditional GETs by the fetcher alone."""
    fetcher = AiohttpFetcher(allow_private=True)

    async def one(number: int) -> None:
        headers = {"If-None-Match": ETAG.decode()}
        reply = await fetcher.fetch(Request(f"http://127.0.0.1:{port}/{number}", headers))
        assert reply.status == 304

    speed = await timed(one, count)
    await fetcher.close()
    return speed


async def source_speed(port: int, count: int, *, conditional: bool) -> Speed:
    """Measure polls by the source, as many at once as by the fetcher, without a delay."""
    table = {"name": "web", "allow_private": True, "delay": 0, "concurrency": AT_ONCE}
    settings = read_settings(HttpSettings, table)
    source = HttpSource(settings, SourceContext(), AiohttpFetcher(allow_private=True))
    first = await source.poll(lease(port, 0))
    assert first.content == BODY

    async def one(number: int) -> None:
        known = lease(port, number, dict(first.validators), first.normal_hash)
        fetched = await source.poll(known, conditional=conditional)
        assert fetched.kind == "unchanged"

    speed = await timed(one, count)
    await source.close()
    return speed


def lease(
    port: int, number: int, validators: dict[str, str] | None = None, held: bytes | None = None
) -> Lease:
    """Return a lease on one of the site's pages."""
    key = f"http://127.0.0.1:{port}/{number}"
    return Lease(number, key, "web", "g", 1, 1e12, validators=validators or {}, content_hash=held)


async def timed(one: Callable[[int], Awaitable[None]], count: int) -> Speed:
    """Make ``count`` calls, ``AT_ONCE`` at a time."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await one(number)

    start_s, cpu_s = time.perf_counter(), time.process_time()
    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return Speed(count / (time.perf_counter() - start_s), (time.process_time() - cpu_s) / count)
