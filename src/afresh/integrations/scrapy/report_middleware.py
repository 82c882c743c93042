"""A downloader middleware that reports what became of the requests of leased items."""

from __future__ import annotations

import base64
from typing import Any, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from afresh.integrations.scrapy.lease_scheduler import LEASE
from afresh.integrations.scrapy.lease_session import LeaseSession, session_of
from afresh.sources.http.statuses import WITH_CONTENT, retry_after_s
from afresh.values.clock import SystemClock

_MOST_BYTES = 20_000_000  # of a page that is reported
_KINDS = {"Timeout": "timeout", "Resolve": "dns", "DNS": "dns", "SSL": "tls", "TLS": "tls"}
_KINDS |= {"Connect": "connect", "DownloadFailed": "connect"}  # a part of an exception's name, and the word


class ReportMiddleware:
    """Sees the last response to a request, after redirects and decompression, or the exception instead."""

    def __init__(self, session: LeaseSession) -> None:
        self._session = session

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(session_of(crawler))

    def process_response(self, request: Request, response: Response) -> Response:
        if LEASE in request.meta:
            self._session.report(request.meta[LEASE] | response_fields(request, response))
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        if LEASE in request.meta:
            row = {"time": SystemClock().now_s(), "failure": failure_word(exception)}
            self._session.report(request.meta[LEASE] | row)


def response_fields(request: Request, response: Response) -> dict[str, Any]:
    """Return what a report says about a response."""
    now_s = SystemClock().now_s()
    row: dict[str, Any] = {
        "time": now_s,
        "status": response.status,
        "bytes": len(response.body),
        "seconds": max(float(request.meta.get("download_latency", 0.0)), 0.0),
    }
    if len(response.body) > _MOST_BYTES:
        row |= {"status": None, "failure": "size"}
    elif response.status in WITH_CONTENT:
        row["content_base64"] = base64.b64encode(response.body).decode()
        row["media_type"] = _header(response, "Content-Type")[:200]
    texts = {"etag": _header(response, "ETag"), "last_modified": _header(response, "Last-Modified")}
    if response.url != request.meta[LEASE]["item"]:
        texts["url"] = response.url
    wait_s = retry_after_s(_header(response, "Retry-After"), now_s)
    return (
        row
        | {name: text for name, text in texts.items() if text}
        | ({"retry_after": wait_s} if wait_s else {})
    )


def failure_word(exception: Exception) -> str:
    """Return why there was no response: a word that afresh knows, or the words of the exception.

    >>> failure_word(TimeoutError("after 5 s")), failure_word(IgnoreRequest("Forbidden by robots.txt"))
    ('timeout', 'refused: Forbidden by robots.txt')
    """
    if isinstance(exception, IgnoreRequest):
        return f"refused: {exception}"
    names = [one.__name__ for one in type(exception).__mro__]
    found = [word for part, word in _KINDS.items() if any(part in name for name in names)]
    return found[0] if found else f"{type(exception).__name__}: {exception}"[:300]


def _header(response: Response, name: str) -> str:
    value = response.headers.get(name)
    return value.decode("latin-1") if value else ""
