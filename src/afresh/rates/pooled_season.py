"""A season learned by several processes together, each of which has the polls of other items.

The fit is that of ``season``, divided into sums over polls. Each process computes, under the profile of
before, the changes and the exposure in each hour of the week: the E step of EM. The sums of all processes
give the next profile: the M step. So each exchange is one round of EM over all polls, and only sums travel.

As there, a profile of the even weeks must predict the odd weeks better than a flat one, and the other way
round. So there are three profiles: of all weeks, of the even and of the odd ones.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from afresh.rates.poll_table import PollTable
from afresh.rates.season import HOURS, MARGIN, PollIntervals, Season, profile_of
from afresh.values.arrays import Float64s, Floats

ALL, EVEN, ODD = range(3)


@dataclass(frozen=True, slots=True)
class SeasonSums:
    """What the polls of one process, or of several, say about the season. ``changes`` and ``exposure`` have a
    row for each profile and a column for each hour of the week. ``gain`` is Σ of how much better the profile
    of other weeks predicts a poll than a flat one; ``telling`` items had a change, and ``telling_gain`` and
    ``squares`` are Σ over them of their gains and of the squares."""

    changes: Float64s
    exposure: Float64s
    polls: float
    gain: float
    telling: float
    telling_gain: float
    squares: float

    def __add__(self, other: SeasonSums) -> SeasonSums:
        return SeasonSums(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    def __sub__(self, other: SeasonSums) -> SeasonSums:
        return SeasonSums(*(getattr(self, one.name) - getattr(other, one.name) for one in fields(self)))


@dataclass(frozen=True, slots=True)
class SeasonProfiles:
    """The profiles of all, even and odd weeks (rows). ``gain`` is as in ``Season``; 0 if the profile does not
    predict better than a flat one, which is then used."""

    profiles: Float64s
    gain: float = 0.0

    def season(self, hour: float) -> Season:
        return Season(self.profiles[ALL].copy() if self.gain > 0 else np.ones(HOURS), hour, self.gain)


def flat_profiles() -> SeasonProfiles:
    return SeasonProfiles(np.ones((3, HOURS)))


def season_sums(polls: PollTable, rates: Floats, before: SeasonProfiles, *, hour: float) -> SeasonSums:
    """Return the sums over these polls, which must have their ``end``. ``rates`` are the items' rates in
    clock time, ``before`` the profiles of the last round."""
    assert polls.end is not None
    intervals = PollIntervals.of(polls, polls.end, rates, hour)
    is_even = np.floor(polls.end / (hour * HOURS)) % 2 == 0
    weeks = (np.ones(polls.size, dtype=bool), is_even, ~is_even)
    changes, exposure = np.zeros((3, HOURS)), np.zeros((3, HOURS))
    for row, which in enumerate(weeks):
        own = intervals.take(which)
        if own.begin.size:
            exposure[row] = own.exposure(own.rate)
            changes[row] = own.take(own.changed).changes_by_hour(before.profiles[row])
    gains = np.zeros(polls.items)
    for fitted, which in ((EVEN, ~is_even), (ODD, is_even)):
        item = polls.item[which]
        own_gain = intervals.take(which).gain(before.profiles[fitted], item)
        gains += np.bincount(item, own_gain, minlength=polls.items)
    telling = gains[polls.changes_per_item() > 0]
    sums = float(gains.sum()), float(telling.size), float(telling.sum()), float(telling @ telling)
    return SeasonSums(changes, exposure, float(polls.size), *sums)


def pooled_profiles(sums: SeasonSums) -> SeasonProfiles:
    """Return the next profiles, from the sums of all processes."""
    n = sums.telling
    spread = max(sums.squares - sums.telling_gain**2 / n, 0.0) / (n - 1.0) if n > 1 else np.inf
    is_better = sums.gain > MARGIN * np.sqrt(spread * n)
    gain = sums.gain / sums.polls if is_better and sums.polls else 0.0
    return SeasonProfiles(profile_of(sums.changes, sums.exposure), gain)
