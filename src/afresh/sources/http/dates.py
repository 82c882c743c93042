"""HTTP's dates and Retry-After, as seconds; what is malformed is None."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

_LONGEST_S = 366 * 86400.0


def http_date_s(text: str | None) -> float | None:
    """Unix seconds of an HTTP date.

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
    """Seconds that a Retry-After asks for, a number or a date, at most a year.

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
