"""1/Φ from a small table, for passes over many items.

Φ = g⁻¹ turns an item's y = μcλ/w into r = λ/f (freshness in fixed order, Cho & Garcia-Molina 2000, §4): with
L = −ln(1−y) it is the positive root of r − ln(1+r) = L. ``model.curves.phi`` finds it to the last bit by
Halley steps. As a function of s = √(2L), H = s/Φ is smooth from H(0) = 1 on, and neither y → 0 nor y → 1 is
singular: a cubic Hermite interpolation gives it to 1e−12 for a fraction of the time.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from afresh.model.curves import phi
from afresh.values.arrays import Float64s

CELLS_PER_UNIT = 128
LAST = 8.75  # the largest s in the table; 1−y of two different doubles is at least 2⁻⁵³, s = 8.57
CELLS = int(LAST * CELLS_PER_UNIT)


@cache
def table() -> Float64s:
    """Rows c₀, c₁, c₂, c₃: on each cell H = c₀ + c₁t + c₂t² + c₃t³; H' = (1 − s²(1+Φ)/Φ²)/Φ."""
    s = np.arange(1, CELLS + 1) / CELLS_PER_UNIT
    ratio = ratio_at(s * s / 2)
    values = np.append(1.0, s / ratio)
    slopes = np.append(-1 / 3, (1 - (s / ratio) ** 2 * (1 + ratio)) / ratio) / CELLS_PER_UNIT
    start, end, leaving, arriving = values[:-1], values[1:], slopes[:-1], slopes[1:]
    square = 3 * (end - start) - 2 * leaving - arriving
    cube = 2 * (start - end) + leaving + arriving
    return np.stack([start, leaving, square, cube])


def ratio_at(log_rest: Float64s) -> Float64s:
    """Φ from L > 0 instead of y = 1−e^{−L}, which is 1 for L > 37.

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
    """1/Φ from L = −ln(1−y) > 0, to 1e−12 up to L = 38.

    >>> inverse_phi(np.array([0.76606])).round(4)  # y = 0.5352, where items are refreshed most often
    array([0.5576])
    """
    s = np.sqrt(2 * log_rest)
    position = np.minimum(s * CELLS_PER_UNIT, CELLS - 1e-9)
    cell = position.astype(np.intp)
    position -= cell
    coefficients = table()
    inverse: Float64s = coefficients[3].take(cell)
    for power in (2, 1, 0):
        inverse *= position
        inverse += coefficients[power].take(cell)
    inverse /= s
    return inverse
