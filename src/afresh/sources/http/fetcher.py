"""One HTTP request and its reply, behind a small protocol, so that only one file knows the HTTP library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from afresh.version import __version__

USER_AGENT = f"afresh/{__version__} (+https://pypi.org/project/afresh/)"

_BeforeReply: TypeAlias = Literal["url", "private", "local", "dns", "connect", "tls", "timeout"]
_InReply: TypeAlias = Literal["protocol", "headers", "body", "size", "encoding"]
Trouble: TypeAlias = Literal[_BeforeReply, _InReply]
"""Why there is no complete reply. ``local`` is a problem of this machine: no network, no file handles."""


@dataclass(frozen=True, slots=True)
class ResponseLimits:
    """The limits of one response. ``idle_s`` is the longest silence, ``total_s`` the longest duration.

    ``max_bytes`` bounds the body both compressed and decompressed, ``max_ratio`` the ratio of the two,
    ``max_header_bytes`` the length of one header line, and ``max_headers`` the number of headers.
    """

    connect_s: float = 10.0
    idle_s: float = 20.0
    total_s: float = 60.0
    max_bytes: int = 50_000_000
    max_ratio: float = 200.0
    max_header_bytes: int = 8190
    max_headers: int = 128


@dataclass(frozen=True, slots=True)
class Request:
    """A GET request. Headers may hold secrets and are not shown. ``cut``: truncate a long body."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    limits: ResponseLimits = field(default_factory=ResponseLimits)
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a request: status, headers (names in lower case) and body, or a described trouble."""

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
        """Whether the host itself could not be reached, rather than this one page."""
        return self.status is None and self.trouble in ("dns", "connect", "tls", "timeout", "protocol")


class Fetcher(Protocol):
    """Sends requests on one event loop, any number at a time; a redirect is a reply like any other."""

    async def check_url(self, url: str) -> Reply | None:
        """Return the trouble with an address that must not be requested, as far as it is known."""

    async def fetch(self, request: Request) -> Reply:
        """Return the reply within ``request.limits``; raise nothing for what a network or server does."""

    async def close(self) -> None:
        """Close every connection; may be called twice."""
