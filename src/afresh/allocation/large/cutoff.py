"""The cut-off price of a freshness plan, which all items share, and the frequency that follows for each.

With the price x = cλ/w of an item and the multiplier μ, y = μx; the optimal plan refreshes it at f = λ/Φ(y)
if y < 1 and drops it otherwise (Cho & Garcia-Molina 2000, §4). So μ is known by its *edge* 1/μ, the price
from which items are dropped. Near the edge 1−y = μ·(edge−x) keeps all its digits, whereas 1−μx loses them.

That is not enough where many items of one price are refreshed so rarely (r = λ/f beyond 30, a tiny budget)
that their y differs from 1 by less than a double shows. Then the edge is put *at* their price, and r is given
for it: 1−y = μ·(edge−x) + (1+r)e^{−r} holds for all items below, μ = (1−(1+r)e^{−r})/edge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.allocation.large.phi_table import inverse_phi
from afresh.values.arrays import Float64s

_NEAR = 3.0  # L from which 1−y is found from the distance to the edge


@dataclass(frozen=True, slots=True)
class Cutoff:
    """Items at prices beyond ``edge`` are dropped; those right at it have r = ``ratio`` (∞: dropped too)."""

    edge: float
    ratio: float = math.inf

    @property
    def rest(self) -> float:
        """1−y at the edge: (1+r)e^{−r}."""
        return 0.0 if self.ratio > 800 else (1 + self.ratio) * math.exp(-self.ratio)

    @property
    def multiplier(self) -> float:
        """μ: the gain in Σ w·F per further unit of spend."""
        return (1 - self.rest) / self.edge

    def inverse_ratio(self, prices: Float64s) -> Float64s:
        """1/r = f/λ for items of these prices (above 0), to 1e−12; 0 where they are dropped.

        >>> Cutoff(edge=2.0).inverse_ratio(np.array([1.0703, 2.0])).round(4)
        array([0.5576, 0.    ])
        """
        with np.errstate(over="ignore", under="ignore"):
            log_rest = prices * -self.multiplier
        np.maximum(log_rest, 2.0**-53 - 1, out=log_rest)
        np.log1p(log_rest, out=log_rest)
        np.negative(log_rest, out=log_rest)
        kept = prices < self.edge
        near = np.flatnonzero(kept & (log_rest > _NEAR))
        log_rest[near] = -np.log((self.edge - prices[near]) * self.multiplier + self.rest)
        inverse = inverse_phi(log_rest)
        inverse *= kept
        if self.ratio < math.inf:
            inverse[prices == self.edge] = 1 / self.ratio
        return inverse


def freshness_at(y: Float64s, inverse: Float64s) -> Float64s:
    """F = (1−e^{−r})/r from y = g(r) and i = 1/r without an exponential: i(1+y·i)/(1+i); 0 where i = 0.

    >>> freshness_at(np.array([0.5351534]), np.array([1 / 1.7933])).round(4)
    array([0.4648])
    """
    fresh = y * inverse
    fresh += 1
    fresh *= inverse
    fresh /= inverse + 1
    return fresh
