"""The protocol of fetchers, with HTTP requests and replies; only a fetcher uses an HTTP library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from afresh.version import __version__

USER_AGENT = f"afresh/{__version__} (+https://pypi.org/project/afresh/)"

_BeforeReply: TypeAlias = Literal["url", "private", "local", "dns", "connect", "tls", "timeout"]
_InReply: TypeAlias = Literal["protocol", "headers", "body", "size", "encoding"]
Trouble: TypeAlias = Literal[_BeforeReply, _InReply]
"""The reason why a reply is not complete. ``local`` is a problem of this machine, such as no network."""


@dataclass(frozen=True, slots=True)
class ResponseLimits:
    """The limits of one response. ``idle_s`` is the longest pause, ``total_s`` the longest duration.
    ``max_bytes`` limits the size of the body, both compressed and decompressed, ``max_ratio`` the ratio of
    the two sizes, ``max_header_bytes`` the length of one header line, ``max_headers`` the number of
    headers."""

    connect_s: float = 10.0
    idle_s: float = 20.0
    total_s: float = 60.0
    max_bytes: int = 50_000_000
    max_ratio: float = 200.0
    max_header_bytes: int = 8190
    max_headers: int = 128


@dataclass(frozen=True, slots=True)
class Request:
    """A GET request. Headers may be secret and are not shown. ``cut``: truncate a body that is too long."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    limits: ResponseLimits = field(default_factory=ResponseLimits)
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a request: status, headers (names in lower case) and body, or the ``trouble`` with it."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)
    wire_bytes: int = 0
    seconds: float = 0.0
    cut: bool = False
    trouble: Trouble | None = None
    problem: str = ""

    @property
    def host_is_down(self) -> bool:
        """Whether the host could not be reached, so that other pages of it would fail as well."""
        return self.status is None and self.trouble in ("dns", "connect", "tls", "timeout", "protocol")


class Fetcher(Protocol):
    """Sends any number of requests at a time, on one event loop. It does not follow redirects."""

    async def check_url(self, url: str) -> Reply | None:
        """Return a reply with ``trouble`` if the URL must not be requested; None if it may."""

    async def fetch(self, request: Request) -> Reply:
        """Return the reply within ``request.limits``; it describes problems, which are never raised."""

    async def close(self) -> None:
        """Close all connections. May be called twice."""
