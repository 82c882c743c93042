"""What several policies learn together, each of which has a part of all items: prior, season, notices.

Each policy tells what it learned (``Lessons``) now and then, and gets back what all of them learned
(``CommonLessons``). Messages have a few kilobytes, whatever the number of items. What one policy alone would
learn of all items follows:

prior     The prior of all items is the mean of the policies' priors, weighted by their polled items. In the
          prior of a policy it counts as much as ``COMMON_ITEMS`` of its items: a new policy starts from it,
          and one with many items has the prior of its own.
season    Sums over hours of the week (``rates.pooled_season``). All policies use the same profile.
notices   The counts of each origin over all hosts are sums, to which those of the other policies are added. A
          host belongs to one policy, so that its own counts are complete.

Grids of rates differ, so priors travel on a common one, ``STEPS_PER_OCTAVE`` steps an octave. Between two of
its rates a probability is divided so that the mean of ln λ stays.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from afresh.policy.adaptive.age_priors import with_even_share
from afresh.rates.pooled_season import SeasonProfiles, SeasonSums, pooled_profiles
from afresh.values.arrays import Float64s

if TYPE_CHECKING:
    from afresh.policy.adaptive.adaptive import Adaptive

COMMON_ITEMS = 200.0
STEPS_PER_OCTAVE = 4
_LOWEST_OCTAVE, _OCTAVES = -64, 96  # λ from 2⁻⁶⁴ to 2³²
_GRID = _OCTAVES * STEPS_PER_OCTAVE + 1
_SAMPLE = 5000  # items to which the prior that a policy tells is fitted
_YOUNG = 1000  # a policy with fewer polled items follows the others at once, else at its next refit
_QUICK = 100_000  # items of which all next polls are computed again in a moment


@dataclass(frozen=True, slots=True)
class Lessons:
    """What one policy tells. ``items`` have been polled; ``prior`` is theirs, on the common grid. ``notices``
    has the counts of each origin (``notice_model.COUNTS``), ``season`` its sums, if there are any polls."""

    items: int
    prior: Float64s
    notices: Mapping[str, Float64s] = field(default_factory=dict)
    season: SeasonSums | None = None


@dataclass(frozen=True, slots=True)
class CommonLessons:
    """What all policies learned, for one of them: ``notices`` are those of the others. ``items`` is how many
    items have been polled by all; 0: there is no prior yet."""

    items: int
    prior: Float64s
    notices: Mapping[str, Float64s] = field(default_factory=dict)
    season: SeasonProfiles | None = None


class LessonPool:
    """Keeps the latest lessons of each policy, under any name of it, and their sums.

    >>> pool, rates = LessonPool(), np.exp2(np.arange(3.0))
    >>> pool.add("a", Lessons(30, on_common_grid(rates, np.array([1.0, 0.0, 0.0])), {"feed": np.ones(5)}))
    >>> pool.add("b", Lessons(10, on_common_grid(rates, np.array([0.0, 0.0, 1.0])), {"feed": np.ones(5)}))
    >>> common = pool.for_member("b")
    >>> from_common_grid(common.prior, rates).round(2).tolist(), common.notices["feed"].tolist()
    ([0.75, 0.0, 0.25], [1.0, 1.0, 1.0, 1.0, 1.0])
    """

    def __init__(self) -> None:
        self._lessons: dict[Hashable, Lessons] = {}
        self._items, self._prior = 0, np.zeros(_GRID)
        self._notices: dict[str, Float64s] = {}
        self._season: SeasonSums | None = None

    def add(self, member: Hashable, lessons: Lessons) -> None:
        """Replace what this member taught before."""
        before, self._lessons[member] = self._lessons.get(member), lessons
        if before is not None:
            self._count(before, -1)
        self._count(lessons, 1)

    def _count(self, lessons: Lessons, sign: int) -> None:
        self._items += sign * lessons.items
        self._prior = self._prior + sign * lessons.items * lessons.prior
        for origin, counts in lessons.notices.items():
            self._notices[origin] = self._notices.get(origin, 0.0) + sign * counts
        if lessons.season is not None:
            total = self._season
            if sign < 0:
                assert total is not None
                self._season = total - lessons.season
            else:
                self._season = lessons.season if total is None else total + lessons.season

    def for_member(self, member: Hashable) -> CommonLessons:
        """Return what all members learned, for this one."""
        own = self._lessons.get(member)
        known = {} if own is None else own.notices
        notices = {
            origin: np.maximum(counts - known.get(origin, 0.0), 0.0)
            for origin, counts in self._notices.items()
        }
        season = None if self._season is None else pooled_profiles(self._season)
        prior = np.maximum(self._prior, 0.0) / max(self._items, 1)
        return CommonLessons(self._items, prior, notices, season)


def on_common_grid(rates: Float64s, prior: Float64s) -> Float64s:
    """Return a prior over ``rates`` on the common grid."""
    return _divide((np.log2(rates) - _LOWEST_OCTAVE) * STEPS_PER_OCTAVE, prior, _GRID)


def from_common_grid(prior: Float64s, rates: Float64s) -> Float64s:
    """Return a prior of the common grid over ``rates``, which grow by a constant factor; it excludes none."""
    used = np.flatnonzero(prior)
    octaves = used / STEPS_PER_OCTAVE + _LOWEST_OCTAVE - np.log2(rates[0])
    steps = octaves / np.log2(rates[1] / rates[0])
    return with_even_share(_divide(steps, prior[used], rates.size))


def _divide(places: Float64s, masses: Float64s, size: int) -> Float64s:
    """Return an array with each mass divided between the two cells next to its place."""
    inside = np.clip(places, 0.0, size - 1.0)
    left = np.minimum(inside.astype(np.int64), size - 2)
    right_part = inside - left
    found = np.bincount(left, masses * (1.0 - right_part), minlength=size)
    found += np.bincount(left + 1, masses * right_part, minlength=size)
    return np.asarray(found)


def lessons_of(policy: Adaptive) -> Lessons:
    """Return what this policy learned, for a ``LessonPool``."""
    prior, items = policy.belief.own_prior(policy.items.alive, _SAMPLE)
    return Lessons(
        items,
        on_common_grid(policy.belief.rates, prior),
        policy.notices.own_totals(),
        policy.clock.sums(policy.belief.mean),
    )


def adopt_common(policy: Adaptive, common: CommonLessons, now: float) -> None:
    """Let the policy follow what all learned. It is used with its next refit, and at once if the policy has
    hardly any polls of its own."""
    is_first = policy.belief.common is None
    policy.notices.elsewhere = dict(common.notices)
    policy.clock.common = common.season
    if not common.items:
        return
    policy.belief.common = from_common_grid(common.prior, policy.belief.rates), COMMON_ITEMS
    polled = int(np.count_nonzero(policy.belief.polled & policy.items.alive))
    if polled < _YOUNG and (is_first or policy.items.size <= _QUICK):
        policy.relearn_and_rekey(now)


def keep_common(before: Adaptive, after: Adaptive) -> None:
    """Let a policy that takes the place of another one follow the common season and notices as that one did.
    The common prior, which depends on the grid of rates, comes again with the next lessons."""
    after.notices.elsewhere, after.clock.common = before.notices.elsewhere, before.clock.common
