"""Moments on the command line: Unix seconds or ISO 8601, UTC unless said."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from afresh.values.errors import UsageError


def parse_moment(option: str, text: str | None) -> float | None:
    """Unix seconds, or None where nothing is given.

    >>> parse_moment("--start", "2024-01-01"), parse_moment("--start", "1700000000.5")
    (1704067200.0, 1700000000.5)
    >>> parse_moment("--start", "2024-01-01T00:00:00+01:00")
    1704063600.0
    >>> parse_moment("--end", "soon")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: --end 'soon' is not a time: give Unix seconds or ISO 8601, \
such as 2026-01-31T12:00:00Z
    """
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = _from_iso(text)
    if not math.isfinite(seconds):
        right = "give Unix seconds or ISO 8601, such as 2026-01-31T12:00:00Z"
        raise UsageError(f"{option} {text!r} is not a time: {right}")
    return seconds


def _from_iso(text: str) -> float:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
