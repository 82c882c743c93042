"""The fetcher that uses aiohttp, with limits on time, size and addresses. Only this file imports aiohttp.

Its resolver refuses private addresses. Connections go to exactly the addresses that were checked, so that a
name cannot change to a private address after the check (DNS rebinding)."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Iterable
from dataclasses import dataclass

import aiohttp
import yarl
from aiohttp.abc import AbstractResolver, ResolveResult

from afresh.sources.http.decompression import BadEncodingError, Inflater, TooLargeError
from afresh.sources.http.fetcher import RATE_WINDOW_S, Reply, Request, ResponseLimits, Trouble
from afresh.sources.http.ip_addresses import (
    NEVER,
    NOT_AN_ADDRESS,
    address_problem,
    plain_address,
    prohibition,
    refusal,
)
from afresh.sources.secrets import Secret
from afresh.values.clock import Clock, SystemClock

_READ_BUFFER = 1 << 16
_NAMES_KEPT = 100_000
_RESOLVE_S = 10.0
_LOCAL = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ENETDOWN, errno.ENETUNREACH}
)
_NO_BODY = frozenset({204, 304})
# aiohttp would add these headers itself; only the headers of the request are sent.
_AUTO_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


class PrivateAddressError(OSError):
    """A URL or a name leads to an address that must not be requested."""


class TooSlowError(Exception):
    """A body arrives with fewer bytes per second than allowed."""


class CheckedResolver(AbstractResolver):
    """Resolves names to public addresses only. ``trusted`` names (that of a proxy) may have any address. With
    ``allow_private``, it refuses only the addresses of ``ip_addresses.prohibition``."""

    def __init__(
        self, inner: AbstractResolver, trusted: Iterable[str] = (), *, allow_private: bool = False
    ) -> None:
        self._inner, self._trusted = inner, frozenset(trusted)
        self._refusal = prohibition if allow_private else refusal

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the allowed addresses of ``host``. Raise ``PrivateAddressError`` if all are forbidden."""
        found = await self._inner.resolve(host, port, family=family)
        if host in self._trusted:
            return found
        public = [answer for answer in found if not self._refusal(answer["host"])]
        if found and not public:
            raise PrivateAddressError(f"{host} leads to {_describe_refusal(found[0]['host'])}")
        return public

    async def close(self) -> None:
        await self._inner.close()


@dataclass(slots=True)
class _Received:
    """The parts of a response that have arrived. They are used even if the rest does not arrive."""

    status: int | None = None
    headers: dict[str, str] | None = None
    body: bytearray | None = None
    wire_bytes: int = 0
    cut: bool = False


