"""The only way of the browser to the network: a proxy on loopback that checks every address.

A browser asks for whatever a page names. The proxy resolves each name, refuses addresses as the HTTP source
does (``ip_addresses``), and connects to exactly the addresses that it checked, so that a name cannot lead to
a private address after the check (DNS rebinding). The browser itself resolves no names.

Each visit of a page has a name and a password of its own (``Visit``). Without them the proxy serves nobody,
so that it is no way into the network for other programs of this machine. A visit counts its requests and the
bytes that it receives, and ends its connections when they are too many.
"""

from __future__ import annotations

import asyncio
import secrets
from base64 import b64encode
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver

from afresh.sources.http.aiohttp_fetcher import PrivateAddressError, resolve_checked

OWN_NAME = "proxy.invalid"
"""A host name by which the proxy answers itself: a request to it only proves the credentials of a visit."""

_HEAD_BYTES = 65_536
_CHUNK = 65_536
_CONNECT_S = 10.0
_HEAD_S = 30.0
Connect: TypeAlias = Callable[[str, int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""A function that opens a connection to an address and a port."""
_DROPPED = (b"proxy-authorization:", b"proxy-connection:", b"connection:", b"keep-alive:")


@dataclass(eq=False)
class Visit:
    """One visit of a page. ``refused`` says which hosts were refused and why. After ``most_bytes`` received
    bytes the connections of the visit end, and ``is_too_large`` is True. ``requests`` counts those that were
    passed on; a tunnel, whatever is sent through it, is one of them."""

    most_bytes: int
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    password: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    received: int = 0
    requests: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    connections: set[asyncio.Task[None]] = field(default_factory=set, repr=False)

    @property
    def is_too_large(self) -> bool:
        return self.received > self.most_bytes

    @property
    def credentials(self) -> str:
        return "Basic " + b64encode(f"{self.name}:{self.password}".encode()).decode()


class LoopbackProxy:
    """An HTTP proxy on 127.0.0.1 for the visits that are open. It belongs to one event loop. ``resolver``
    (default: that of the machine) resolves names, and ``connect`` opens connections to the addresses."""

    def __init__(
        self,
        *,
        allow_private: bool = False,
        resolver: AbstractResolver | None = None,
        connect: Connect = asyncio.open_connection,
    ) -> None:
        self._allow_private, self._resolver, self._open = allow_private, resolver, connect
        self._visits: dict[str, Visit] = {}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=_HEAD_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End all connections. It may be called twice."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def open_visit(self, most_bytes: int) -> Visit:
        visit = Visit(most_bytes)
        self._visits[visit.credentials] = visit
        return visit

    def close_visit(self, visit: Visit) -> None:
        """End the connections of a visit, and allow no more of them."""
        for task in visit.connections:
            task.cancel()
        self._visits.pop(visit.credentials, None)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer, task)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the browser sees that its connection ended
        except asyncio.CancelledError:
            pass  # only ``close_visit`` and ``close`` cancel it
        finally:
            self._tasks.discard(task)
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, task: asyncio.Task[None]
    ) -> None:
        async with asyncio.timeout(_HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
        line, *headers = head[:-4].split(b"\r\n")
        words = line.decode("latin-1").split(" ")
        visit = self._visits.get(_credentials(headers))
        if visit is None:
            return await _answer(writer, "407 Proxy Authentication Required", 'Basic realm="afresh"')
        visit.connections.add(task)
        task.add_done_callback(visit.connections.discard)
        if len(words) != 3:
            return await _answer(writer, "400 Bad Request")
        method, target, _ = words
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        try:
            host, port = parts.hostname or "", parts.port or 80
        except ValueError:
            host, port = "", 80
        if not host or (method != "CONNECT" and parts.scheme != "http"):
            return await _answer(writer, "400 Bad Request")
        if host == OWN_NAME:
            return await _answer(writer, "204 No Content")
        try:
            upstream = await self._connect(host, port)
        except PrivateAddressError as error:
            visit.refused[host] = str(error)
            return await _answer(writer, "403 Forbidden")
        except (OSError, TimeoutError):
            return await _answer(writer, "502 Bad Gateway")
        visit.requests += 1
        try:
            await self._exchange(method, line, headers, (reader, writer), upstream, visit)
        finally:
            upstream[1].close()
            with suppress(OSError):
                await upstream[1].wait_closed()

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        addresses = await resolve_checked(
            host, port, allow_private=self._allow_private, resolver=self._resolver
        )
        problem: Exception = OSError(f"no address found for {host}")
        for address in addresses:
            try:
                async with asyncio.timeout(_CONNECT_S):
                    return await self._open(address, port)
            except (OSError, TimeoutError) as error:
                problem = error
        raise problem

    async def _exchange(
        self,
        method: str,
        line: bytes,
        headers: list[bytes],
        browser: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        visit: Visit,
    ) -> None:
        """Pass on a request and its answer, or the bytes of a tunnel, until one side ends."""

        def count(size: int) -> bool:
            visit.received += size
            return not visit.is_too_large

        if method == "CONNECT":
            browser[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            answer = _copy(upstream[0], browser[1], count)
        else:
            upstream[1].write(_origin_form(line, headers))
            answer = _copy_answer(upstream[0], browser[1], count)
        tasks = [asyncio.create_task(answer)]
        tasks.append(asyncio.create_task(_copy(browser[0], upstream[1], lambda _: True)))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _credentials(headers: list[bytes]) -> str:
    for header in headers:
        name, _, value = header.partition(b":")
        if name.lower() == b"proxy-authorization":
            return value.strip().decode("latin-1")
    return ""


def _origin_form(line: bytes, headers: list[bytes]) -> bytes:
    """Return the head of a request as its server expects it: a path, and one request for each connection."""
    method, target, version = line.split(b" ")
    path = b"/" + target.split(b"/", 3)[3] if target.count(b"/") >= 3 else b"/"
    kept = [header for header in headers if not header.lower().startswith(_DROPPED)]
    return b"\r\n".join([b" ".join((method, path, version)), *kept, b"Connection: close", b"", b""])


async def _copy_answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Callable[[int], bool]
) -> None:
    """Copy the answer to one request, and tell the browser to send no other on this connection, which leads
    to one server only, whatever the next request is for."""
    is_final = False
    while not is_final:
        head = await reader.readuntil(b"\r\n\r\n")
        line, *headers = head[:-4].split(b"\r\n")
        is_final = not line.partition(b" ")[2].startswith(b"1")  # before it, there may be hints
        kept = [header for header in headers if not header.lower().startswith(_DROPPED)]
        writer.write(b"\r\n".join([line, *kept, *([b"Connection: close"] if is_final else []), b"", b""]))
        if not count(len(head)):
            return
    await _copy(reader, writer, count)


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Callable[[int], bool]
) -> None:
    """Copy bytes until the reader ends, one side breaks, or ``count`` returns False for what it counted."""
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            if not count(len(data)):
                return
            writer.write(data)
            await writer.drain()


async def _answer(writer: asyncio.StreamWriter, status: str, authenticate: str = "") -> None:
    wanted = f"Proxy-Authenticate: {authenticate}\r\n" if authenticate else ""
    writer.write(f"HTTP/1.1 {status}\r\n{wanted}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()
