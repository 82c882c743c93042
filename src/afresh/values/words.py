"""Numbers of things and moments, as a sentence says them."""

from __future__ import annotations

import math
from datetime import UTC, datetime


def counted(number: int, thing: str) -> str:
    """A number with its thing, one or several.

    >>> counted(1, "poll"), counted(0, "copy"), counted(1234, "item")
    ('1 poll', '0 copies', '1,234 items')
    """
    return f"{number:,} {thing if number == 1 else plural(thing)}"


def plural(thing: str) -> str:
    """Several of a thing.

    >>> plural("host"), plural("copy"), plural("day")
    ('hosts', 'copies', 'days')
    """
    return f"{thing[:-1]}ies" if thing[-1:] == "y" and thing[-2:-1] not in "aeiou" else f"{thing}s"


def moment(seconds: float) -> str:
    """A time with its date, UTC.

    >>> moment(0.0), moment(math.inf)
    ('1970-01-01 00:00:00 UTC', 'never')
    """
    if not math.isfinite(seconds):
        return "never"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
