"""A site on loopback (aiohttp, in a thread of its own) whose answers a test writes, one function a path."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from aiohttp import web

ApiHandler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class ApiSite:
    """Its address, and the path with query of every request."""

    url: str = ""
    asked: list[str] = field(default_factory=list)


@contextmanager
def served_api(routes: Mapping[str, ApiHandler]) -> Iterator[ApiSite]:
    """Serve ``routes`` (path, which may have a ``{name}`` → handler) until the ``with`` ends."""
    site, ready, ends = ApiSite(), threading.Event(), list[Callable[[], object]]()

    @web.middleware
    async def log(request: web.Request, handler: ApiHandler) -> web.StreamResponse:
        site.asked.append(request.path_qs)
        return await handler(request)

    async def serve() -> None:
        app, stop = web.Application(middlewares=[log]), asyncio.Event()
        for path, handler in routes.items():
            app.router.add_route("*", path, handler)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        site.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        loop = asyncio.get_running_loop()
        ends.append(lambda: loop.call_soon_threadsafe(stop.set))
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(30)
    try:
        yield site
    finally:
        ends[0]()
        thread.join()
