"""The clock. Code that needs the time receives a ``Clock`` as an argument.

No other file reads the machine's clock. Tests pass a clock that they set themselves.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A clock that tells the time of day (``now_s``) and a steady time for durations (``elapsed_s``)."""

    def now_s(self) -> float:
        """Return the time in Unix seconds, which can go backwards when the machine's clock is set."""

    def elapsed_s(self) -> float:
        """Return the seconds since an arbitrary start, which never go backwards; for measuring durations."""


class SystemClock:
    """The machine's own clock.

    >>> clock = SystemClock()
    >>> clock.elapsed_s() <= clock.elapsed_s()
    True
    """

    def now_s(self) -> float:
        return time.time()

    def elapsed_s(self) -> float:
        return time.monotonic()
