"""The season of a simulated world: more changes by day than by night, on working days than at weekends."""

from __future__ import annotations

import numpy as np

from afresh.rates.regimes.season import HOURS, Season
from afresh.values.arrays import Float64s
from afresh.values.errors import UsageError

_HOUR_S = 3600.0
_BUSIEST_HOUR = 14.0
_FIRST_DAY = 3  # Unix time 0 was a Thursday; Monday is 0


def working_hours(day: float = 0.0, week: float = 0.0) -> Season:
    """The profile (1+day·cos(2π(h−14)/24)) × (1−week at weekends, else 1), scaled to mean 1, in UTC.

    ``day`` and ``week`` go from 0 (no season) to 1 (no changes at two at night, none at weekends).

    >>> season = working_hours(day=1.0, week=1.0)
    >>> thursday_noon, saturday_noon = season.profile[12], season.profile[2 * 24 + 12]
    >>> bool(thursday_noon > 2), float(saturday_noon), round(float(season.profile.mean()), 12)
    (True, 0.0, 1.0)
    """
    for name, value in (("day", day), ("week", week)):
        if not 0 <= value <= 1:
            raise UsageError(f"season: {name} is {value:g}: must be from 0 (none) to 1 (strongest)")
    hours = np.arange(HOURS)
    by_hour = 1 + day * np.cos(2 * np.pi * (hours % 24 + 0.5 - _BUSIEST_HOUR) / 24)
    weekend = (hours // 24 + _FIRST_DAY) % 7 >= 5
    profile = by_hour * np.where(weekend, 1 - week, 1.0)
    return Season(profile / profile.mean(), _HOUR_S)


def clock_times(season: Season, operational: Float64s) -> Float64s:
    """The clock time of each operational time: the inverse of ``season.operational``.

    >>> season = working_hours(day=0.5)
    >>> times = np.array([0.0, 5000.0, 1.7e9])
    >>> clock_times(season, season.operational(times)).round(3).tolist() == times.tolist()
    True
    """
    hours = operational / season.hour
    week = np.floor(hours / HOURS) * HOURS
    reached = np.concatenate(([0.0], np.cumsum(season.profile)))
    return np.asarray(season.hour * (week + np.interp(hours - week, reached, np.arange(HOURS + 1.0))))
