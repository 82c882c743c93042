"""A loopback site that does almost nothing per request, so that the client is what is measured.

``python -m bench.fast_site`` prints its port and serves until its standard input closes. Every page is
the same 2 kB; whoever asks with its ETag gets a 304.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import cast

BODY = b"<html><body>" + b"<p>a page like any other</p>" * 70 + b"</body></html>"
ETAG = b'"one"'
_WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: %s\r\nContent-Length: %d\r\n\r\n" % (
    ETAG,
    len(BODY),
)
_SAME = b"HTTP/1.1 304 Not Modified\r\nETag: %s\r\n\r\n" % ETAG


class Page(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of a new connection."""
        self._transport, self._rest = cast(asyncio.WriteTransport, transport), b""

    def data_received(self, data: bytes) -> None:
        """Answer every complete request."""
        *requests, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for request in requests:
            self._transport.write(_SAME if ETAG in request else _WHOLE + BODY)


async def serve() -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Page, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        import uvloop

        uvloop.run(serve())
