"""A site and its engines in virtual time: requests are answered from memory, and nobody waits for real.

What the engine does over minutes is the same on every machine, and takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import urlsplit

from tests.engine.changing_pages import ChangingPages
from tests.engine.living import settings_for
from tests.servers.site import Answer, Handler, Seen
from tests.virtual_time import VirtualTime, pass_time

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.settings.tables import Settings
from afresh.sources.http.fetcher import Reply, Request
from afresh.stores.store import Store


class VirtualSite(ChangingPages):
    """Pages ``/p/0`` … and ``routes``, for engines that ``engine`` makes; ``down``: nobody answers.

    ``time`` may be given, to have several sites in one time.
    """

    def __init__(
        self,
        rates: Sequence[float] = (),
        *,
        seed: int = 1,
        lasts_s: float = 300.0,
        hosts: int = 1,
        routes: Mapping[str, Handler] | None = None,
    ) -> None:
        self.time = VirtualTime()
        super().__init__(rates, self.time, seed=seed, lasts_s=lasts_s, hosts=hosts)
        self.routes = dict(routes or {})
        self.paths: list[str] = []  # whatever was asked for, robots.txt too
        self.down: Reply | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    @property
    def root(self) -> str:
        """Its address, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def engine(
        self,
        folder: Path,
        *,
        settings: Settings | None = None,
        store: Store | None = None,
        seed: int = 1,
        **given: str,
    ) -> Engine:
        """An engine that asks this site, in its time; ``given`` as for ``engine_for``."""
        return make_engine(
            settings_for(**given) if settings is None else settings,
            folder,
            store=store,
            clock=self.time,
            seed=seed,
            new_loop=self.time.new_loop,
            new_fetcher=lambda *_given: self,
        )

    def closed_now(self) -> str:
        """A window that is not open."""
        hour = datetime.fromtimestamp(self.time.now_s(), UTC).hour
        return f"{(hour + 3) % 24:02}:00-{(hour + 4) % 24:02}:00"

    # A fetcher (see sources/http/fetcher.py).

    async def check_url(self, url: str) -> None:
        """Every address may be asked."""
        del url

    async def fetch(self, request: Request) -> Reply:
        """The answer of the page or route; 404 elsewhere."""
        begun_s, path = self.time.elapsed_s(), urlsplit(request.url).path
        self.paths.append(path)
        if self.down is not None:
            await pass_time(0.001)
            return self.down
        answer = _MemoryAnswer()
        headers = {name.lower(): value for name, value in request.headers.items()}
        if path in self.routes:
            await self.routes[path](Seen(path, headers), cast(Answer, answer))
        elif path.startswith("/p/") and int(path.removeprefix("/p/")) < self.rates.size:
            await answer.send(await self.serve(path, headers), Content_Type="text/plain")
        else:
            await answer.send(b"not here", 404)
        size = len(answer.body) + sum(len(name) + len(value) + 4 for name, value in answer.headers.items())
        return Reply(answer.status, answer.headers, answer.body, size, self.time.elapsed_s() - begun_s)

    async def close(self) -> None:
        """There is nothing to close."""


class _MemoryAnswer:
    """Takes what a handler sends."""

    def __init__(self) -> None:
        self.status, self.body, self.headers = 0, b"", dict[str, str]()

    async def send(self, body: bytes = b"", status: int = 200, **headers: Any) -> None:
        """A whole answer; header names with _ for -."""
        await pass_time(0.001)
        self.status, self.body = status, body
        self.headers = {name.replace("_", "-").lower(): value for name, value in headers.items()}
        self.headers["content-length"] = str(len(body))
