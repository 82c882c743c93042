"""The clock as an argument. This is the one file that reads the machine's clock.

Code that needs the time takes a ``Clock``; tests pass one that they set themselves.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time of day (``now_s``) and the time that has passed (``elapsed_s``)."""

    def now_s(self) -> float:
        """Return Unix seconds; they may step back when the machine's clock is set."""

    def elapsed_s(self) -> float:
        """Return the seconds since some fixed moment; they never step back. For durations only."""


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
