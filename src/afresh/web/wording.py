"""Numbers, times and rates as words: one place, so that every page and the live updates say the same."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from afresh.values.units import UNIT_SECONDS, format_duration

NONE = "–"
_RATE_UNITS = ("s", "m", "h", "d", "w", "y")
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def count(value: float) -> str:
    """A whole number with thin groups.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{round(value):,}"


def number(value: float | None) -> str:
    """Three figures, without an exponent up to a thousand million.

    >>> number(0.12345), number(-1234567.0), number(1e9), number(None), number(math.inf)
    ('0.123', '-1,230,000', '1e+09', '–', '∞')
    """
    if value is None or math.isnan(value):
        return NONE
    if not math.isfinite(value):
        return "∞"
    return f"{float(f'{value:.3g}'):,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.3g}"


def share(value: float | None) -> str:
    """A share as per cent.

    >>> share(0.8734), share(math.nan)
    ('87.3 %', '–')
    """
    return NONE if value is None or not math.isfinite(value) else f"{100 * value:.1f} %"


def rate(per_s: float | None) -> str:
    """A rate in the shortest unit of time that leaves a number of 1 or more.

    >>> rate(2.0), rate(3 / 86400), rate(0.0), rate(1e-12)
    ('2/s', '3/d', '0', '3.16e-05/y')
    """
    if per_s is None or not math.isfinite(per_s):
        return NONE
    if per_s == 0:
        return "0"
    unit = next((unit for unit in _RATE_UNITS if per_s * UNIT_SECONDS[unit] >= 1), "y")
    return f"{per_s * UNIT_SECONDS[unit]:.3g}/{unit}"


def rate_range(per_s: float, low: float, high: float) -> str:
    """An interval of rates in the unit of its middle, or of its upper end where the middle is nothing.

    >>> rate_range(3 / 86400, 1 / 86400, 9 / 86400), rate_range(0.0, 0.0, 5 / 60)
    ('1 … 9/d', '0 … 5/m')
    """
    if not all(map(math.isfinite, (per_s, low, high))):
        return NONE
    if per_s == 0:
        return f"0 … {rate(high)}"
    unit = next((unit for unit in _RATE_UNITS if per_s * UNIT_SECONDS[unit] >= 1), "y")
    return f"{_short(low * UNIT_SECONDS[unit])} … {_short(high * UNIT_SECONDS[unit])}/{unit}"


def _short(value: float) -> str:
    """Two figures, without an exponent where it can be done without."""
    return f"{value:.2g}" if value < 99.5 or value >= 1e6 else f"{float(f'{value:.2g}'):,.0f}"


def size(octets: float) -> str:
    """Bytes.

    >>> size(1_530_000), size(12)
    ('1.53 MB', '12 B')
    """
    for scale, unit in _SIZES:
        if octets >= scale:
            return f"{octets / scale:.3g} {unit}"
    return f"{octets:.0f} B"


def duration(seconds: float | None) -> str:
    """A duration; ``never`` where it has no end."""
    return NONE if seconds is None or math.isnan(seconds) else format_duration(seconds)


def lasting(seconds: float) -> str:
    """A duration that may have no end.

    >>> lasting(math.inf)
    'without end'
    """
    return duration(seconds) if math.isfinite(seconds) else "without end"


def moment(seconds: float | None) -> str:
    """A time of day with its date, UTC.

    >>> moment(0.0), moment(None), moment(math.inf)
    ('1970-01-01 00:00:00 UTC', 'never', 'never')
    """
    stamp = iso(seconds)
    return "never" if stamp is None else stamp[:19].replace("T", " ") + " UTC"


def iso(seconds: float | None) -> str | None:
    """The same for machines; None where there is no such time.

    >>> iso(1e9), iso(1e300)
    ('2001-09-09T01:46:40Z', None)
    """
    if seconds is None or not math.isfinite(seconds):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return None


def relative(seconds: float | None, now_s: float) -> str:
    """How long ago, or how far ahead.

    >>> relative(90.0, 100.0), relative(160.0, 100.0), relative(100.4, 100.0), relative(None, 0.0)
    ('10 s ago', 'in 1 m', 'now', 'never')
    """
    if seconds is None or not math.isfinite(seconds):
        return "never"
    away_s = seconds - now_s
    if abs(away_s) < 1:
        return "now"
    return f"in {duration(away_s)}" if away_s > 0 else f"{duration(-away_s)} ago"


def due(seconds: float | None, now_s: float, before: str = "") -> str:
    """When something is due, or for how long it has been; ``before`` goes before what is ahead.

    >>> due(90.0, 100.0), due(160.0, 100.0, "next"), due(100.4, 100.0), due(None, 0.0)
    ('due for 10 s', 'next in 1 m', 'due now', 'never')
    """
    if seconds is None or not math.isfinite(seconds):
        return "never"
    away_s = seconds - now_s
    if away_s >= 1:
        return f"{before} in {duration(away_s)}".strip()
    return "due now" if away_s > -1 else f"due for {duration(-away_s)}"


def plain(value: object) -> object:
    """What JSON can say: no infinity, no NaN; null instead.

    >>> plain({"a": [1.0, math.inf]})
    {'a': [1.0, None]}
    """
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
