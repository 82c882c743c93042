"""The middleware that checks every request before it is handled.

- **Host.** If an attacker makes the name of a foreign site point to this server (DNS rebinding), the Host
  header has that name. So only IP addresses, ``localhost`` and the configured names are accepted. The name
  at which others reach ``/receive/`` leads nowhere else: a tunnel for webhooks publishes no dashboard.
- **Origin.** A request that changes something is refused if a page of another origin sends it. The request
  also needs the bearer token, which no browser sends by itself, so a form on another site can change nothing.
- **Reads by other sites.** A page of another site cannot see what it reads here, but it could keep the
  server busy. So browsers get nothing for such a page; only a link that somebody follows is answered.
- **Token.** A request to change something is refused before its body is read if it lacks the bearer token.
  Where reading needs the token too, every request but those for ``/healthz`` and ``/readyz`` has it: as a
  bearer token, or as the password that a browser asks its user for (HTTP Basic, any user name). Only what
  ``/receive/`` receives needs none: it is signed.
- **Number.** At most 256 requests run at the same time; others are refused. ``/healthz`` is always answered.
- **Size and time.** The body of a request is limited in bytes and in seconds.
- **HEAD.** HEAD is handled as GET, and the server omits the body. Only ``/live`` is excepted: it never ends.
- **Headers.** Pages may load scripts, styles and data only from this server, and no page may frame them.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from base64 import b64decode
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afresh.web.error_responses import error_response
from afresh.web.token import is_token

LOGGER = logging.getLogger("afresh.web")
MOST_BODY_BYTES, MOST_BODY_S = 1 << 20, 15.0
MOST_REPORT_BYTES, MOST_REPORT_S = 1 << 25, 60.0
_REPORTS = "/api/v1/observations"  # reports of polls contain pages, so that they may be larger
MOST_REQUESTS = 256
_TOO_MANY = 503, f"{MOST_REQUESTS} requests are being answered already", "try again soon"
_NO_TOKEN = 401, "reading needs the token too", "give it as the password, or as a bearer token"
BASIC_CHALLENGE = 'Basic realm="afresh", charset="UTF-8"'
_HEALTH = "/healthz"
_OPEN = (_HEALTH, "/readyz")
_RECEIVERS = "/receive/"  # what arrives there is signed by its sender
_READS = ("GET", "HEAD", "OPTIONS")
_OWN_SITE = ("same-origin", "none")
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
    """Raised if the body of a request is too large, or does not arrive in time."""


class RequestGuard:
    """The middleware. ``names`` are the host names to accept, besides IP addresses and ``localhost``;
    ``receiver_names`` those to accept below ``/receive/`` too."""

    def __init__(
        self,
        app: ASGIApp,
        names: Iterable[str] = (),
        read_token: str | None = None,
        receiver_names: Iterable[str] = (),
        write_token: str | None = None,
    ) -> None:
        """``read_token`` is the token that reading needs; None if everybody may read. ``write_token`` is the
        one that changes need; None if the application refuses them itself. ``receiver_names`` are host names
        that are accepted for what ``/receive/`` receives only."""
        self._app, self._read_token, self._write_token, self._running = app, read_token, write_token, 0
        self._names = frozenset(name.lower() for name in names)
        self._receiver_names = self._names.union(name.lower() for name in receiver_names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        is_report = scope["path"] == _REPORTS and self._write_token is not None  # whose token is checked
        limits = (MOST_REPORT_BYTES, MOST_REPORT_S) if is_report else (MOST_BODY_BYTES, MOST_BODY_S)
        refusal = self._find_token_refusal(scope["path"], headers)
        refusal = refusal or self._find_refusal(scope, headers, limits[0])
        if refusal is not None:
            response = error_response(*refusal)
            if refusal is _NO_TOKEN:
                response.headers["WWW-Authenticate"] = BASIC_CHALLENGE
            await response(scope, receive, _with_headers(send))
            return
        self._running += 1
        try:
            await self._answer(scope, receive, send, limits)
        finally:
            self._running -= 1

    async def _answer(self, scope: Scope, receive: Receive, send: Send, limits: tuple[int, float]) -> None:
        if scope["method"] == "HEAD" and scope["path"] != "/live":
            scope = {**scope, "method": "GET"}
        limited = _LimitedBody(receive, _with_headers(send), *limits)
        try:
            await self._app(scope, limited.receive, limited.send)
        except BodyError:
            pass  # The response is sent below, also if a handler has caught this exception.
        except Exception as error:
            LOGGER.exception("a request failed: %s %s", scope["method"], scope["path"], exc_info=error)
            if limited.started:
                raise
            await error_response(500, "this is a defect of afresh: its log says more")(
                scope, receive, _with_headers(send)
            )
        if limited.exceeded is not None and not limited.started:
            await error_response(*limited.exceeded)(scope, receive, _with_headers(send))

    def _find_token_refusal(self, path: str, headers: Headers) -> tuple[int, str, str] | None:
        if self._running >= MOST_REQUESTS and path != _HEALTH:
            return _TOO_MANY
        if self._read_token is None or path in _OPEN or path.startswith(_RECEIVERS):
            return None
        given = given_token(headers.getlist("authorization"))
        return None if given is not None and is_token(given, self._read_token) else _NO_TOKEN

    def _find_refusal(self, scope: Scope, headers: Headers, most_bytes: int) -> tuple[int, str, str] | None:
        host, is_received = headers.get("host", ""), scope["path"].startswith(_RECEIVERS)
        names = self._receiver_names if is_received else self._names
        if len(headers.getlist("host")) != 1 or not is_own_name(host, names):
            return 421, f"{host!r} is not a name of this server", "add it to [web] names"
        if scope["method"] in _READS:
            if is_read_by_another_site(headers):
                return 403, "a page of another site may read nothing here", "open the address itself"
        else:
            origin = headers.get("origin")
            if origin is not None and not is_same_origin(origin, host):
                return 403, "a page of another origin may change nothing here", "use the API with the token"
            if headers.get("sec-fetch-site", "none") not in _OWN_SITE:
                return 403, "a page of another site may change nothing here", "use the API with the token"
            if self._write_token is not None and not is_received:
                refusal = _find_write_refusal(headers, self._write_token)
                if refusal is not None:
                    return refusal
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most_bytes:
            return _too_large(most_bytes)
        return None


def _find_write_refusal(headers: Headers, token: str) -> tuple[int, str, str] | None:
    """Return why a request may change nothing. It must have the token as a bearer token."""
    given = headers.getlist("authorization")
    scheme, _, rest = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    if scheme.lower() != "bearer":
        return 401, "this needs the token", "Authorization: Bearer TOKEN; see web.token"
    if not is_token(rest.strip(), token):
        return 401, "that is not the token", "see web.token in the project folder"
    return None


def is_read_by_another_site(headers: Mapping[str, str]) -> bool:
    """Return whether a browser says that it asks for a page of another site, and not because somebody follows
    a link. Other programs say nothing about it.

    >>> is_read_by_another_site({}), is_read_by_another_site({"sec-fetch-site": "cross-site"})
    (False, True)
    >>> is_read_by_another_site(
    ...     {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"})
    False
    """
    if headers.get("sec-fetch-site", "none") in _OWN_SITE:
        return False
    is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return not is_link


def given_token(headers: list[str]) -> str | None:
    """Return the token of an ``Authorization`` header: a bearer token, or the password of HTTP Basic.

    >>> [given_token([text]) for text in ("Bearer abc", "Basic bWU6YWJj", "Basic x", "")]
    ['abc', 'abc', None, None]
    """
    if len(headers) != 1:
        return None
    scheme, _, rest = headers[0].partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() != "basic":
        return None
    try:
        return b64decode(rest.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return None


def is_same_origin(origin: str, host: str) -> bool:
    """Return whether an Origin header names the same host and port as the request's Host header.

    >>> [is_same_origin(origin, "a:1") for origin in ("http://a:1", "https://A:1", "http://a:2", "null", "http://[::1")]
    [True, True, False, False, False]
    """
    scheme, _, rest = origin.partition("://")
    return scheme in ("http", "https") and rest.lower() == host.lower()


def is_own_name(host: str, names: frozenset[str]) -> bool:
    """Return whether a Host header is an IP address, ``localhost``, or one of ``names``.

    >>> [is_own_name(host, frozenset()) for host in ("127.0.0.1:8321", "[::1]:1", "evil.example")]
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


class _LimitedBody:
    """Limits a request's body in bytes and seconds. After a limit was exceeded, responses of the application
    are not sent, unless one has already begun (``started``)."""

    def __init__(self, receive: Receive, send: Send, most_bytes: int, most_s: float) -> None:
        self._receive, self._send = receive, send
        self._left_bytes, self._most_bytes, self._most_s = most_bytes, most_bytes, most_s
        self._until_s, self._is_complete = asyncio.get_running_loop().time() + most_s, False
        self.started = False
        self.exceeded: tuple[int, str, str] | None = None

    async def receive(self) -> Message:
        """Return the next message of the request. Messages after the complete body are not limited."""
        if self._is_complete:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until_s):
                message = await self._receive()
        except TimeoutError:
            self.exceeded = 408, f"the body did not come within {self._most_s:g} s", "send it at once"
            raise BodyError from None
        self._left_bytes -= len(message.get("body", b""))
        self._is_complete = not message.get("more_body", False)
        if self._left_bytes < 0:
            self.exceeded = _too_large(self._most_bytes)
            raise BodyError
        return message

    async def send(self, message: Message) -> None:
        if self.started or self.exceeded is None:
            self.started = True
            await self._send(message)


def _too_large(most_bytes: int) -> tuple[int, str, str]:
    return 413, f"the body is larger than {most_bytes} bytes", "send fewer at once"


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return send_with_headers
