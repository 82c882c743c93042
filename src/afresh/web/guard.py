"""What stands before every request: whose name it calls us by, where it comes from, how much it brings.

- **Host.** A page elsewhere whose name is made to point here (DNS rebinding) calls us by that name: only
  addresses, ``localhost`` and names that we were given are answered.
- **Origin.** What changes something is refused when a page of another origin sends it. It needs the bearer
  token besides, which no browser sends by itself, so a form on another site can do nothing.
- **Size and time.** A body is read up to a bound, and not for ever.
- **HEAD.** Is answered like GET, but for the live stream, which has no end; the server leaves the body out.
- **Headers.** Scripts, styles and data come from our own origin alone; nothing may frame us.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afresh.web.problems import problem

LOGGER = logging.getLogger("afresh.web")
MOST_BYTES, MOST_S = 1 << 20, 15.0
_TOO_LARGE = 413, f"the body is larger than {MOST_BYTES} bytes", "send fewer at once"
_TOO_SLOW = 408, f"the body did not come within {MOST_S:g} s", "send it at once"
_READS = ("GET", "HEAD", "OPTIONS")
_RULES = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",  # plotly.js writes style attributes
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
)
_HEADERS = {
    "Content-Security-Policy": "; ".join(_RULES),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class BodyError(Exception):
    """The body went on beyond a bound."""


class Guard:
    """The middleware. ``names`` are host names, beside addresses and ``localhost``, that are ours."""

    def __init__(self, app: ASGIApp, names: Iterable[str] = ()) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refused = self._refusal(scope["method"], headers)
        if refused is not None:
            await problem(*refused)(scope, receive, _with_headers(send))
            return
        if scope["method"] == "HEAD" and scope["path"] != "/live":
            scope = {**scope, "method": "GET"}
        bounded = _Bounded(receive, _with_headers(send))
        try:
            await self._app(scope, bounded.receive, bounded.send)
        except BodyError:
            pass  # said below: others may have caught it on the way
        except Exception as error:
            LOGGER.exception("a request failed: %s %s", scope["method"], scope["path"], exc_info=error)
            if bounded.started:
                raise
            await problem(500, "a defect of afresh itself: its log says more")(
                scope, receive, _with_headers(send)
            )
        if bounded.exceeded is not None and not bounded.started:
            await problem(*bounded.exceeded)(scope, receive, _with_headers(send))

    def _refusal(self, method: str, headers: Headers) -> tuple[int, str, str] | None:
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not is_ours(host, self._names):
            return 421, f"{host!r} is not a name of this server", "add it to [web] names"
        if method not in _READS:
            origin = headers.get("origin")
            if origin is not None and not is_same(origin, host):
                return 403, "a page of another origin may change nothing here", "use the API with the token"
            if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
                return 403, "a page of another site may change nothing here", "use the API with the token"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            return _TOO_LARGE
        return None


def is_same(origin: str, host: str) -> bool:
    """Whether an Origin is a page of the host that was asked.

    >>> [is_same(origin, "a:1") for origin in ("http://a:1", "https://A:1", "http://a:2", "null", "http://[::1")]
    [True, True, False, False, False]
    """
    scheme, _, rest = origin.partition("://")
    return scheme in ("http", "https") and rest.lower() == host.lower()


def is_ours(host: str, names: frozenset[str]) -> bool:
    """Whether a Host header names us: an address, ``localhost``, or one of ``names``.

    >>> [is_ours(host, frozenset()) for host in ("127.0.0.1:8321", "[::1]:1", "evil.example")]
    [True, True, False]
    """
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if name is None or parts.path or parts.query or parts.fragment or parts.username is not None:
        return False
    if name == "localhost" or name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class _Bounded:
    """Receives ``MOST_BYTES`` within ``MOST_S`` at most; after that, what would be answered is held back."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send, self._left = receive, send, MOST_BYTES
        self._until_s, self._whole = asyncio.get_running_loop().time() + MOST_S, False
        self.started = False
        self.exceeded: tuple[int, str, str] | None = None

    async def receive(self) -> Message:
        """The next part of the body; once it is whole, whatever comes."""
        if self._whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until_s):
                message = await self._receive()
        except TimeoutError:
            self.exceeded = _TOO_SLOW
            raise BodyError from None
        self._left -= len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._left < 0:
            self.exceeded = _TOO_LARGE
            raise BodyError
        return message

    async def send(self, message: Message) -> None:
        """The next part of the answer."""
        if self.started or self.exceeded is None:
            self.started = True
            await self._send(message)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending
