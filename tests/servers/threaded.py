"""A ``Site`` in a thread of its own, for commands that run a loop themselves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from tests.servers.site import Handler, Site

SiteT = TypeVar("SiteT", bound=Site)


@contextmanager
def served(routes: Mapping[str, Handler]) -> Iterator[Site]:
    """Serve until the ``with`` ends; routes may be changed meanwhile."""
    with served_by(Site(routes)) as site:
        yield site


@contextmanager
def served_by(given: SiteT) -> Iterator[SiteT]:
    """Serve this site until the ``with`` ends."""
    ready = threading.Event()
    found: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        stop = asyncio.Event()
        async with given:
            found.append((asyncio.get_running_loop(), stop))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    loop, stop = found[0]
    try:
        yield given
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def sitemap(url: str, *names: str) -> bytes:
    """A sitemap that lists these paths of a site."""
    rows = "".join(f"<url><loc>{url}/{name}</loc></url>" for name in names)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'.encode()
