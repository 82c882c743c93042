"""A web site on loopback, written by hand so that it can also misbehave; it stops with its ``async with``."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeAlias


@dataclass(frozen=True)
class Seen:
    """One request as the site saw it."""

    path: str
    headers: Mapping[str, str]


@dataclass
class Answer:
    """One connection's way out: proper answers by ``send``, anything else by ``raw``."""

    writer: asyncio.StreamWriter
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    closing: bool = False

    async def raw(self, data: bytes) -> None:
        """Any bytes at all."""
        self.writer.write(data)
        await self.writer.drain()
        await asyncio.sleep(0)  # drain alone would not let the others run

    async def send(self, body: bytes = b"", status: int = 200, **headers: str) -> None:
        """A whole and correct answer; header names with _ for -."""
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        bodiless = status in (204, 304)
        if bodiless:
            del lines[1]
        head = "\r\n".join(lines).encode("latin-1")
        await self.raw(head + b"\r\n\r\n" + (b"" if bodiless else body))

    async def hang(self) -> None:
        """Say nothing more until the site stops."""
        self.closing = True
        await self.stop.wait()

    def hang_up(self) -> None:
        """Close the connection after this answer."""
        self.closing = True


Handler: TypeAlias = Callable[[Seen, Answer], Awaitable[None]]


class Site:
    """Serves ``routes`` (path without query → handler); everything else is 404. ``seen`` is its log."""

    def __init__(
        self,
        routes: Mapping[str, Handler] | None = None,
        tls: ssl.SSLContext | None = None,
        address: str = "127.0.0.1",
    ) -> None:
        self.routes: dict[str, Handler] = dict(routes or {})
        self.seen: list[Seen] = []
        self.at_once = self.most_at_once = 0
        self.port = 0
        self._tls, self._address = tls, address
        self._stop = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        """The paths asked for, in order."""
        return [seen.path for seen in self.seen]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, self._address, 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                answer = Answer(writer, self._stop)
                while not answer.closing:
                    await self._one(reader, answer)
        finally:
            self._tasks.discard(task)
            writer.transport.abort() if self._stop.is_set() else writer.close()

    async def _one(self, reader: asyncio.StreamReader, answer: Answer) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        pairs = (line.split(": ", 1) for line in lines if line)
        seen = Seen(first.split(" ")[1], {name.lower(): value for name, value in pairs})
        self.seen.append(seen)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.routes.get(seen.path.partition("?")[0], _missing)(seen, answer)
        finally:
            self.at_once -= 1


async def _missing(_seen: Seen, answer: Answer) -> None:
    await answer.send(b"not here", 404)


def page(body: bytes, **headers: str) -> Handler:
    """A page that is always the same; answers conditional requests if it has an ETag."""

    async def handler(seen: Seen, answer: Answer) -> None:
        etag = headers.get("ETag")
        if etag and seen.headers.get("if-none-match") == etag:
            await answer.send(b"", 304, **headers)
        else:
            await answer.send(body, 200, **({"Content_Type": "text/html"} | headers))

    return handler


def redirect(to: str, status: int = 302) -> Handler:
    """A redirect."""

    async def handler(_seen: Seen, answer: Answer) -> None:
        await answer.send(b"", status, Location=to)

    return handler
