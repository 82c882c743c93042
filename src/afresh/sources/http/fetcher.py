"""One HTTP request and its answer, behind a small protocol, so that only one file knows the HTTP library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from afresh.version import __version__

USER_AGENT = f"afresh/{__version__} (+https://pypi.org/project/afresh/)"

Trouble: TypeAlias = Literal[
    "url",
    "private",
    "local",
    "dns",
    "connect",
    "tls",
    "timeout",
    "protocol",
    "headers",
    "body",
    "size",
    "encoding",
]
"""Why there is no (whole) answer. ``local`` is this machine's own trouble: no network, no file handles."""


@dataclass(frozen=True, slots=True)
class ResponseLimits:
    """What an answer may cost. ``idle_s`` is the longest silence, ``total_s`` the longest answer.

    ``max_bytes`` bounds the body as sent and as decompressed, ``max_ratio`` its expansion,
    ``max_header_bytes`` one header line, ``max_headers`` their number.
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
    """A GET. Headers may hold secrets: they are never shown. ``cut``: a body too long is cut, not refused."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    limits: ResponseLimits = field(default_factory=ResponseLimits)
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a request: a status with headers (names in lower case) and body, or a trouble in words."""

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
    """Sends requests. One event loop; any number at once; redirects are answers like any other."""

    async def barred(self, url: str) -> Reply | None:
        """The trouble with an address that must not be asked, as far as it shows before anything is sent."""

    async def fetch(self, request: Request) -> Reply:
        """The answer within ``request.limits``. Raises nothing for what a URL, network or server may do."""

    async def close(self) -> None:
        """Close every connection; idempotent."""
