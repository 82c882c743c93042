"""The protocol of fetchers, and their requests and replies. Only a fetcher uses an HTTP library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from afresh.version import __version__

USER_AGENT = f"afresh/{__version__} (+https://pypi.org/project/afresh/)"

RATE_WINDOW_S = 10.0

_BeforeReply: TypeAlias = Literal["url", "private", "local", "dns", "connect", "tls", "timeout"]
_InReply: TypeAlias = Literal["protocol", "headers", "body", "size", "encoding", "slow"]
Trouble: TypeAlias = Literal[_BeforeReply, _InReply]
"""The reason why a reply is not complete. ``local`` is a problem of this computer, such as no network."""


@dataclass(frozen=True, slots=True)
class ResponseLimits:
    """The limits of one request and its response.

    ``connect_s`` is the longest time to connect, ``idle_s`` the longest pause, ``total_s`` the longest
    duration (seconds). ``max_bytes`` limits the size of the body, both compressed and decompressed, and
    ``max_ratio`` the ratio of the two sizes. ``max_header_bytes`` limits one header line, ``max_headers`` the
    number of headers. The body must come with at least ``least_rate`` bytes per second, measured over each
    ``RATE_WINDOW_S`` seconds."""

    connect_s: float = 10.0
    idle_s: float = 20.0
    total_s: float = 60.0
    max_bytes: int = 50_000_000
    max_ratio: float = 200.0
    max_header_bytes: int = 8190
    max_headers: int = 128
    least_rate: float = 1000.0


@dataclass(frozen=True, slots=True)
class Request:
    """A request; ``body`` is what a POST request sends. Address, headers and body may contain secrets and are
    not shown. If ``cut`` is True, an answer that is too long is truncated; otherwise it is an error. With
    ``render``, a fetcher that has a browser returns the page as the browser shows it."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    limits: ResponseLimits = field(default_factory=ResponseLimits)
    cut: bool = False
    method: str = "GET"
    body: bytes = field(default=b"", repr=False)
    render: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a request: status, headers (names in lower case) and body. ``trouble`` is None if the
    reply is complete; otherwise ``problem`` describes in one line what went wrong. ``wire_bytes`` is the
    number of bytes received, ``seconds`` the duration. ``cut`` is True if the body was truncated.
    If ``body`` is a page as a browser shows it, ``plain`` is what the server sent. ``requests`` is the number
    of requests that were sent."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)
    wire_bytes: int = 0
    seconds: float = 0.0
    cut: bool = False
    trouble: Trouble | None = None
    problem: str = ""
    plain: Reply | None = field(default=None, repr=False)
    requests: int = 1

    @property
    def host_is_down(self) -> bool:
        """Whether the host could not be reached, or keeps a request waiting, so that its other pages would
        fail as well."""
        if self.trouble in ("timeout", "slow"):
            return True
        return self.status is None and self.trouble in ("dns", "connect", "tls", "protocol")


class Fetcher(Protocol):
    """Sends HTTP requests on one event loop, any number at a time. It does not follow redirects."""

    async def check_url(self, url: str) -> Reply | None:
        """Return a reply with ``trouble`` if the URL must not be requested, or None if that is allowed."""

    async def fetch(self, request: Request) -> Reply:
        """Send a request and return its reply. Problems are described in the reply and never raised."""

    async def close(self) -> None:
        """Close all connections. It may be called twice."""
