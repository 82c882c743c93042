"""Settings of a source of kind ``http``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from afresh.sources.http.decompression import ENCODINGS
from afresh.sources.http.fetcher import USER_AGENT, ResponseLimits
from afresh.sources.http.politeness import Politeness
from afresh.sources.settings import Seconds, Size, SomeSeconds, SourceSettings, Texts
from afresh.values.errors import UsageError


class HttpSettings(SourceSettings):
    """A source of kind ``http``: items are addresses of pages.

    ``headers``, ``cookies`` and ``proxy`` may be secrets (``env:NAME``). Headers and cookies are sent only to
    the hosts of the items themselves, never along a redirect to another host. ``sitemaps``, ``feeds`` and
    ``discover`` (start pages) list items. ``queue_time`` is how long a poll may wait for its turn at a host.
    """

    kind: Literal["http"] = "http"
    sitemaps: Texts = ()
    feeds: Texts = ()
    discover: Texts = ()
    max_listings: int = Field(default=1000, ge=1)
    user_agent: str = Field(default=USER_AGENT, min_length=1)
    respect_robots: bool = True
    delay: Seconds = 1.0
    concurrency: int = Field(default=1, ge=1)
    first_rest: SomeSeconds = 10.0
    longest_rest: SomeSeconds = 86400.0
    queue_time: Seconds = 30.0
    allow_private: bool = False
    headers: Mapping[str, str] = Field(default_factory=dict, repr=False)
    cookies: Mapping[str, str] = Field(default_factory=dict, repr=False)
    proxy: str = Field(default="", repr=False)
    accept_encoding: str = "gzip, deflate"
    connect_timeout: SomeSeconds = 10.0
    idle_timeout: SomeSeconds = 20.0
    max_size: Size = 50_000_000
    max_ratio: float = Field(default=200.0, gt=1)
    max_header_size: Size = 8190
    max_headers: int = Field(default=128, ge=8)
    max_redirects: int = Field(default=5, ge=0)
    soft_errors: Texts = ()

    @property
    def lists_items(self) -> bool:
        """Whether the settings name documents to read."""
        return bool(self.sitemaps or self.feeds or self.discover)

    @property
    def delay_s(self) -> float | None:
        """The setting ``delay``."""
        return self.delay

    @property
    def polls_at_once(self) -> int:
        """The setting ``concurrency``."""
        return self.concurrency

    @property
    def first_rest_s(self) -> float:
        """The setting ``first_rest``."""
        return self.first_rest

    @property
    def access_fingerprint(self) -> str:
        """The rules for addresses and robots.txt, and our identity; of headers only the names."""
        names = [*sorted(self.headers), *sorted(self.cookies)]
        own = bool(self.proxy), self.user_agent, *names
        return repr((self.allow_private, self.respect_robots, *own))

    @property
    def limits(self) -> ResponseLimits:
        """The limits of one response."""
        return ResponseLimits(
            self.connect_timeout,
            self.idle_timeout,
            self.timeout,
            self.max_size,
            self.max_ratio,
            self.max_header_size,
            self.max_headers,
        )

    @property
    def politeness(self) -> Politeness:
        """The politeness rules for hosts."""
        return Politeness(self.delay, self.concurrency, self.first_rest, self.longest_rest)

    @property
    def error_patterns(self) -> tuple[re.Pattern[str], ...]:
        """The compiled patterns of ``soft_errors``."""
        try:
            return tuple(re.compile(pattern) for pattern in self.soft_errors)
        except re.error as error:
            raise UsageError(f"soft_errors: not a regular expression: {error}") from None

    def model_post_init(self, context: Any, /) -> None:
        """Check patterns and encodings on load, so that mistakes show early."""
        super().model_post_init(context)
        _ = self.error_patterns
        for encoding in re.split(r"[,\s]+", self.accept_encoding):
            if encoding and encoding not in ENCODINGS:
                raise UsageError(f"accept_encoding: cannot read {encoding!r}, only {', '.join(ENCODINGS)}")
