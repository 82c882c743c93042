"""Rules of common crawlers, which set an item's polling interval from the last one and the poll's result."""

from __future__ import annotations

import numpy as np

from afresh.policy.policy import PolicyInput
from afresh.policy.ranking_policy import IntervalPolicy
from afresh.values.arrays import Bools, Float64s, Ints

# LEAST and MOST limit the polling interval, in rounds: one round of all items stands for the crawler's first
# interval. Nutch's defaults are a minute and a year, with a first interval of 30 days.
NUTCH_DECREASE, NUTCH_INCREASE, NUTCH_SYNC = 0.8, 1.4, 0.3
NUTCH_LEAST, NUTCH_MOST = 2.3e-5, 12.2
# StormCrawler: an hour and two weeks, with a first interval of a day.
STORM_INCREASE = 1.5
STORM_LEAST, STORM_MOST = 1 / 24, 14.0
# Sosse: a day and a year, whose geometric mean is taken as one round.
SOSSE_FACTOR = 2.0
SOSSE_LEAST, SOSSE_MOST = 365.0**-0.5, 365.0**0.5


class Nutch(IntervalPolicy):
    """Nutch's adaptive rule without sync: the polling interval × 0.8 after a change, × 1.4 otherwise.
    With sync (``NutchSync``): let δ be the time since the last change that a poll found. If δ exceeds the
    interval I, then I = δ. The next poll is at now − 0.3·δ + I.

    >>> policy = Nutch(PolicyInput.of(2, 1.0))
    >>> policy.observe([0, 1], 2.0, [True, False]); policy.interval.round(6).tolist()
    [1.6, 2.8]
    """

    has_sync = False

    def __init__(self, start: PolicyInput) -> None:
        super().__init__(start)
        self.last_change: Float64s = np.full(start.items, start.now)

    def next_due(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        interval = self.interval[items] * np.where(changed, NUTCH_DECREASE, NUTCH_INCREASE)
        interval = np.clip(interval, NUTCH_LEAST * self.round, NUTCH_MOST * self.round)
        self.last_change[items] = np.where(changed, now, self.last_change[items])
        reference = now
        if self.has_sync:
            delta = now - self.last_change[items]
            interval = np.maximum(interval, delta)
            reference = now - NUTCH_SYNC * delta
        # I = δ has no upper limit: with one, an item unchanged for long would always be due in the past.
        self.interval[items] = interval
        return np.asarray(reference + self.interval[items])


class NutchSync(Nutch):
    """Nutch's adaptive rule with sync."""

    has_sync = True


class StormCrawler(IntervalPolicy):
    """StormCrawler's rule: the polling interval I becomes (I + min)/2 after a change, else min(1.5·I, max).

    >>> policy = StormCrawler(PolicyInput.of(2, 1.0))
    >>> policy.observe([0, 1], 2.0, [True, False]); policy.interval.round(6).tolist()
    [1.041667, 3.0]
    """

    def next_due(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        interval = self.interval[items]
        longer = np.minimum(STORM_INCREASE * interval, STORM_MOST * self.round)
        self.interval[items] = np.where(changed, (interval + STORM_LEAST * self.round) / 2.0, longer)
        return np.asarray(now + self.interval[items])


class Sosse(IntervalPolicy):
    """Sosse's rule: the polling interval is halved after a change and doubled otherwise, within limits.
    Sosse (an archiver and search engine) leaves the limits to the user; by default they are a day and a year.

    >>> policy = Sosse(PolicyInput.of(2, 1.0))
    >>> policy.observe([0, 1], 2.0, [True, False]); policy.interval.tolist()
    [1.0, 4.0]
    """

    def next_due(self, items: Ints, now: Float64s, changed: Bools) -> Float64s:
        interval = self.interval[items] * np.where(changed, 1.0 / SOSSE_FACTOR, SOSSE_FACTOR)
        self.interval[items] = np.clip(interval, SOSSE_LEAST * self.round, SOSSE_MOST * self.round)
        return np.asarray(now + self.interval[items])
