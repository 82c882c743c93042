"""Formats numbers, times and rates as text, for the pages and the live updates."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from afresh.values.formatting import format_bytes as format_bytes
from afresh.values.units import UNIT_SECONDS, format_duration

NOTHING = "–"
_RATE_UNITS = ("s", "m", "h", "d", "w", "y")
_UNIT_WORDS = {"s": "s", "m": "min", "h": "h", "d": "day", "w": "week", "y": "year"}


def format_whole(value: float) -> str:
    """Return a number, rounded to a whole number, with a comma between groups of three digits.

    >>> format_whole(1234567)
    '1,234,567'
    """
    return f"{round(value):,}"


def format_number(value: float | None) -> str:
    """Return a number with three significant digits. From a thousand million on it has an exponent.

    >>> [format_number(value) for value in (0.12345, -1234567.0, 1e9, None, math.inf)]
    ['0.123', '-1,230,000', '1e+09', '–', '∞']
    """
    if value is None or math.isnan(value):
        return NOTHING
    if not math.isfinite(value):
        return "∞"
    return f"{float(f'{value:.3g}'):,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.3g}"


def format_share(value: float | None) -> str:
    """Return a share between 0 and 1 in per cent.

    >>> format_share(0.8734), format_share(math.nan)
    ('87.3 %', '–')
    """
    return NOTHING if value is None or not math.isfinite(value) else f"{100 * value:.1f} %"


def format_times(factor: float | None) -> str:
    """Return how many times the requests something needs.

    >>> format_times(1.4567), format_times(None)
    ('1.46×', '–')
    """
    return NOTHING if factor is None or not math.isfinite(factor) else f"{factor:.2f}×"


def _rate_unit(per_s: float) -> str:
    """Return the shortest unit of time in which a rate is 1 or more."""
    return next((unit for unit in _RATE_UNITS if per_s * UNIT_SECONDS[unit] >= 1), "y")


def format_rate(per_s: float | None) -> str:
    """Return a rate in the shortest unit of time in which it is 1 or more.

    >>> format_rate(2.0), format_rate(3 / 86400), format_rate(0.0), format_rate(1e-12)
    ('2/s', '3/day', '0', '3.16e-05/year')
    """
    if per_s is None or not math.isfinite(per_s):
        return NOTHING
    unit = _rate_unit(per_s)
    return f"{per_s * UNIT_SECONDS[unit]:.3g}/{_UNIT_WORDS[unit]}" if per_s else "0"


def format_rate_range(per_s: float | None, low: float | None, high: float | None) -> str:
    """Return the range ``low`` to ``high`` of a rate, in the unit that ``format_rate`` chooses for ``per_s``
    (for ``high`` if ``per_s`` is 0).

    >>> format_rate_range(3 / 86400, 1 / 86400, 9 / 86400), format_rate_range(0.0, 0.0, 5 / 60)
    ('1 … 9/day', '0 … 5/min')
    >>> format_rate_range(9 / 86400, 1e-12, 49 / 86400)
    '0 … 49/day'
    """
    if per_s is None or low is None or high is None or not all(map(math.isfinite, (per_s, low, high))):
        return NOTHING
    if per_s == 0:
        return f"0 … {format_rate(high)}"
    unit = _rate_unit(per_s)
    least = 0.0 if low < high / 10_000 else low  # 0.00000004 … 49 a day says no more than 0 … 49
    ends = [_two_digits(end * UNIT_SECONDS[unit]) for end in (least, high)]
    return f"{ends[0]} … {ends[1]}/{_UNIT_WORDS[unit]}"


def format_plan(plan: str) -> str:
    """Return what the plan does with an item, as people read it.

    >>> format_plan("kept"), format_plan("dropped")
    ('kept', 'given up')
    """
    return "given up" if plan in ("dropped", "left alone") else plan


def _two_digits(value: float) -> str:
    """Return a number with two significant digits. From a million on it has an exponent."""
    return f"{value:.2g}" if value < 99.5 or value >= 1e6 else f"{float(f'{value:.2g}'):,.0f}"


def format_seconds(seconds: float | None) -> str:
    """Return a duration with its unit; an infinite duration is ``never``.

    >>> format_seconds(90.0), format_seconds(None)
    ('1.5 min', '–')
    """
    if seconds is None or math.isnan(seconds):
        return NOTHING
    number, space, unit = format_duration(seconds).rpartition(" ")
    word = _UNIT_WORDS.get(unit, unit)
    return f"{number}{space}{word}{'s' if unit in 'dwy' and number != '1' else ''}"


def format_time(seconds: float | None) -> str:
    """Return a date and time of day in UTC.

    >>> format_time(0.0), format_time(None), format_time(math.inf)
    ('1970-01-01 00:00:00 UTC', 'never', 'never')
    """
    stamp = format_iso(seconds)
    return "never" if stamp is None else stamp[:19].replace("T", " ") + " UTC"


def format_iso(seconds: float | None) -> str | None:
    """Return a time in ISO 8601 for programs, or None if there is no such time.

    >>> format_iso(1e9), format_iso(1e300)
    ('2001-09-09T01:46:40Z', None)
    """
    if seconds is None or not math.isfinite(seconds):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return None


def format_relative(seconds: float | None, now_s: float) -> str:
    """Return how long ago a Unix time was, or how far it is in the future.

    >>> [format_relative(seconds, 100.0) for seconds in (90.0, 160.0, 100.4, None)]
    ['10 s ago', 'in 1 min', 'now', 'never']
    """
    if seconds is None or not math.isfinite(seconds):
        return "never"
    ahead_s = seconds - now_s
    if abs(ahead_s) < 1:
        return "now"
    return f"in {format_seconds(ahead_s)}" if ahead_s > 0 else f"{format_seconds(-ahead_s)} ago"


def format_due(seconds: float | None, now_s: float, before: str = "") -> str:
    """Return when something is due, or for how long it has been due. ``before`` is a word to write before a
    time in the future.

    >>> [format_due(seconds, 100.0, "next") for seconds in (90.0, 160.0, 100.4, None)]
    ['due for 10 s', 'next in 1 min', 'due now', 'never']
    """
    if seconds is None or not math.isfinite(seconds):
        return "never"
    ahead_s = seconds - now_s
    if ahead_s >= 1:
        return f"{before} in {format_seconds(ahead_s)}".strip()
    return "due now" if ahead_s > -1 else f"due for {format_seconds(-ahead_s)}"
