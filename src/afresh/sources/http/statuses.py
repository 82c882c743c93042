"""Decide what an HTTP reply means for its item and its host, and parse HTTP dates. All functions are pure."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

from afresh.sources.http.fetcher import Reply
from afresh.sources.http.politeness import HostCondition
from afresh.values.fetched import FetchedKind

REDIRECTS = frozenset({301, 302, 303, 307, 308})
PERMANENT = frozenset({301, 308})
SAME_METHOD = frozenset({307, 308})  # a POST request stays one
WITH_CONTENT = frozenset({200, 203, 204})
_BUSY = frozenset({502, 503, 504})
_GONE = frozenset({404, 410})
_REFUSED = frozenset({401, 402, 403, 407, 451})
_NOT_MODIFIED, _TOO_MANY_REQUESTS, _UNAVAILABLE = 304, 429, 503
_LONGEST_S = 366 * 86400.0


def host_condition(reply: Reply) -> HostCondition:
    """Return what the reply shows about its host: "fine", "limited", "busy" or "down".

    >>> [host_condition(reply) for reply in (Reply(429), Reply(503), Reply(500))]
    ['limited', 'busy', 'fine']
    >>> host_condition(Reply(trouble="local"))      # this machine has no network
    'fine'
    """
    if reply.host_is_down:
        return "down"
    asks_to_wait = reply.status == _UNAVAILABLE and "retry-after" in reply.headers
    if reply.status == _TOO_MANY_REQUESTS or asks_to_wait:
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
    words = _in_words(status)
    if status == _NOT_MODIFIED and conditional:
        return "unchanged", ""
    if status == _NOT_MODIFIED:
        return "failed", f"{words} to a request that asked for the content"
    if status in _GONE:
        return "gone", words
    if status in _REFUSED:
        return "refused", words
    if status in REDIRECTS:
        return "failed", f"{words} without an address to follow"
    return "failed", words


def _in_words(status: int) -> str:
    from http.client import responses  # slow to import, and most commands need no words for a status

    return f"{status} {responses[status]}" if status in responses else f"status {status}"


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
