"""What a plan may pursue: five objectives, each under two orders of refreshing, in one table.

Every objective scales with time, so it is written without units. With r = λ/f (changes per refresh) its time
average for one item is λ^(1−p)·value(r), p its power; one more refresh per time buys λ^(−p)·marginal(r),
marginal = −r²·value'(r); and the frequency at which a refresh is worth just its price is f = λ/r with
marginal(r) = price·λ^p.

    objective    p   fixed order: −value          marginal          memoryless: −value   marginal
    freshness    1   −(1−e^{−r})/r                g(r)              −1/(1+r)             (r/(1+r))²
    age          2   r·(½−1/r+(1−e^{−r})/r²)      k(r)              r²/(1+r)             r³(r+2)/(1+r)²
    harmonic     1   Ein(r)−1+(1−e^{−r})/r        h(r)              ln(1+r)              r²/(1+r)
    missed       1   r/2                          r²/2              r                    r²
    lag          2   r²/6                         r³/3              r²                   2r³

Fixed order: an item is refreshed at even intervals. Random: at the times of a Poisson process (memoryless),
so that τ since the last refresh is exponential.
"""

from __future__ import annotations

from typing import Protocol

import numpy.typing as npt

from afresh.allocation.objectives.age import AgeFixed, AgeMemoryless
from afresh.allocation.objectives.freshness import FreshnessFixed, FreshnessMemoryless
from afresh.allocation.objectives.harmonic import HarmonicFixed, HarmonicMemoryless
from afresh.allocation.objectives.lag import LagFixed, LagMemoryless
from afresh.allocation.objectives.missed import MissedFixed, MissedMemoryless
from afresh.values.arrays import Float64s
from afresh.values.errors import one_of


class Objective(Protocol):
    """One objective under one order, without units; r, y ≥ 0, infinity included."""

    @property
    def power(self) -> int:
        """p: the value is in units of λ^(1−p)."""

    @property
    def top(self) -> float:
        """Limit of the marginal as r → ∞: at a higher price the item is dropped."""

    def value(self, r: npt.ArrayLike) -> Float64s:
        """What an item earns on average over time: its freshness, or minus its loss."""

    def marginal(self, r: npt.ArrayLike) -> Float64s:
        """What one more refresh per time buys; increasing in r."""

    def inverse(self, y: npt.ArrayLike) -> Float64s:
        """The r with marginal(r) = y; infinite from ``top`` on."""


OBJECTIVES: dict[tuple[str, str], Objective] = {
    ("freshness", "fixed"): FreshnessFixed(),
    ("freshness", "random"): FreshnessMemoryless(),
    ("age", "fixed"): AgeFixed(),
    ("age", "random"): AgeMemoryless(),
    ("harmonic", "fixed"): HarmonicFixed(),
    ("harmonic", "random"): HarmonicMemoryless(),
    ("missed", "fixed"): MissedFixed(),
    ("missed", "random"): MissedMemoryless(),
    ("lag", "fixed"): LagFixed(),
    ("lag", "random"): LagMemoryless(),
}

NAMES = tuple(dict.fromkeys(name for name, _ in OBJECTIVES))
ORDERS = ("fixed", "random", "memoryless")


def canonical_order(order: str) -> str:
    """``fixed`` or ``random``, of which ``memoryless`` is another name.

    >>> canonical_order("memoryless")
    'random'
    """
    return "random" if one_of("order", order, ORDERS) == "memoryless" else order


def objective_for(name: str, order: str) -> Objective:
    """The objective of that name under that order.

    >>> objective_for("freshness", "fixed").top
    1.0
    """
    return OBJECTIVES[one_of("objective", name, NAMES), canonical_order(order)]
