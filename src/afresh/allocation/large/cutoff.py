"""The cut-off of a freshness plan, the price from which items are dropped, and the frequencies that follow.

An item of rate λ, cost c and weight w has the price x = cλ/w. With the multiplier μ and y = μx, the optimal
plan refreshes the item at the frequency f = λ/Φ(y) if y < 1, and drops it otherwise (Cho & Garcia-Molina
2000, §4; Φ is ``model.curves.phi``). The *edge* 1/μ is the price from which items are dropped. Near the edge
1−y is computed as μ·(edge−x), which keeps all digits; 1−μx would lose them.

That is not enough if many items of one price are refreshed so rarely (r = λ/f beyond 30, at a tiny budget)
that their y equals 1 in double precision. Then the edge is put *at* their price and their r is stored with
it. For all items below the edge, 1−y = μ·(edge−x) + (1+r)e^{−r} with μ = (1−(1+r)e^{−r})/edge.

1/Φ is interpolated in a small table. With L = −ln(1−y), Φ is the positive root of r − ln(1+r) = L, which
``model.curves.phi`` computes in all digits by Halley steps. As a function of s = √(2L), H = s/Φ is smooth
from H(0) = 1 on, without singularities at y → 0 or y → 1. So cubic interpolation is accurate to 1e−12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from afresh.model.curves import phi
from afresh.values.arrays import Float64s

CELLS_PER_UNIT = 128
LAST = 8.75  # the largest s in the table; a double y < 1 has 1−y ≥ 2⁻⁵³, which is s ≤ 8.57
CELLS = int(LAST * CELLS_PER_UNIT)


@cache
def phi_table() -> Float64s:
    """Return the table of H(s) = s/Φ: an array with the rows c₀, c₁, c₂, c₃ and a column for each cell of s.
    In a cell H = c₀ + c₁t + c₂t² + c₃t³, with t from 0 to 1. The coefficients follow from H and its slope
    H' = (1 − s²(1+Φ)/Φ²)/Φ at both ends of the cell. The module's docstring explains s and Φ."""
    s = np.arange(1, CELLS + 1) / CELLS_PER_UNIT
    ratio = ratio_at(s * s / 2)
    values = np.append(1.0, s / ratio)
    slopes = np.append(-1 / 3, (1 - (s / ratio) ** 2 * (1 + ratio)) / ratio) / CELLS_PER_UNIT
    start, end, leaving, arriving = values[:-1], values[1:], slopes[:-1], slopes[1:]
    square = 3 * (end - start) - 2 * leaving - arriving
    cube = 2 * (start - end) + leaving + arriving
    return np.stack([start, leaving, square, cube])


def ratio_at(log_rest: Float64s) -> Float64s:
    """Return Φ(y), the changes per refresh at which the marginal freshness is y, for y = 1 − e^{−L}.
    The argument is ``log_rest`` = L > 0 instead of y, because y is rounded to 1 from L = 37 on.

    >>> ratio_at(np.array([0.5, 1000.0])).round(6)
    array([   1.357677, 1006.91564 ])
    """
    far = log_rest > 2.0
    ratio = phi(-np.expm1(-np.minimum(log_rest, 2.0)))
    wanted = log_rest[far]
    found = wanted + np.log1p(wanted + np.log1p(wanted))
    for _ in range(4):
        found -= (found - np.log1p(found) - wanted) * (1 + found) / found
    ratio[far] = found
    return ratio


def inverse_phi(log_rest: Float64s) -> Float64s:
    """Return 1/Φ(y), the refreshes per change, from the table; accurate to 1e−12 up to L = −ln(1−y) = 38.
    The argument is ``log_rest`` = L > 0.

    >>> inverse_phi(np.array([0.76606])).round(4)  # y = 0.5352, where items are refreshed most often
    array([0.5576])
    """
    s = np.sqrt(2 * log_rest)
    position = np.minimum(s * CELLS_PER_UNIT, CELLS - 1e-9)
    cell = position.astype(np.intp)
    position -= cell
    coefficients = phi_table()
    inverse: Float64s = coefficients[3].take(cell)
    for power in (2, 1, 0):
        inverse *= position
        inverse += coefficients[power].take(cell)
    inverse /= s
    return inverse


_NEAR = 3.0  # from this L on, 1−y is computed from the distance to the edge


@dataclass(frozen=True, slots=True)
class Cutoff:
    """The price ``edge`` above which items are dropped. The price of an item is cost·rate/weight.
    Items exactly at the edge have ``ratio`` changes per refresh, ∞ if they are dropped too."""

    edge: float
    ratio: float = math.inf

    @property
    def rest(self) -> float:
        """1−y at the edge, which is (1+r)e^{−r} for r = ``ratio`` changes per refresh."""
        return 0.0 if self.ratio > 800 else (1 + self.ratio) * math.exp(-self.ratio)

    @property
    def multiplier(self) -> float:
        """The multiplier μ: the gain in Σ weight·freshness from one more unit of budget."""
        return (1 - self.rest) / self.edge

    def inverse_ratio(self, prices: Float64s) -> Float64s:
        """Return the refreshes per change of items of these prices > 0, accurate to 1e−12; 0 if dropped.

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
    """Return the freshness (1−e^{−r})/r from y = g(r) and ``inverse`` i = 1/r, as i(1+y·i)/(1+i); 0 if i = 0.
    g is ``model.curves.g``. This form needs no exponential, which would be slow.

    >>> freshness_at(np.array([0.5351534]), np.array([1 / 1.7933])).round(4)
    array([0.4648])
    """
    fresh = y * inverse
    fresh += 1
    fresh *= inverse
    fresh /= inverse + 1
    return fresh
