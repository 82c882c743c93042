"""Draws a simulated world: every change of every item over a period of time.

The own changes of item i are a renewal process of rate 1 in the item's own time Λᵢ(t) = λᵢ·∫dᵢ(u)·s(u)du,
from the start to t. Here λᵢ is its mean rate, dᵢ the factor by which the rate drifts, and s the season common
to all items. So rate, drift and season keep their meanings in any combination. Mass edits, which change many
items of a group at one moment, are added. Changes before the birth or after the death of an item are removed.
Birth and death are changes themselves, because a copy from before is wrong afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from afresh.rates.season import HOURS, Season
from afresh.replay.change_process import RateDrift, renewal_events, time_of_progress
from afresh.values.arrays import Bools, Float64s, Ints, nonnegative
from afresh.values.errors import UsageError

_HOUR_S = 3600.0
_BUSIEST_HOUR = 14.0
_FIRST_DAY = 3  # Unix time 0 was a Thursday; Monday is 0


def working_hours(day: float = 0.0, week: float = 0.0) -> Season:
    """Return a season of working hours in UTC, whose busiest hour of the day is 14:00.
    The factor of hour h of the day is (1+day·cos(2π(h−14)/24)), × (1−week) at weekends, scaled to mean 1.
    ``day`` goes from 0 (no effect) to 1 (no changes at 02:00), ``week`` from 0 to 1 (none at weekends).

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
    """Return the clock time of each operational time: the inverse of ``season.operational``.

    >>> season = working_hours(day=0.5)
    >>> times = np.array([0.0, 5000.0, 1.7e9])
    >>> clock_times(season, season.operational(times)).round(3).tolist() == times.tolist()
    True
    """
    hours = operational / season.hour
    week = np.floor(hours / HOURS) * HOURS
    reached = np.concatenate(([0.0], np.cumsum(season.profile)))
    return np.asarray(season.hour * (week + np.interp(hours - week, reached, np.arange(HOURS + 1.0))))


@dataclass(frozen=True, slots=True)
class MassEdits:
    """Mass edits: for each group a Poisson process of rate ``rate_per_s``. An edit changes each item of the
    group with probability ``share``."""

    rate_per_s: float
    share: float

    def __post_init__(self) -> None:
        if not (self.rate_per_s >= 0 and np.isfinite(self.rate_per_s)):
            raise UsageError(f"mass edits: rate is {self.rate_per_s:g} per second: must be 0 or more")
        if not 0 < self.share <= 1:
            raise UsageError(f"mass edits: share is {self.share:g}: must be above 0 and at most 1")

    def changes(self, group: Ints, start: float, end: float, rng: Generator) -> tuple[Ints, Float64s]:
        """Draw mass edits; return a tuple (item, time) of arrays with an entry for each change.
        Item i is in group ``group[i]``.

        >>> edits = MassEdits(rate_per_s=1.0, share=1.0)
        >>> item, time = edits.changes(np.array([0, 0, 1]), 0.0, 50.0, np.random.default_rng(1))
        >>> np.array_equal(time[item == 0], time[item == 1])        # one group, the same moments
        True
        """
        sizes = np.bincount(group, minlength=1)
        edited = np.repeat(np.arange(sizes.size), rng.poisson(self.rate_per_s * (end - start), sizes.size))
        when = rng.uniform(start, end, edited.size)
        members = np.argsort(group, kind="stable")
        first = np.cumsum(sizes) - sizes
        edit = np.repeat(np.arange(edited.size), sizes[edited])
        rank = np.arange(edit.size) - np.repeat(np.cumsum(sizes[edited]) - sizes[edited], sizes[edited])
        item = members[first[edited[edit]] + rank]
        hit = rng.random(edit.size) < self.share
        return item[hit], when[edit[hit]]


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """The time when each item appears (−∞ if it existed before) and vanishes (∞ if it stays)."""

    born: Float64s
    died: Float64s

    def alive(self, item: Ints, time: Float64s) -> Bools:
        return np.asarray((time > self.born[item]) & (time < self.died[item]))

    def changes(self) -> tuple[Ints, Float64s]:
        """Return a tuple (item, time) of arrays with an entry for each birth and each death."""
        appears, vanishes = np.flatnonzero(np.isfinite(self.born)), np.flatnonzero(np.isfinite(self.died))
        return (
            np.concatenate([appears, vanishes]),
            np.concatenate([self.born[appears], self.died[vanishes]]),
        )


def draw_lifetimes(
    items: int, start: float, end: float, rng: Generator, *, births: float, deaths: float
) -> Lifetimes:
    """Draw lifetimes: a share ``births`` of the items appears and a share ``deaths`` vanishes.
    The times are uniform between ``start`` and ``end``; an item vanishes after it appeared.

    >>> lives = draw_lifetimes(10_000, 0.0, 1.0, np.random.default_rng(1), births=0.3, deaths=0.1)
    >>> [round(float(np.mean(np.isfinite(when))), 1) for when in (lives.born, lives.died)]
    [0.3, 0.1]
    """
    for name, share in (("births", births), ("deaths", deaths)):
        if not 0 <= share <= 1:
            raise UsageError(f"{name} is {share:g}: must be a share of the items, from 0 to 1")
    born = np.where(rng.random(items) < births, rng.uniform(start, end, items), -np.inf)
    since = np.maximum(born, start)
    died = np.where(rng.random(items) < deaths, rng.uniform(since, end), np.inf)
    return Lifetimes(born, died)


