"""Services that take notifications on loopback: a webhook, and a mail server."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session


class Webhook:
    """Takes messages in JSON, and answers with ``status``, as soon as it is ``free``."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.asked = 0
        self.status = 200
        self.free = threading.Event()
        self.free.set()
        self.port = 0

    @property
    def address(self) -> str:
        return f"json://someone:hunter2@127.0.0.1:{self.port}/private-path"

    def take(self, body: bytes) -> int:
        self.asked += 1
        self.free.wait(60)
        if self.status == 200:
            self.messages.append(json.loads(body))
        return self.status


@contextmanager
def webhook() -> Iterator[Webhook]:
    """Take messages until the ``with`` ends."""
    found = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status = found.take(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()
            except OSError:  # whoever sent it was killed
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield found
    finally:
        found.free.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Inbox:
    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []

    async def handle_DATA(  # noqa: N802  # the server calls it by this name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        del server, session
        mail = message_from_bytes(envelope.original_content or b"", policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        return "250 OK"


@contextmanager
def mail_server() -> Iterator[tuple[str, list[EmailMessage]]]:
    """Take mail until the ``with`` ends; yield the address for ``notify``, and the mails."""
    inbox, ready = _Inbox(), threading.Event()
    found: list[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = []

    async def serve() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        server = await loop.create_server(lambda: SMTP(inbox, hostname="localhost"), "127.0.0.1", 0)
        async with server:
            found.append((loop, stop, server.sockets[0].getsockname()[1]))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(60)
    loop, stop, port = found[0]
    try:
        who = "from=afresh@example.org&to=reader@example.org"
        yield f"mailto://127.0.0.1:{port}?{who}&format=text", inbox.mails
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
