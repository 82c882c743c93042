"""A simulated world: every change of every item over a window, drawn as its settings say.

An item's own changes are a renewal process of rate 1 in the item's own time Λᵢ(t) = λᵢ∫dᵢ(u)s(u)du, with dᵢ
its drift and s the season common to all items. So each of these keeps its meaning however they are combined.
Mass edits, which change many items of a group at one moment, are added, and changes outside an item's life
are removed. A birth and a death are changes: a copy of nothing is wrong once there is something, and the
other way round.
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


@dataclass(frozen=True, slots=True)
class MassEdits:
    """Each group is edited at ``rate_per_s`` (Poisson); an edit changes each member with chance ``share``."""

    rate_per_s: float
    share: float

    def __post_init__(self) -> None:
        if not (self.rate_per_s >= 0 and np.isfinite(self.rate_per_s)):
            raise UsageError(f"mass edits: rate is {self.rate_per_s:g} per second: must be 0 or more")
        if not 0 < self.share <= 1:
            raise UsageError(f"mass edits: share is {self.share:g}: must be above 0 and at most 1")

    def changes(self, group: Ints, start: float, end: float, rng: Generator) -> tuple[Ints, Float64s]:
        """Item and time of every change by mass edits; item ``i`` is in group ``group[i]``.

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
    """When each item appears (−∞: it existed before) and vanishes (∞: it stays)."""

    born: Float64s
    died: Float64s

    def alive(self, item: Ints, time: Float64s) -> Bools:
        return np.asarray((time > self.born[item]) & (time < self.died[item]))

    def changes(self) -> tuple[Ints, Float64s]:
        """Item and time of every birth and death."""
        appears, vanishes = np.flatnonzero(np.isfinite(self.born)), np.flatnonzero(np.isfinite(self.died))
        return (
            np.concatenate([appears, vanishes]),
            np.concatenate([self.born[appears], self.died[vanishes]]),
        )


def draw_lifetimes(
    items: int, start: float, end: float, rng: Generator, *, births: float, deaths: float
) -> Lifetimes:
    """A share ``births`` of the items appears in the window, a share ``deaths`` vanishes, at uniform times.

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


MOST_CHANGES = 2e8  # 3 GB of them
CELLS_AT_ONCE = 1 << 22  # items × steps of drift held in memory
_NO_DRIFT = RateDrift(0.0, np.finfo(float).max)


@dataclass(frozen=True, slots=True)
class WorldBehaviour:
    """How a world behaves, apart from its rates. The defaults are Cho's world: Poisson, without an end.

    ``shape``   of the gaps between changes: 1 Poisson, above regular, below bursty.
    ``season``  when in the week changes come.      ``drift``   how rates wander; None: they do not.
    ``mass_edits``  changes of whole groups; None: none.
    ``births``, ``deaths``  shares of the items that appear and vanish in the window.
    """

    shape: float = 1.0
    season: Season | None = None
    drift: RateDrift | None = None
    mass_edits: MassEdits | None = None
    births: float = 0.0
    deaths: float = 0.0


@dataclass(frozen=True, slots=True)
class SimulatedWorld:
    """Change ``j`` is of item ``item[j]`` at ``time[j]`` (seconds), sorted by time; ``items`` in all."""

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
    """All changes in (start, end] of items with these mean rates; ``group`` of each for mass edits.

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
    # Rounding may carry a change to the very start, where every copy is fresh by definition.
    time = np.clip(time, np.nextafter(start, end), end)
    order = np.lexsort((item, time))
    return SimulatedWorld(rates.size, item[order], time[order], start, end)


def _own_changes(
    rates: Float64s, start: float, end: float, nature: WorldBehaviour, rng: Generator
) -> tuple[Ints, Float64s]:
    """Every item's own changes; only so many items at a time that their drift fits in memory."""
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
