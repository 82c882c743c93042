"""Runs the web server (uvicorn) on a given socket, in the main thread or in a thread beside the engine."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import uvicorn
from fastapi import FastAPI

from afresh.values.errors import StoreError, UsageError
from afresh.web.bounded_connection import BoundedConnection

_GRACE_S = 1  # for requests that run when the server stops, so that it ends within two seconds
_JOIN_S = 30.0


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on this address. Port 0 selects any free port."""
    listening = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(found[0], found[1])
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(found[4])
        listening.listen(128)
    except OSError as error:
        if listening is not None:
            listening.close()
        hint = ": is another one running? See [web] port" if error.errno == errno.EADDRINUSE else ""
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}{hint}") from None
    return listening


class _QuietServer(uvicorn.Server):
    """A uvicorn server that sets no signal handlers, because the caller handles signals."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Do nothing, because a signal could be lost while uvicorn replaces and restores the handlers."""
        yield


class Server:
    """Serves an application on a socket. ``run`` serves in this thread; a ``with`` block serves in another
    thread until the block ends."""

    def __init__(self, app: FastAPI, listening: socket.socket) -> None:
        self._listening = listening
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_S,
            http=BoundedConnection,
            h11_max_incomplete_event_size=1 << 16,
        )
        self._server = _QuietServer(config)
        app.state.live.is_closing = lambda: self._server.should_exit
        self._thread = threading.Thread(target=self.run, daemon=True, name="afresh-web")

    @property
    def address(self) -> str:
        """The URL to open in a browser on this machine."""
        host, port = self._listening.getsockname()[:2]
        if host in ("0.0.0.0", "::"):
            host = "localhost"
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

    def run(self) -> None:
        self._server.run(sockets=[self._listening])

    def stop(self) -> None:
        """Ask the server to stop. Any thread or signal handler may call this, also before the server runs."""
        self._server.should_exit = True

    def __enter__(self) -> Self:
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            self._thread.join(0.01)
        if not self._server.started:
            self._listening.close()
            raise StoreError("the dashboard could not be started: the log says why")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._thread.join(_JOIN_S)
        self._listening.close()
