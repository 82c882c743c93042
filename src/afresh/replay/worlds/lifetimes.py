"""Births and deaths of a synthetic world: items that appear, items that vanish.

Both are changes: a copy of nothing is wrong once there is something, and the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import Bools, Float64s, Ints
from afresh.values.errors import UsageError


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """When each item appears (−∞: it was there before) and vanishes (∞: it stays)."""

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
    """A share ``births`` of the items appears in the window, a share ``deaths`` vanishes, at even chances.

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
