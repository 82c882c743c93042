"""Windows: the hours of the week in which a source may be polled, such as ``22:00-06:00 Mon-Fri``.

A window belongs to the day on which it opens: ``22:00-06:00 Fri`` is the night from Friday to Saturday. When
clocks are put forward, a window that ends in the skipped hour ends at the change: ``01:30-02:30`` closes when
03:00 follows 01:59. When clocks are put back, an hour occurs twice, and the times of a window mean the first
of the two. Cho & Garcia-Molina (2000, §3) call such windows synchronization points."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from afresh.values.errors import UsageError

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WINDOW = re.compile(
    r"(?P<opens>\d{1,2}:\d{2})\s*-\s*(?P<closes>\d{1,2}:\d{2})(?:\s+(?P<days>[A-Za-z,\s-]+))?"
)
_EXAMPLE = "'22:00-06:00 Mon-Fri', '00:00-24:00 Sat,Sun'"
_LAST_MINUTE = 24 * 60


@dataclass(frozen=True, slots=True)
class WeeklyWindow:
    """A window that opens ``opens_min`` minutes after midnight on ``days`` (0 = Monday). It closes
    ``length_min`` minutes later."""

    opens_min: int
    length_min: int
    days: frozenset[int]


def parse_window(text: str) -> WeeklyWindow:
    """Parse one window. Without days it opens every day; an end at or before the start is on the next day.

    >>> parse_window("22:00-06:00 Fri-Sun").length_min, sorted(parse_window("22:00-06:00 Fri-Sun").days)
    (480, [4, 5, 6])
    """
    match = _WINDOW.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a window of time: write it like {_EXAMPLE}")
    opens, closes = _minutes(match["opens"], text), _minutes(match["closes"], text)
    if opens == _LAST_MINUTE:
        raise UsageError(f"{text!r} is not a window of time: a window opens at 23:59 at the latest")
    length = closes - opens if closes > opens else closes - opens + _LAST_MINUTE
    return WeeklyWindow(opens, length, _days(match["days"] or "Mon-Sun", text))


@dataclass(frozen=True, slots=True)
class Windows:
    """All windows of a source, in its time zone. A source without windows may always be polled.

    >>> nights = Windows.parse(["22:00-06:00 Mon-Fri"], "UTC")
    >>> monday = 4 * 86400.0                       # Monday, 5 January 1970, 00:00 UTC
    >>> (nights.next_opening_s(monday) - monday) / 3600, nights.is_open(monday + 23 * 3600)
    (22.0, True)
    """

    windows: tuple[WeeklyWindow, ...]
    zone: ZoneInfo

    @classmethod
    def parse(cls, texts: list[str] | tuple[str, ...], zone: str = "UTC") -> Windows:
        """Parse windows (see ``parse_window``) and the name of a time zone, such as ``Europe/Berlin``."""
        try:
            found = ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise UsageError(
                f"{zone!r} is not a time zone: use a name such as UTC or Europe/Berlin"
            ) from None
        return cls(tuple(parse_window(text) for text in texts), found)

    def is_open(self, now_s: float) -> bool:
        return not self.windows or any(opens <= now_s < closes for opens, closes in self._openings(now_s))

    def next_opening_s(self, now_s: float) -> float:
        """Return ``now_s`` if a window is open, else when the next window opens (both in Unix seconds)."""
        if self.is_open(now_s):
            return now_s
        # A window that lies inside the hour skipped by a clock change opens a week later at the latest.
        return min(opens for opens, closes in self._openings(now_s) if opens > now_s and closes > opens)

    def closes_s(self, now_s: float) -> float:
        """Return when the source closes next (Unix seconds); ``now_s`` if no window is open now. Windows that
        overlap or touch count as one. Without windows, the result is infinite."""
        if not self.windows:
            return float("inf")
        end_s = now_s
        for opens, closes in sorted(self._openings(now_s)):
            if opens <= end_s < closes:
                end_s = closes
        return end_s

    def _openings(self, now_s: float) -> Iterator[tuple[float, float]]:
        """Yield (opens, closes) in Unix seconds for each window, from yesterday to 14 days from now."""
        today = datetime.fromtimestamp(now_s, self.zone).date()
        for offset in range(-1, 15):
            day = today + timedelta(days=offset)
            for window in self.windows:
                if day.weekday() in window.days:
                    yield self._at(day, window.opens_min), self._at(day, window.opens_min + window.length_min)

    def _at(self, day: date, minute: int) -> float:
        days, minute = divmod(minute, _LAST_MINUTE)
        wall = datetime.combine(day + timedelta(days=days), time(minute // 60, minute % 60), self.zone)
        when_s = wall.astimezone(UTC).timestamp()
        if datetime.fromtimestamp(when_s, self.zone).replace(tzinfo=None) == wall.replace(tzinfo=None):
            return when_s
        return self._jump_s(wall.replace(fold=1).astimezone(UTC).timestamp(), when_s)

    def _jump_s(self, before_s: float, after_s: float) -> float:
        """Return when clocks are put forward between ``before_s`` and ``after_s``, found by bisection. This
        time replaces a local time that the clocks skip. All times are in Unix seconds."""
        offset = datetime.fromtimestamp(before_s, self.zone).utcoffset()
        while after_s - before_s > 1:
            middle_s = (before_s + after_s) // 2
            if datetime.fromtimestamp(middle_s, self.zone).utcoffset() == offset:
                before_s = middle_s
            else:
                after_s = middle_s
        return after_s


class CachedWindows:
    """A cache of ``Windows.next_opening_s`` for callers that call it thousands of times per second. It
    computes the next opening again only after the window that it found last has closed.

    >>> windows = CachedWindows(Windows.parse(["01:00-02:00"]))
    >>> windows.next_opening_s(0.0), windows.next_opening_s(4000.0)
    (3600.0, 4000.0)
    """

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._from_s = self._opens_s = self._until_s = float("nan")

    def next_opening_s(self, now_s: float) -> float:
        """Return ``now_s`` if a window is open, else when the next window opens (both in Unix seconds)."""
        if not self._windows.windows or now_s == float("inf"):
            return now_s
        if not self._from_s <= now_s < self._until_s:
            self._from_s, self._opens_s = now_s, self._windows.next_opening_s(now_s)
            self._until_s = self._windows.closes_s(self._opens_s)
        return max(now_s, self._opens_s)


def _minutes(text: str, whole: str) -> int:
    hours, minutes = map(int, text.split(":"))
    if minutes > 59 or hours * 60 + minutes > _LAST_MINUTE:
        raise UsageError(f"{whole!r} is not a window of time: {text} is no time of the day")
    return hours * 60 + minutes


def _days(text: str, whole: str) -> frozenset[int]:
    days: set[int] = set()
    for part in re.split(r"[,\s]+", re.sub(r"\s*-\s*", "-", text.strip().lower())):
        first, _, last = part.partition("-")
        names = [name[:3] if name[:3] in _DAYS else "" for name in (first, last or first)]
        if "" in names:
            raise UsageError(f"{whole!r} is not a window of time: {part!r} is no day, use Mon … Sun")
        start, end = (_DAYS.index(name) for name in names)
        days.update((start + step) % 7 for step in range((end - start) % 7 + 1))
    return frozenset(days)
