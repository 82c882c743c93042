"""What an HTTP answer that brings no content means, for the item and for its host; pure."""

from __future__ import annotations

from http import HTTPStatus

from afresh.sources.http.dates import retry_after_s
from afresh.sources.http.fetcher import Reply
from afresh.sources.http.politeness import HostCondition
from afresh.values.fetched import FetchedKind

REDIRECTS = frozenset({301, 302, 303, 307, 308})
PERMANENT = frozenset({301, 308})
WITH_CONTENT = frozenset({200, 203, 204})
_BUSY = frozenset({429, 502, 503, 504})
_GONE = frozenset({404, 410})
_REFUSED = frozenset({401, 402, 403, 407, 451})


def host_condition(reply: Reply) -> HostCondition:
    """How the answer bears on its host.

    >>> [host_condition(reply) for reply in (Reply(503), Reply(500), Reply(trouble="connect"))]
    ['busy', 'fine', 'down']
    >>> host_condition(Reply(trouble="local"))      # no network here is not the host's fault
    'fine'
    """
    if reply.host_is_down:
        return "down"
    return "busy" if reply.status in _BUSY else "fine"


def requested_delay_s(reply: Reply, now_s: float) -> float | None:
    """How long the host asks to be left alone.

    >>> requested_delay_s(Reply(429, {"retry-after": "60"}), 0.0), requested_delay_s(Reply(200), 0.0)
    (60.0, None)
    """
    return retry_after_s(reply.headers.get("retry-after"), now_s) if reply.status in (429, 503) else None


def classify_reply(reply: Reply, *, conditional: bool) -> tuple[FetchedKind, str]:
    """The kind of an answer that is no content, and the words for it.

    >>> classify_reply(Reply(410), conditional=False)
    ('gone', '410 Gone')
    >>> classify_reply(Reply(304), conditional=False)
    ('failed', '304 Not Modified to a request that asked for the content')
    """
    if reply.trouble is not None:
        return ("refused" if reply.trouble in ("private", "url") else "failed"), reply.problem
    status = reply.status or 0
    words = _words(status)
    if status == HTTPStatus.NOT_MODIFIED:
        return (
            ("unchanged", "")
            if conditional
            else ("failed", f"{words} to a request that asked for the content")
        )
    if status in _GONE:
        return "gone", words
    if status in _REFUSED:
        return "refused", words
    if status in REDIRECTS:
        return "failed", f"{words} without an address to follow"
    return "failed", words


def _words(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"status {status}"
