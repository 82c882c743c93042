"""A simulated world: every change of every item over a window, drawn as its settings say.

An item's own changes are a renewal process of rate 1 in the item's own time Λᵢ(t) = λᵢ∫dᵢ(u)s(u)du, with dᵢ
its drift and s the season common to all items. So each of these keeps its meaning however they are combined.
Mass edits are added, and changes outside an item's life are removed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.rates.regimes.season import Season
from afresh.replay.worlds.change_process import RateDrift, renewal_events, time_of_progress
from afresh.replay.worlds.working_hours import clock_times, working_hours
from afresh.replay.worlds.world_events import MassEdits, draw_lifetimes
from afresh.values.arrays import Float64s, Ints, nonnegative
from afresh.values.errors import UsageError

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
    rng: np.random.Generator,
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
    _check_count(float(rates.sum()) * (end - start))
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
    rates: Float64s, start: float, end: float, nature: WorldBehaviour, rng: np.random.Generator
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


def _check_count(expected: float) -> None:
    if expected > MOST_CHANGES:
        problem = f"these rates make about {expected:.2g} changes, more than {MOST_CHANGES:.0e}"
        raise UsageError(f"{problem}: take fewer items, a shorter window or lower rates")


def _joined(parts: list[tuple[Ints, Float64s]]) -> tuple[Ints, Float64s]:
    return (
        np.concatenate([np.zeros(0, dtype=np.int64), *(item for item, _ in parts)]),
        np.concatenate([np.zeros(0), *(time for _, time in parts)]),
    )
