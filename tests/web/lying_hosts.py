"""Hosts of this machine whose validators lie, each in its own way, and one that fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from time import time

NOISY, FUTURE, CONSTANT, BROKEN, SLOW = (f"127.0.0.{last}" for last in range(11, 16))
_TICKS = count()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        host = self.headers["Host"].partition(":")[0]
        if self.path == "/robots.txt":
            self._send(*((200, b"User-agent: *\nCrawl-delay: 2") if host == SLOW else (404, b"")))
        elif host == NOISY:  # another ETag for every answer
            self._send(200, b"the same", ETag=f'"{next(_TICKS)}"')
        elif host == FUTURE:
            self._send(200, b"the same", **{"Last-Modified": formatdate(time() + 1e6, usegmt=True)})
        elif host == CONSTANT:  # one ETag for every content
            self._send(200, f"tick {next(_TICKS)}".encode(), ETag='"always"')
        elif host == BROKEN:
            self._send(503, b"later", **{"Retry-After": "600"})
        else:
            self._send(200, b"honest", ETag='"a"')

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing."""


@contextmanager
def lying_hosts() -> Iterator[int]:
    """Serve them all on one port."""
    server = ThreadingHTTPServer(("0.0.0.0", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
