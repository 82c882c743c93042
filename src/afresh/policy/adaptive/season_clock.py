"""A clock of operational time, in which busy hours are long and quiet hours are short (``rates.season``).

The clock keeps the latest polls. At every refit the hour-of-week profile is fitted to them, and it is used
only if it predicts polls of other weeks better than a flat one. Likelihoods and poll values then use it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from afresh.rates.poll_table import PollTable
from afresh.rates.pooled_season import SeasonProfiles, SeasonSums, season_sums
from afresh.rates.season import HOURS, Season, fit_season
from afresh.values.arrays import Bools, Float64s, Ints

KEPT = 30_000  # the latest polls to which the profile is fitted
FEWEST = 3_000  # polls that must be kept before a season that is in use is fitted again (and may be dropped)


class SeasonClock:
    """Converts clock time to operational time; if ``hour`` is None, the two are the same.
    ``hour`` is the length of an hour in the unit of the times. ``common`` has the profiles of all
    policies that learn together; None if this one learns alone.

    >>> SeasonClock(None).read(np.array([5.0])).tolist()
    [5.0]
    """

    def __init__(self, hour: float | None) -> None:
        self.season = None if hour is None else Season(np.ones(HOURS), hour)
        self.recent: deque[tuple[Ints, Float64s, Float64s, Bools]] = deque()
        self.recent_count = 0
        self.common: SeasonProfiles | None = None

    def read(self, time: Float64s) -> Float64s:
        """Return the operational time of each clock time."""
        if self.season is None or not self.season.is_supported:
            return time
        return self.season.operational(time)

    def record(self, items: Ints, now: Float64s, elapsed: Float64s, changed: Bools) -> None:
        """Keep polls for the next fit."""
        if self.season is None:
            return
        self.recent.append((items, now, elapsed, changed))
        self.recent_count += items.size
        while self.recent_count - self.recent[0][0].size >= KEPT:
            self.recent_count -= self.recent.popleft()[0].size

    def refit(self, rate: Float64s) -> None:
        """Fit the profile to the latest polls; ``rate`` holds the rate of every item."""
        if self.season is None:
            return
        if self.common is not None:
            self.season = self.common.season(self.season.hour)
            return
        if not self.recent or (self.season.is_supported and self.recent_count < FEWEST):
            return
        polls, present = self._recent_polls()
        self.season = fit_season(polls, rate[present], hour=self.season.hour)

    def sums(self, rate_of: Callable[[Ints], Float64s]) -> SeasonSums | None:
        """Return what the latest polls say about the common profile, None if there are none. ``rate_of``
        returns the rates of items."""
        if self.season is None or not self.recent:
            return None
        polls, present = self._recent_polls()
        before = self.common or SeasonProfiles(np.tile(self.season.profile, (3, 1)))
        return season_sums(polls, rate_of(present), before, hour=self.season.hour)

    def _recent_polls(self) -> tuple[PollTable, Ints]:
        """Return a tuple (the latest polls, numbered from 0 by item; the items of these numbers)."""
        item, now, elapsed, changed = (np.concatenate(column) for column in zip(*self.recent, strict=True))
        order = np.argsort(item, kind="stable")
        order = order[elapsed[order] > 0]
        present, place = np.unique(item[order], return_inverse=True)
        return PollTable(place, elapsed[order], changed[order], present.size, end=now[order]), present