MOST_CHANGES = 2e8  # they take 3 GB
CELLS_AT_ONCE = 1 << 22  # items × steps of drift that are in memory at a time
_NO_DRIFT = RateDrift(0.0, np.finfo(float).max)


@dataclass(frozen=True, slots=True)
class WorldBehaviour:
    """How a world behaves, apart from its rates. The defaults are Cho's world: constant Poisson processes.

    ``shape``       of the times between changes: 1 is Poisson, above 1 more regular, below 1 bursty.
    ``season``      the profile of the week, None for a flat one.  ``drift``  how rates drift, None if not.
    ``mass_edits``  changes of many items of a group at once; None if there are none.
    ``births``, ``deaths``  the shares of the items that appear and that vanish during the simulation.
    """

    shape: float = 1.0
    season: Season | None = None
    drift: RateDrift | None = None
    mass_edits: MassEdits | None = None
    births: float = 0.0
    deaths: float = 0.0


@dataclass(frozen=True, slots=True)
class SimulatedWorld:
    """All changes of a simulated world, sorted by time: item ``item[j]`` changed at ``time[j]`` (seconds).
    ``items`` is the number of items, including those that never change."""

    items: int
    item: Ints
    time: Float64s
    start: float
    end: float


def simulate_world(
    rates_per_s: Float64s,
    start: float,
    end: float,
    nature: WorldBehaviour,
    rng: Generator,
    *,
    group: Ints | None = None,
) -> SimulatedWorld:
    """Draw all changes after ``start`` up to ``end`` (seconds) of items with these mean rates.
    ``group`` is the group of each item for mass edits; by default all items are in one group.

    >>> world = simulate_world(np.full(1000, 0.5), 0.0, 40.0, WorldBehaviour(), np.random.default_rng(1))
    >>> round(world.time.size / 1000)                            # λ·T
    20
    """
    rates = np.asarray(nonnegative("rate", rates_per_s), dtype=np.float64)
    if not start < end:
        raise UsageError(f"the window is empty: it starts at {start:g} and ends at {end:g}")
    expected = float(rates.sum()) * (end - start)
    if expected > MOST_CHANGES:
        problem = f"these rates make about {expected:.2g} changes, more than {MOST_CHANGES:.0e}"
        raise UsageError(f"{problem}: take fewer items, a shorter window or lower rates")
    parts = [_own_changes(rates, start, end, nature, rng)]
    if nature.mass_edits is not None:
        groups = np.zeros(rates.size, dtype=np.int64) if group is None else group
        season = nature.season or working_hours()
        begin, finish = season.operational([start, end])
        item, moment = nature.mass_edits.changes(groups, float(begin), float(finish), rng)
        parts.append((item, clock_times(season, moment)))
    lives = draw_lifetimes(rates.size, start, end, rng, births=nature.births, deaths=nature.deaths)
    item, time = _joined(parts)
    alive = lives.alive(item, time)
    item, time = _joined([(item[alive], time[alive]), lives.changes()])
    # Rounding may move a change to exactly the start, where every copy is fresh by definition.
    time = np.clip(time, np.nextafter(start, end), end)
    order = np.lexsort((item, time))
    return SimulatedWorld(rates.size, item[order], time[order], start, end)


def _own_changes(
    rates: Float64s, start: float, end: float, nature: WorldBehaviour, rng: Generator
) -> tuple[Ints, Float64s]:
    """Draw every item's own changes, for so many items at a time that their drift fits in memory."""
    season, drift = nature.season or working_hours(), nature.drift or _NO_DRIFT
    begin, finish = season.operational([start, end]).tolist()
    span = finish - begin
    together = max(1, CELLS_AT_ONCE // drift.steps(span))
    parts = []
    for first in range(0, rates.size, together):
        some = rates[first : first + together]
        pace = drift.factors(some.size, span, rng) * (some * (span / drift.steps(span)))[:, None]
        reached = np.concatenate([np.zeros((some.size, 1)), np.cumsum(pace, axis=1)], axis=1)
        owner, place = renewal_events(reached[:, -1], nature.shape, rng)
        moment = begin + span * time_of_progress(place, owner, reached)
        parts.append((owner + first, clock_times(season, moment)))
    return _joined(parts)


def _joined(parts: list[tuple[Ints, Float64s]]) -> tuple[Ints, Float64s]:
    return (
        np.concatenate([np.zeros(0, dtype=np.int64), *(item for item, _ in parts)]),
        np.concatenate([np.zeros(0), *(time for _, time in parts)]),
    )
