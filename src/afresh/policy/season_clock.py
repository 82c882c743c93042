"""Operational time learned while running: busy hours are long, quiet ones short (``rates.season``).

Keeps the latest polls; at every refit the hour-of-week profile is fitted to them, and used only where it
predicts polls of other items better. Elapsed times are then operational in likelihood and index alike.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from afresh.rates.poll_table import PollTable
from afresh.rates.regimes.season import HOURS, Season, fit_season
from afresh.values.arrays import Bools, Float64s, Ints

KEPT = 30_000  # polls to learn from
FEWEST = 3_000  # polls that may turn a season off again


class SeasonClock:
    """Turns clock time into operational time; without an ``hour`` the two are the same.

    >>> SeasonClock(None).read(np.array([5.0])).tolist()
    [5.0]
    """

    def __init__(self, hour: float | None) -> None:
        self.season = None if hour is None else Season(np.ones(HOURS), hour)
        self.log: deque[tuple[Ints, Float64s, Float64s, Bools]] = deque()
        self.logged = 0

    def read(self, time: Float64s) -> Float64s:
        """Operational time."""
        if self.season is None or not self.season.is_supported:
            return time
        return self.season.operational(time)

    def record(self, items: Ints, now: Float64s, elapsed: Float64s, changed: Bools) -> None:
        """Polls, for the next fit."""
        if self.season is None:
            return
        self.log.append((items, now, elapsed, changed))
        self.logged += items.size
        while self.logged - self.log[0][0].size >= KEPT:
            self.logged -= self.log.popleft()[0].size

    def refit(self, rate: Float64s) -> None:
        """The profile from the latest polls; ``rate`` of every item."""
        if self.season is None or not self.log or (self.season.is_supported and self.logged < FEWEST):
            return
        item, now, elapsed, changed = (np.concatenate(column) for column in zip(*self.log, strict=True))
        order = np.argsort(item, kind="stable")
        order = order[elapsed[order] > 0]
        present, place = np.unique(item[order], return_inverse=True)
        polls = PollTable(place, elapsed[order], changed[order], present.size, end=now[order])
        self.season = fit_season(polls, rate[present], hour=self.season.hour)