class AiohttpFetcher:
    """A ``Fetcher`` that uses aiohttp. It stores no cookies. ``trusted_hosts`` are names that may have
    private addresses. ``proxy`` is a secret because it may contain a password. With a proxy, the proxy
    resolves names, so only URLs with an IP address are checked."""

    def __init__(
        self,
        *,
        allow_private: bool = False,
        trusted_hosts: Iterable[str] = (),
        proxy: Secret | None = None,
        clock: Clock | None = None,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._allow_private, self._proxy = allow_private, proxy
        self._trusted = frozenset(trusted_hosts)
        self._clock = clock or SystemClock()
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None
        self._names: AbstractResolver | None = None
        self._known: set[str] = set()  # hosts that resolved to allowed addresses
        self._closed = False

    async def check_url(self, url: str) -> Reply | None:
        """Check the URL and, if its host is new, the addresses of the host. A known host is checked again
        when a connection to it is opened."""
        try:
            host = self._parse_url(url).host or ""
            if host not in self._known and self._proxy is None and not self._closed:
                await self._resolve(host)
        except PrivateAddressError as error:
            return Reply(trouble="private", problem=f"refused: {error}")
        except ValueError as error:
            trouble, problem = describe_error(error, ResponseLimits(), started=False)
            return Reply(trouble=trouble, problem=problem)
        return None

    async def _resolve(self, host: str) -> None:
        """Raise ``PrivateAddressError`` if ``host`` has only forbidden addresses. A host without any address
        is accepted, because its request will fail later."""
        if refusal(host) == NOT_AN_ADDRESS:
            self._open_session()
            assert self._names is not None
            try:
                async with asyncio.timeout(_RESOLVE_S):
                    await self._names.resolve(host, family=socket.AF_UNSPEC)
            except PrivateAddressError:
                raise
            except OSError:
                return
        if len(self._known) >= _NAMES_KEPT:
            self._known.clear()
        self._known.add(host)

    async def fetch(self, request: Request) -> Reply:
        received = _Received()
        start_s = self._clock.elapsed_s()
        trouble: Trouble | None = None
        problem = ""
        try:
            await self._exchange(request, received)
        except PrivateAddressError as error:
            trouble, problem = "private", f"refused: {error}"
        except TooLargeError as error:
            trouble, problem = "size", str(error)
        except TooSlowError as error:
            trouble, problem = "slow", str(error)
        except BadEncodingError as error:
            trouble, problem = "encoding", str(error)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            trouble, problem = describe_error(error, request.limits, started=received.status is not None)
        if trouble == "private":
            self._known.discard(yarl.URL(request.url).host or "")
        return Reply(
            received.status,
            received.headers or {},
            bytes(received.body or b""),
            received.wire_bytes,
            self._clock.elapsed_s() - start_s,
            received.cut,
            trouble,
            problem,
        )

    async def close(self) -> None:
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _exchange(self, request: Request, received: _Received) -> None:
        url = self._parse_url(request.url)
        limits = request.limits
        # Without ceil_threshold, aiohttp rounds time-outs of more than five seconds up to whole seconds.
        timeout = aiohttp.ClientTimeout(
            total=limits.total_s, connect=limits.connect_s, sock_read=limits.idle_s, ceil_threshold=3600
        )
        async with self._open_session().request(
            request.method,
            url,
            data=request.body or None,
            headers=request.headers,
            allow_redirects=False,
            timeout=timeout,
            max_line_size=limits.max_header_bytes,
            max_field_size=limits.max_header_bytes,
            max_headers=limits.max_headers,
        ) as response:
            received.status = response.status
            received.headers = _join_headers(response)
            received.wire_bytes = sum(len(name) + len(value) + 4 for name, value in response.raw_headers)
            if response.status not in _NO_BODY:
                await _read(response, request, received, self._clock)

    def _parse_url(self, text: str) -> yarl.URL:
        url = yarl.URL(text)
        if url.scheme not in ("http", "https") or not url.host:
            raise aiohttp.InvalidURL(text, "is not an http or https address")
        if url.user is not None or url.password is not None:
            raise aiohttp.InvalidURL(text, "contains a user or password: give it as a header instead")
        if url.host not in self._trusted:
            _check_address(url.host, allow_private=self._allow_private)
        return url

    def _open_session(self) -> aiohttp.ClientSession:
        # Opened on first use, because a session belongs to the running event loop.
        if self._closed:
            raise aiohttp.ClientConnectionError("the source is closed")
        if self._session is None:
            resolver = self._resolver or aiohttp.ThreadedResolver()
            proxy = self._proxy.reveal() if self._proxy else None
            own = {yarl.URL(proxy).host or ""} if proxy else set()
            self._names = CheckedResolver(resolver, self._trusted | own, allow_private=self._allow_private)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, resolver=self._names),  # HostThrottle sets limits
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,  # Inflater decompresses within limits
                skip_auto_headers=_AUTO_HEADERS,
                read_bufsize=_READ_BUFFER,
                proxy=proxy,
                trust_env=False,
            )
        return self._session


async def resolve_checked(
    host: str, port: int, *, allow_private: bool, resolver: AbstractResolver | None = None
) -> list[str]:
    """Return the allowed addresses of a host, to which alone a connection may be opened, for programs that
    open connections themselves. Raise ``PrivateAddressError`` if there are only forbidden ones."""
    _check_address(host, allow_private=allow_private)
    if refusal(plain_address(host)) != NOT_AN_ADDRESS:
        return [plain_address(host)]
    checked = CheckedResolver(resolver or aiohttp.ThreadedResolver(), allow_private=allow_private)
    async with asyncio.timeout(_RESOLVE_S):
        found = await checked.resolve(host, port, family=socket.AF_UNSPEC)
    return [answer["host"] for answer in found]


def _check_address(host: str, *, allow_private: bool) -> None:
    """Raise ``PrivateAddressError`` for a forbidden IP address, and for names of this machine (localhost)."""
    problem = address_problem(host, allow_private=allow_private)
    if problem:
        raise PrivateAddressError(problem)


def _describe_refusal(host: str) -> str:
    never = prohibition(host)
    return f"{host}, a {never} address, {NEVER}" if never else f"{host}, a {refusal(host)} address"


