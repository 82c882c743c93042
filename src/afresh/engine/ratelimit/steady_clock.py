"""The time of day of all workers, which continues when the clock of the machine is set back."""

from __future__ import annotations

from afresh.values.clock import Clock

_STEP_S = 1.0  # smaller steps back are corrections, and followed


class SteadyClock:
    """Follows a clock forward, and back only by small steps: no window or claim lies far ahead of it."""

    def __init__(self, clock: Clock) -> None:
        """Start from the time of ``clock``."""
        self._clock = clock
        self._offset_s = clock.now_s() - clock.elapsed_s()

    def now_s(self) -> float:
        """Return the time in Unix seconds."""
        return self.pair()[0]

    def pair(self) -> tuple[float, float]:
        """Return the Unix seconds and the elapsed seconds of this moment."""
        elapsed_s = self._clock.elapsed_s()
        offset_s = self._clock.now_s() - elapsed_s
        if offset_s > self._offset_s - _STEP_S:
            self._offset_s = offset_s
        return elapsed_s + self._offset_s, elapsed_s
