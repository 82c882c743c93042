"""A clock of operational time, in which busy hours are long and quiet hours are short (``rates.season``).

The clock keeps the latest polls. At every refit the hour-of-week profile is fitted to them, and it is used
only if it predicts polls of other weeks better than a flat one. Likelihoods and poll values then use it.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from afresh.rates.poll_table import PollTable
from afresh.rates.season import HOURS, Season, fit_season
from afresh.values.arrays import Bools, Float64s, Ints

KEPT = 30_000  # the latest polls to which the profile is fitted
FEWEST = 3_000  # polls that must be kept before a season that is in use is fitted again (and may be dropped)


class SeasonClock:
    """Converts clock time to operational time; if ``hour`` is None, the two are the same.
    ``hour`` is the length of an hour in the unit of the times.

    >>> SeasonClock(None).read(np.array([5.0])).tolist()
    [5.0]
    """

    def __init__(self, hour: float | None) -> None:
        self.season = None if hour is None else Season(np.ones(HOURS), hour)
        self.recent: deque[tuple[Ints, Float64s, Float64s, Bools]] = deque()
        self.recent_count = 0

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
        if (
            self.season is None
            or not self.recent
            or (self.season.is_supported and self.recent_count < FEWEST)
        ):
            return
        item, now, elapsed, changed = (np.concatenate(column) for column in zip(*self.recent, strict=True))
        order = np.argsort(item, kind="stable")
        order = order[elapsed[order] > 0]
        present, place = np.unique(item[order], return_inverse=True)
        polls = PollTable(place, elapsed[order], changed[order], present.size, end=now[order])
        self.season = fit_season(polls, rate[present], hour=self.season.hour)
