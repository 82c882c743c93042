"""Decide what an HTTP reply means for its item and its host, and parse HTTP dates. All functions are pure.

A page with status 200 may be an error page (a login, a captcha, a server error), which is no change. Such
pages are recognised by their whole title, because real pages hardly ever have these titles, or by a redirect
to a login page. A source can add its own patterns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.client import responses
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from afresh.sources.http.fetcher import Reply
from afresh.sources.http.politeness import HostCondition
from afresh.sources.linear_pattern import LinearPattern
from afresh.sources.text_decoding import decode
from afresh.values.fetched import FetchedKind

SoftKind: TypeAlias = Literal["refused", "failed"]

REDIRECTS = frozenset({301, 302, 303, 307, 308})
PERMANENT = frozenset({301, 308})
WITH_CONTENT = frozenset({200, 203, 204})
_BUSY = frozenset({502, 503, 504})
_GONE = frozenset({404, 410})
_REFUSED = frozenset({401, 402, 403, 407, 451})
_LONGEST_S = 366 * 86400.0
_HEAD_BYTES = 1 << 16
_TITLE = re.compile(rb"<title[^>]{0,200}>(.{0,300}?)</title", re.IGNORECASE | re.DOTALL)
_LOGIN_PATH = re.compile(
    r"/(?:log-?in|sign-?in|sso|users/sign_in|account/login|cas/login)(?:[/.?]|$)", re.IGNORECASE
)
_TITLES: tuple[tuple[SoftKind, re.Pattern[str]], ...] = (
    (
        "refused",
        re.compile(
            r"just a moment\W*|attention required\W.*|access denied|are you (?:a )?(?:human|robot)\W*|"
            r"(?:security|robot|human) (?:check|verification)|captcha|ddos-guard|"
            r"please (?:wait|verify)\W.*(?:human|robot|browser)\W*|pardon our interruption\W*",
            re.IGNORECASE,
        ),
    ),
    (
        "failed",
        re.compile(
            r"(?:http )?error 50[0-4]\W*|(?:(?:http )?(?:error )?50[0-4]\W{1,4})?(?:"
            r"bad gateway|gateway time-?out|service (?:temporarily )?unavailable|internal server error|"
            r"(?:down for|under|site) maintenance|application error|database error)\W*",
            re.IGNORECASE,
        ),
    ),
)


def host_condition(reply: Reply) -> HostCondition:
    """Return what the reply shows about its host: "fine", "limited", "busy" or "down".

    >>> [host_condition(reply) for reply in (Reply(429), Reply(503), Reply(500))]
    ['limited', 'busy', 'fine']
    >>> host_condition(Reply(trouble="local"))      # this machine has no network
    'fine'
    """
    if reply.host_is_down:
        return "down"
    asks_to_wait = reply.status == HTTPStatus.SERVICE_UNAVAILABLE and "retry-after" in reply.headers
    if reply.status == HTTPStatus.TOO_MANY_REQUESTS or asks_to_wait:
        return "limited"
    return "busy" if reply.status in _BUSY else "fine"


def requested_delay_s(reply: Reply, now_s: float) -> float | None:
    """Return how many seconds the host asks to wait (Retry-After), or None if it asks for no wait.

    >>> requested_delay_s(Reply(429, {"retry-after": "60"}), 0.0), requested_delay_s(Reply(200), 0.0)
    (60.0, None)
    """
    return retry_after_s(reply.headers.get("retry-after"), now_s) if reply.status in (429, 503) else None


def classify_reply(reply: Reply, *, conditional: bool) -> tuple[FetchedKind, str]:
    """Return a tuple (kind of result, description of the problem) for a reply without content.
    ``conditional`` is True if the request contained validators.

    >>> classify_reply(Reply(410), conditional=False)
    ('gone', '410 Gone')
    >>> classify_reply(Reply(304), conditional=False)
    ('failed', '304 Not Modified to a request that asked for the content')
    """
    if reply.trouble is not None:
        return ("refused" if reply.trouble in ("private", "url") else "failed"), reply.problem
    status = reply.status or 0
    words = f"{status} {responses[status]}" if status in responses else f"status {status}"
    if status == HTTPStatus.NOT_MODIFIED and conditional:
        return "unchanged", ""
    if status == HTTPStatus.NOT_MODIFIED:
        return "failed", f"{words} to a request that asked for the content"
    if status in _GONE:
        return "gone", words
    if status in _REFUSED:
        return "refused", words
    if status in REDIRECTS:
        return "failed", f"{words} without an address to follow"
    return "failed", words


def http_date_s(text: str | None) -> float | None:
    """Return an HTTP date in Unix seconds, or None if ``text`` is None or malformed.

    >>> http_date_s("Thu, 01 Jan 1970 00:01:00 GMT"), http_date_s("yesterday"), http_date_s(None)
    (60.0, None, None)
    """
    if not text or len(text) > 100:
        return None
    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def retry_after_s(text: str | None, now_s: float) -> float | None:
    """Return the seconds to wait that a Retry-After header states, as a number or a date; at most a year.
    None means that the header is missing or malformed.

    >>> retry_after_s("120", 0.0), retry_after_s("Thu, 01 Jan 1970 00:01:00 GMT", 20.0)
    (120.0, 40.0)
    """
    if not text:
        return None
    stripped = text.strip()
    if stripped.isascii() and stripped.isdigit():
        return min(float(stripped[:12]), _LONGEST_S)
    date_s = http_date_s(stripped)
    return None if date_s is None else min(max(0.0, date_s - now_s), _LONGEST_S)


def soft_error(
    body: bytes, media_type: str, asked: str, arrived: str, patterns: Sequence[LinearPattern] = ()
) -> tuple[SoftKind, str] | None:
    """Return a tuple (kind, description) if the page is an error page with status 200, else None. ``asked``
    is the URL requested, ``arrived`` the URL after redirects. ``patterns`` are those of the source.

    >>> soft_error(b"<title>Just a moment...</title>", "text/html", "http://a.test/", "http://a.test/")
    ('refused', "asks whether we are human: its title is 'Just a moment...'")
    """
    if asked != arrived and _LOGIN_PATH.search(urlsplit(arrived).path) and not _LOGIN_PATH.search(asked):
        return "refused", "leads to a login page"
    for pattern in patterns:
        if pattern.occurs_in(decode(body[:_HEAD_BYTES], media_type)):
            return "failed", f"error page: matches {pattern.text!r}"
    found = _TITLE.search(body[:_HEAD_BYTES]) if "html" in media_type or not media_type else None
    title = " ".join(decode(found[1], media_type).split()) if found else ""
    for kind, known in _TITLES:
        if title and known.fullmatch(title):
            words = "asks whether we are human" if kind == "refused" else "error page"
            return kind, f"{words}: its title is {title[:80]!r}"
    return None