async def _read(
    response: aiohttp.ClientResponse, request: Request, received: _Received, clock: Clock
) -> None:
    limits = request.limits
    declared = response.content_length
    if declared is not None and declared > limits.max_bytes and not request.cut:
        response.close()
        raise TooLargeError(f"body is {declared} bytes, more than the {limits.max_bytes} allowed")
    inflater = Inflater(
        response.headers.get("Content-Encoding", ""), max_bytes=limits.max_bytes, max_ratio=limits.max_ratio
    )
    received.body = bytearray()
    window_s, window_bytes = clock.elapsed_s(), received.wire_bytes
    try:
        async for chunk in response.content.iter_any():
            received.wire_bytes += len(chunk)
            received.body += inflater.feed(chunk)
            lasted_s = clock.elapsed_s() - window_s
            if lasted_s >= RATE_WINDOW_S:
                if received.wire_bytes - window_bytes < limits.least_rate * lasted_s:
                    response.close()
                    raise TooSlowError(f"came with fewer than {limits.least_rate:g} bytes per second")
                window_s, window_bytes = window_s + lasted_s, received.wire_bytes
    except TooLargeError:
        response.close()
        if not request.cut:
            received.body = None
            raise
        received.cut = True
        return
    inflater.finish()


def _join_headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    """Return the headers as valid text. The values of a repeated header are joined by commas (RFC 9110),
    those of Set-Cookie, which contain commas, by line ends."""
    joined: dict[str, str] = {}
    for name, value in response.headers.items():
        text = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        lower = name.lower()
        between = "\n" if lower == "set-cookie" else ", "
        joined[lower] = f"{joined[lower]}{between}{text}" if lower in joined else text
    return joined


def describe_error(error: Exception, limits: ResponseLimits, *, started: bool) -> tuple[Trouble, str]:
    """Return a tuple (kind of trouble, description in one line) for an error of a request. ``started`` is
    True if the status of the response had arrived before the error."""
    # The order matters: subclasses in aiohttp's error tree come before their base classes.
    match error:
        case aiohttp.ClientConnectorDNSError():
            if isinstance(error.os_error, PrivateAddressError):
                return "private", f"refused: {error.os_error}"
            trouble: Trouble = "local" if error.os_error.errno == socket.EAI_AGAIN else "dns"
            return trouble, f"no address found for {error.host}: {_reason(error.os_error)}"
        case aiohttp.ClientConnectorCertificateError():
            return "tls", f"TLS certificate is not valid: {_reason(error.certificate_error)}"
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return "tls", f"TLS failed: {_reason(error)}"
        case aiohttp.ConnectionTimeoutError():
            return "timeout", f"no connection within {limits.connect_s:g} s"
        case aiohttp.SocketTimeoutError():
            return "timeout", f"silent for {limits.idle_s:g} s"
        case TimeoutError():
            state = "answer not finished" if started else "no answer"
            return "timeout", f"{state} within {limits.total_s:g} s"
        case aiohttp.ClientPayloadError():
            return "body", "body ends early or is malformed"
        case aiohttp.InvalidURL():
            return "url", f"not an address to fetch: {error.description or 'malformed'}"
        case aiohttp.ClientHttpProxyError():
            return "local", f"the proxy answers with status {error.status}"
        case aiohttp.ClientResponseError():
            return _bad_head(error.message, limits)
        case aiohttp.ServerDisconnectedError():
            return "connect", "connection dropped before an answer"
        case aiohttp.ClientConnectorError():
            trouble = "local" if error.os_error.errno in _LOCAL else "connect"
            return trouble, f"cannot connect: {_reason(error.os_error)}"
        case aiohttp.ClientError() | OSError():
            return ("body" if started else "connect"), f"connection broke: {_reason(error)}"
        case _:
            return "url", f"not an address to fetch: {_reason(error)}"


def _bad_head(message: str, limits: ResponseLimits) -> tuple[Trouble, str]:
    words = " ".join(message.split())
    if "Too many headers" in words:
        return "headers", f"more than {limits.max_headers} headers"
    if "Got more than" in words:
        return "headers", f"a header of more than {limits.max_header_bytes} bytes"
    # The bytes that follow ": b" come from the server and are not shown.
    return "protocol", f"not HTTP: {words.partition(': b')[0][:100]}"


def _reason(error: BaseException) -> str:
    words = getattr(error, "verify_message", "") or getattr(error, "strerror", "") or str(error)
    return " ".join(str(words).split())[:160] or type(error).__name__
