"""The windows of a source, asked thousands of times a second: the answer is kept until it ends."""

from __future__ import annotations

from afresh.sources.windows import Windows


class OpenHours:
    """``next_opening_s`` of ``Windows``, worked out again only when the current answer has run out.

    >>> hours = OpenHours(Windows.parse(["01:00-02:00"]))
    >>> hours.next_opening_s(0.0), hours.next_opening_s(4000.0)
    (3600.0, 4000.0)
    """

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._from_s = self._opens_s = self._until_s = float("nan")

    def next_opening_s(self, now_s: float) -> float:
        """``now_s`` if open, else when the next window opens."""
        if not self._windows.windows or now_s == float("inf"):
            return now_s
        if not self._from_s <= now_s < self._until_s:
            self._from_s, self._opens_s = now_s, self._windows.next_opening_s(now_s)
            self._until_s = self._windows.closes_s(self._opens_s)
        return max(now_s, self._opens_s)
