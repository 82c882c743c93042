"""Parse and format times, durations, rates, budgets, sizes and shares of time; parsed times are in seconds.

A year is 365.25 days. This module does not import NumPy, so that the command line starts quickly.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from afresh.values.errors import UsageError

UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31557600.0}
UNIT_NAMES = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week", "y": "year"}
SIZE_BYTES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
SIZE_BYTES |= {"KB": 1e3, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}

CHANGES_PER = {"s": "a second", "h": "an hour", "d": "a day", "w": "a week", "y": "a year"}
"""The units of time of rates that people are shown, the shortest first."""

_NUMBER = r"(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
_DURATION = re.compile(rf"{_NUMBER}\s*(?P<unit>[A-Za-zµ]+)")
_PER_TIME = re.compile(
    rf"{_NUMBER}\s*(?P<size>[A-Za-z]*)\s*(?P<item>/item)?\s*/\s*"
    r"(?P<periods>[0-9]+(?:\.[0-9]*)?)?\s*(?P<unit>[A-Za-z]+)"
)
_COMMON = ("s", "m", "h", "d", "w", "y")
_UNITS_IN_WORDS = "s, m, h, d, w or y"


def unit_seconds(unit: str) -> float:
    """Return the number of seconds in one ``unit``.

    >>> unit_seconds("d")
    86400.0
    """
    if unit not in UNIT_SECONDS:
        raise UsageError(f"unknown unit of time {unit!r}: use {_UNITS_IN_WORDS}")
    return UNIT_SECONDS[unit]


def number_or_nan(text: str) -> float:
    """Return the number in a text, or NaN if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def time_or_nan(text: str) -> float:
    """Return the Unix seconds in a text, a number or ISO 8601 (in UTC if it has no offset); NaN for others.

    >>> time_or_nan("1700000000.5"), time_or_nan("1970-01-02"), time_or_nan("soon")
    (1700000000.5, 86400.0, nan)
    """
    if not math.isnan(seconds := number_or_nan(text)):
        return seconds
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def parse_duration(text: str) -> float:
    """Return the seconds in a duration such as ``90s``, ``15m``, ``6h``, ``1d``, ``2w`` or ``1y``.

    >>> parse_duration("1.5h"), parse_duration("1y") / 86400
    (5400.0, 365.25)
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None or match["unit"] not in UNIT_SECONDS:
        raise UsageError(
            f"{text!r} is not a duration: give a number and a unit ({_UNITS_IN_WORDS}), such as 6h"
        )
    return _check_finite(text, float(match["number"]) * UNIT_SECONDS[match["unit"]])


def parse_rate(text: str) -> float:
    """Return the number per second in a rate such as ``2/s``, ``5000/d`` or ``10/5m`` (10 in 5 minutes).

    >>> parse_rate("86400/d"), parse_rate("600/5m")
    (1.0, 2.0)
    """
    match = _per_time(text, "a rate", "5000/d")
    if match["size"] or match["item"]:
        raise UsageError(f"{text!r} is not a rate: give a number per time, such as 5000/d")
    return _check_finite(text, float(match["number"]) / _period_s(text, match))


@dataclass(frozen=True, slots=True)
class BudgetRate:
    """A budget in cost units per second, for each item (``per_item``) or for all items together."""

    per_second: float
    per_item: bool

    def total_per_second(self, items: int) -> float:
        """Return the budget of all ``items`` items together, in cost units per second."""
        return self.per_second * items if self.per_item else self.per_second


def parse_budget(text: str) -> BudgetRate:
    """Return a budget such as ``5/d`` or ``0.05/item/d``; ``0`` needs no unit.

    >>> parse_budget("0.05/item/d").total_per_second(86400)
    0.05
    """
    if re.fullmatch(r"0+(?:\.0*)?", text.strip()):
        return BudgetRate(0.0, per_item=False)
    match = _per_time(text, "a budget", "5/d or 0.05/item/d")
    if match["size"]:
        raise UsageError(f"{text!r} is not a budget: give cost units per time, such as 5/d or 0.05/item/d")
    per_second = _check_finite(text, float(match["number"]) / _period_s(text, match))
    return BudgetRate(per_second, per_item=bool(match["item"]))


def parse_size_rate(text: str) -> float:
    """Return the bytes per second in a size per time such as ``10GB/d``.

    >>> parse_size_rate("86.4kB/d")
    1.0
    """
    match = _per_time(text, "a size per time", "10GB/d")
    if match["size"] not in SIZE_BYTES or match["item"]:
        raise UsageError(f"{text!r} is not a size per time: use {', '.join(SIZE_BYTES)}, such as 10GB/d")
    size = float(match["number"]) * SIZE_BYTES[match["size"]]
    return _check_finite(text, size / _period_s(text, match))


def parse_share(text: str) -> float:
    """Return a share of time such as ``20m/h``, as a number from 0 to 1.

    >>> round(parse_share("20m/h"), 6)
    0.333333
    """
    match = _per_time(text, "a share of time", "20m/h")
    if match["size"] not in UNIT_SECONDS or match["item"]:
        raise UsageError(f"{text!r} is not a share of time: give time per time, such as 20m/h")
    share = float(match["number"]) * UNIT_SECONDS[match["size"]] / _period_s(text, match)
    if share > 1:
        raise UsageError(f"{text!r} is more than all of the time")
    return share


def format_duration(seconds: float) -> str:
    """Return a duration as text for people, in the largest unit that gives a number of 1 or more.

    >>> format_duration(5400), format_duration(86400 * 30), format_duration(0.25)
    ('1.5 h', '4.29 w', '0.25 s')
    """
    if not math.isfinite(seconds):
        return "never" if seconds > 0 else str(seconds)
    for unit in ("y", "w", "d", "h", "m"):
        if abs(seconds) >= UNIT_SECONDS[unit]:
            return f"{seconds / UNIT_SECONDS[unit]:.3g} {unit}"
    return f"{seconds:.3g} s"


def format_rate(per_second: float) -> str:
    """Return a rate as text, as it is written in settings, in the unit of time that makes it shortest.

    >>> format_rate(2.0), format_rate(parse_rate("5000/d"))
    ('2/s', '5000/d')
    """
    return min((f"{per_second * UNIT_SECONDS[unit]:.6g}/{unit}" for unit in _COMMON), key=len)


def format_changes(per_second: float) -> str:
    """Return a rate of changes in words, in the shortest unit of time that gives a number of 1 or more.

    >>> format_changes(2.0), format_changes(548 / UNIT_SECONDS["y"]), format_changes(0.0)
    ('2 changes a second', '1.5 changes a day', '0 changes a year')
    """
    unit = changes_unit(per_second)
    return f"{float(f'{per_second * UNIT_SECONDS[unit]:.2g}'):,g} changes {CHANGES_PER[unit]}"


def changes_unit(per_second: float) -> str:
    """Return the unit of time in which people are shown this rate: the shortest that gives 1 or more."""
    return next((unit for unit in CHANGES_PER if per_second * UNIT_SECONDS[unit] >= 1.0), "y")


def format_size_rate(bytes_per_second: float) -> str:
    """Return a size per time as text, as it is written in settings, in the units that make it shortest.

    >>> format_size_rate(1e6), format_size_rate(parse_size_rate("10GB/d"))
    ('1MB/s', '10GB/d')
    """
    sizes = (
        f"{bytes_per_second * UNIT_SECONDS[unit] / SIZE_BYTES[size]:.6g}{size}/{unit}"
        for unit in _COMMON
        for size in SIZE_BYTES
    )
    return min(sizes, key=len)


def format_share(share: float) -> str:
    """Return a share of time, from 0 to 1, as text, as it is written in settings.

    >>> format_share(parse_share("20m/h")), format_share(0.001)
    ('20m/h', '3.6s/h')
    """
    return f"{share * 60:.6g}m/h" if share * 60 >= 1 else f"{share * 3600:.6g}s/h"


def _per_time(text: str, kind: str, example: str) -> re.Match[str]:
    match = _PER_TIME.fullmatch(text.strip())
    if match is None:
        hint = ""
        if re.fullmatch(_NUMBER, text.strip()):
            hint = f" ({text.strip()} per what? {text.strip()}/d is per day)"
        raise UsageError(f"{text!r} is not {kind}: write it like {example}{hint}")
    if match["unit"] not in UNIT_SECONDS:
        raise UsageError(
            f"{text!r} is not {kind}: unknown unit of time {match['unit']!r}, use {_UNITS_IN_WORDS}"
        )
    return match


def _period_s(text: str, match: re.Match[str]) -> float:
    """Return the seconds of the period after the slash: 300 for ``10/5m``, 60 for ``10/m``."""
    periods = float(match["periods"] or 1)
    if periods == 0:
        raise UsageError(f"{text!r} is per no time: give a number and a time that is not 0, such as 10/5m")
    return periods * UNIT_SECONDS[match["unit"]]


def _check_finite(text: str, value: float) -> float:
    if not math.isfinite(value):
        raise UsageError(f"{text!r} is too large")
    return value
