"""Births, deaths and mass edits of a simulated world.

A birth and a death are changes: a copy of nothing is wrong once there is something, and the other way round.
A mass edit changes many items of a group at one moment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import Bools, Float64s, Ints
from afresh.values.errors import UsageError


@dataclass(frozen=True, slots=True)
class MassEdits:
    """Each group is edited at ``rate_per_s`` (Poisson); an edit changes each member with chance ``share``."""

    rate_per_s: float
    share: float

    def __post_init__(self) -> None:
        """Refuse a negative rate and a share outside (0, 1]."""
        if not (self.rate_per_s >= 0 and np.isfinite(self.rate_per_s)):
            raise UsageError(f"mass edits: rate is {self.rate_per_s:g} per second: must be 0 or more")
        if not 0 < self.share <= 1:
            raise UsageError(f"mass edits: share is {self.share:g}: must be above 0 and at most 1")

    def changes(
        self, group: Ints, start: float, end: float, rng: np.random.Generator
    ) -> tuple[Ints, Float64s]:
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
        """Whether the item exists at that time."""
        return np.asarray((time > self.born[item]) & (time < self.died[item]))

    def changes(self) -> tuple[Ints, Float64s]:
        """Item and time of every birth and death."""
        appears, vanishes = np.flatnonzero(np.isfinite(self.born)), np.flatnonzero(np.isfinite(self.died))
        return (
            np.concatenate([appears, vanishes]),
            np.concatenate([self.born[appears], self.died[vanishes]]),
        )


def draw_lifetimes(
    items: int, start: float, end: float, rng: np.random.Generator, *, births: float, deaths: float
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
