"""The clock as an argument. This is the one file that reads the machine's clock.

Code that needs the time takes a ``Clock``; tests pass one that they set themselves.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time: ``now_s`` of the day, ``elapsed_s`` from an unknown start, never stepping back."""

    def now_s(self) -> float:
        """Unix seconds; may step back when the machine's clock is set."""

    def elapsed_s(self) -> float:
        """Seconds since some fixed moment; never steps back. For durations only."""


class SystemClock:
    """The machine's own clock.

    >>> clock = SystemClock()
    >>> clock.elapsed_s() <= clock.elapsed_s()
    True
    """

    def now_s(self) -> float:
        """Unix seconds."""
        return time.time()

    def elapsed_s(self) -> float:
        """Seconds on the monotonic clock."""
        return time.monotonic()
