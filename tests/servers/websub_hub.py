"""A publisher and its hub on loopback (WebSub): the hub verifies the intent of subscribers, and distributes
what is published, signed."""

from __future__ import annotations

import hashlib
import hmac
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ATOM = "application/atom+xml"


class Hub:
    """The site ``address`` has a feed at ``/feed``, which names its hub ``/hub``, and pages at ``/p/N``. The
    hub grants leases of ``lease_s`` seconds; ``status`` is its answer to requests. If it ``moved``, ``/hub``
    redirects with this status to where it is."""

    def __init__(self) -> None:
        self.address = ""
        self.lease_s, self.status, self.denies, self.moved = 1000, 202, False, 0
        self.is_named, self.names_in_header, self.has_feed = True, False, True
        self.entries: dict[str, str] = {"/p/1": "first"}
        self.requests: list[dict[str, str]] = []
        self.callbacks: dict[str, str] = {}  # the secret of each subscriber
        self.changed = threading.Condition()

    def feed(self, entries: dict[str, str] | None = None) -> bytes:
        link = (
            f'<link rel="hub" href="{self.address}hub"/>'
            if self.is_named and not self.names_in_header
            else ""
        )
        each = "".join(
            f'<entry><id>{path}</id><title>{title}</title><link href="{self.address}{path[1:]}"/></entry>'
            for path, title in (self.entries if entries is None else entries).items()
        )
        own = f'<link rel="self" href="{self.address}feed"/>'
        return f'<feed xmlns="http://www.w3.org/2005/Atom">{link}{own}{each}</feed>'.encode()

    def headers(self) -> dict[str, str]:
        links = f'<{self.address}hub>; rel="hub", <{self.address}feed>; rel="self"'
        return {"Link": links} if self.names_in_header else {}

    def take(self, form: dict[str, str]) -> int:
        """Take a request of a subscriber; the verification comes from another thread, as from a real hub."""
        with self.changed:
            self.requests.append(form)
            self.changed.notify_all()
        if self.status == 202:
            threading.Thread(target=self._verify, args=(form,), daemon=True).start()
        return self.status

    def _verify(self, form: dict[str, str]) -> None:
        asked = {"hub.mode": form["hub.mode"], "hub.topic": form["hub.topic"]}
        if self.denies:
            denied = asked | {"hub.mode": "denied", "hub.reason": "not here"}
            call(f"{form['hub.callback']}?{urllib.parse.urlencode(denied)}")
            return
        asked |= {"hub.challenge": "a challenge", "hub.lease_seconds": str(self.lease_s)}
        status, body = call(f"{form['hub.callback']}?{urllib.parse.urlencode(asked)}")
        with self.changed:
            if status == 200 and body == b"a challenge":
                if form["hub.mode"] == "subscribe":
                    self.callbacks[form["hub.callback"]] = form["hub.secret"]
                else:
                    self.callbacks.pop(form["hub.callback"], None)
            self.changed.notify_all()

    def publish(self, entries: dict[str, str], method: str = "sha256") -> list[int]:
        """Publish new entries, and tell every subscriber; return what each answered."""
        self.entries |= entries
        return [self.send(callback, self.feed(entries), method) for callback in list(self.callbacks)]

    def send(self, callback: str, body: bytes, method: str = "sha256", secret: str = "") -> int:
        key = (secret or self.callbacks.get(callback, "")).encode()
        signature = hmac.new(key, body, getattr(hashlib, method)).hexdigest()
        headers = {"Content-Type": ATOM, "X-Hub-Signature": f"{method}={signature}"}
        return call(callback, body, headers)[0]

    def wait_for(self, wanted: Callable[[], bool]) -> None:
        """Wait until something is true of this hub."""
        with self.changed:
            assert self.changed.wait_for(wanted, 120)


def call(url: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers or {}), timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


@contextmanager
def serve_hub() -> Iterator[Hub]:
    """Serve a site and its hub until the ``with`` ends."""
    hub = Hub()

    class _Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/feed" and hub.has_feed:
                self._answer(200, hub.feed(), ATOM, hub.headers())
            elif self.path in hub.entries:
                self._answer(200, hub.entries[self.path].encode(), "text/plain")
            else:
                self._answer(404, b"", "text/plain")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if hub.moved and self.path == "/hub":
                self._answer(hub.moved, b"", "text/plain", {"Location": "/moved"})
                return
            self._answer(hub.take(dict(urllib.parse.parse_qsl(body))), b"", "text/plain")

        def _answer(self, status: int, body: bytes, kind: str, more: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {
                "Content-Type": kind,
                "Content-Length": str(len(body)),
                **(more or {}),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    hub.address = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
