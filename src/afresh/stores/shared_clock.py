"""The time of day for all workers of a fleet: the machine's clock, shifted to agree with the store's."""

from __future__ import annotations

from afresh.stores.store import Fleet
from afresh.values.clock import Clock


class SharedClock:
    """A clock that shows the store's time. Call ``measure`` again now and then, since clocks drift.

    >>> from afresh.stores.memory.store import MemoryStore
    >>> from afresh.values.clock import SystemClock
    >>> shared = SharedClock(SystemClock(), MemoryStore().fleet)
    >>> shared.ahead_s
    0.0
    """

    def __init__(self, clock: Clock, fleet: Fleet) -> None:
        self._clock, self._fleet = clock, fleet
        self.ahead_s = fleet.ahead_s(clock)

    def measure(self) -> None:
        """Measure again how far the store's clock is ahead."""
        self.ahead_s = self._fleet.ahead_s(self._clock)

    def now_s(self) -> float:
        """Seconds since 1970, by the store's clock."""
        return self._clock.now_s() + self.ahead_s

    def elapsed_s(self) -> float:
        """Seconds that only grow, of this machine."""
        return self._clock.elapsed_s()
