"""What stands between a client and a PostgreSQL: it loses answers, or hangs up, when a test asks for it."""

from __future__ import annotations

import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Literal
from urllib.parse import quote

_SOCKET = ".s.PGSQL.5432"
Cut = Literal["before", "after"]


class PostgresProxy:
    """Passes everything on, until ``cut`` is set: then the next COMMIT is lost on its way, or its answer is.

    ``away``: nobody is let in, as if the server were down. ``freeze``: nothing arrives until ``thaw``.
    """

    def __init__(self, upstream: Path) -> None:
        """Listen on a socket in a folder of its own."""
        self.cut: Cut | None = None
        self.away = False
        self.away_after_cut = False
        self._upstream = upstream / _SOCKET
        self._folder = tempfile.TemporaryDirectory(prefix="afresh-proxy-")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self._folder.name}/{_SOCKET}")
        self._listener.listen()
        self._open: list[socket.socket] = []
        self._flows = Event()
        self._flows.set()
        Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Where to connect."""
        return f"postgresql://postgres@/postgres?host={quote(self._folder.name, safe='')}"

    def hang_up(self) -> None:
        """All connections are lost."""
        for end in self._open:
            _shut(end)
        self._open.clear()

    def freeze(self) -> None:
        """Hold back whatever is sent from now on, in both directions, as a network that loses packets."""
        self._flows.clear()

    def thaw(self) -> None:
        """Let everything through again, also what was held back."""
        self._flows.set()

    def close(self) -> None:
        """Stop."""
        self.thaw()
        _shut(self._listener)
        self.hang_up()
        self._folder.cleanup()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.away:
                _shut(client)
                continue
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self._upstream))
            except OSError:
                _shut(client)
                continue
            self._open += [client, server]
            Thread(target=self._ask, args=(client, server), daemon=True).start()
            Thread(target=self._pass, args=(server, client), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        """From client to server."""
        while data := self._receive(client):
            if self.cut is not None and b"COMMIT" in data and b"READ COMMITTED" not in data:
                cut, self.cut = self.cut, None
                self.away = self.away_after_cut
                _shut(client)
                if cut == "after":
                    # The server hears it, ends the transaction, and then hears that nobody is there.
                    _send(server, data)
                    server.shutdown(socket.SHUT_WR)
                else:
                    _shut(server)
                return
            _send(server, data)
        _shut(server)

    def _receive(self, end: socket.socket) -> bytes:
        try:
            data = end.recv(1 << 16)
        except OSError:
            data = b""
        self._flows.wait()
        return data

    def _pass(self, server: socket.socket, client: socket.socket) -> None:
        """From server to client."""
        while data := self._receive(server):
            _send(client, data)  # though nobody may be there any more: hear the server out
        _shut(server)
        _shut(client)


def _send(end: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        end.sendall(data)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):  # never connected, or shut by the other side
        end.shutdown(socket.SHUT_RDWR)
    end.close()
