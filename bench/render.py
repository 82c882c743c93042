"""What rendering a page costs: seconds, requests and memory, beside the plain poll of the same page."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable

from tests.sources.http.rendering.app_site import AppSite
from tests.sources.polling import lease_of, quick_settings
from tests.web.browser import CHROMIUM

from afresh.sources.context import SourceContext
from afresh.sources.http.rendering.process_tree import memory_bytes
from afresh.sources.http.rendering.rendering_fetcher import RenderingFetcher
from afresh.sources.http.settings import make_fetcher
from afresh.sources.http.source import HttpSource
from bench.rows import Row


def rows(*, quick: bool) -> list[Row]:
    """Return the cost per page of a page of 1 kB that one script and one request of data make."""
    return asyncio.run(_measure(2 if quick else 30))


async def _measure(pages: int) -> list[Row]:
    found: list[Row] = []
    async with AppSite() as site:
        plain_s, _ = await _per_page(site, "never", pages, found)
        first_s, rendered_s = await _per_page(site, "always", pages, found)
        ratio = rendered_s / plain_s
    return [
        Row("a plain poll", 1e3 * plain_s, "ms"),
        Row("a rendered poll, to a plain one", 1e3 * rendered_s, "ms", ratio),
        Row("the first one, which starts the browser", 1e3 * first_s, "ms"),
        *found,
    ]


async def _per_page(site: AppSite, mode: str, pages: int, found: list[Row]) -> tuple[float, float]:
    """Return the seconds of the first poll and the mean of the others."""
    settings, context = quick_settings(render=mode, browser=str(CHROMIUM)), SourceContext()
    fetcher = make_fetcher(settings, context)
    source = HttpSource(settings, context, fetcher)
    try:
        first_s = await _seconds(lambda: source.poll(lease_of(f"{site.url}/shop")))
        site.seen.clear()
        before_s = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        mean_s = 0.0
        for number in range(pages):
            lease = lease_of(f"{site.url}/app/{number % 8}")
            mean_s += await _seconds(lambda lease=lease: source.poll(lease)) / pages  # type: ignore[misc]
        if isinstance(fetcher, RenderingFetcher):
            own_s = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - before_s
            found.append(Row("processor time of afresh itself for each page", 1e3 * own_s / pages, "ms"))
            found.append(Row("requests for each page", len(site.seen) / pages, "", at_most=2.0))
            memory = memory_bytes(fetcher.host.process) / 1e6
            found.append(Row("memory of the browser's processes", memory, "MB", at_most=1000.0))
    finally:
        await source.close()
    return (first_s, mean_s) if mode == "always" else (mean_s, mean_s)


async def _seconds(work: Callable[[], Awaitable[object]]) -> float:
    start_s = time.perf_counter()
    await work()
    return time.perf_counter() - start_s
