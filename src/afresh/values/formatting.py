"""Format counts, times and error messages for people."""

from __future__ import annotations

import math
from datetime import UTC, datetime

_BYTE_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_LONGEST_LINE = 200


def format_count(number: int, thing: str) -> str:
    """Return a number followed by the noun ``thing``, in the singular or plural.

    >>> format_count(1, "poll"), format_count(0, "copy"), format_count(1234, "item")
    ('1 poll', '0 copies', '1,234 items')
    """
    return f"{number:,} {thing if number == 1 else plural(thing)}"


def plural(thing: str) -> str:
    """Return the plural of an English noun.

    >>> plural("host"), plural("copy"), plural("day")
    ('hosts', 'copies', 'days')
    """
    return f"{thing[:-1]}ies" if thing[-1:] == "y" and thing[-2:-1] not in "aeiou" else f"{thing}s"


def format_moment(seconds: float) -> str:
    """Return the date and time of day, in UTC, of a time in Unix seconds; infinity is "never".

    >>> format_moment(0.0), format_moment(math.inf)
    ('1970-01-01 00:00:00 UTC', 'never')
    """
    if not math.isfinite(seconds):
        return "never"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def format_bytes(octets: float) -> str:
    """Return a number of bytes with its unit.

    >>> format_bytes(1_530_000), format_bytes(12)
    ('1.53 MB', '12 B')
    """
    for scale, unit in _BYTE_UNITS:
        if octets >= scale:
            return f"{octets / scale:.3g} {unit}"
    return f"{octets:.0f} B"


def format_iso_time(unix_s: float) -> str:
    """Return a time in ISO 8601, UTC, or the number itself if the calendar has no such date.

    >>> format_iso_time(1_700_000_000), format_iso_time(0.25), format_iso_time(1e15)
    ('2023-11-14T22:13:20Z', '1970-01-01T00:00:00.250000Z', '1000000000000000')
    """
    try:
        return datetime.fromtimestamp(unix_s, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{unix_s:.17g}"


def one_line(text: object) -> str:
    """Return a text or an error's message as one line of at most 200 characters.

    >>> one_line("ERROR:  no\\n  such thing"), len(one_line("x" * 1000))
    ('ERROR: no such thing', 201)
    """
    line = " ".join(str(text).split())
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
