"""Age: the time since the first change that the copy has missed, 0 while it is fresh.

Even intervals: age r·(½−1/r+(1−e^{−r})/r²)/λ, marginal k(r)/λ² (Cho & Garcia-Molina 2000, §4.4). No item is
ever dropped: an item that is never refreshed grows infinitely old.

>>> FIXED.value(1.0)
array(-0.13212056)

Poisson refreshes: age λ/(f(f+λ)), that is r²/(1+r) in units of 1/λ; marginal r³(r+2)/(1+r)².

>>> MEMORYLESS.inverse(MEMORYLESS.marginal([1e-6, 1.0, 1e6]))
array([1.e-06, 1.e+00, 1.e+06])
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.objectives.objective import Objective, as_array_function
from afresh.model.curves import age_curve, k, k_inverse
from afresh.values.arrays import Float64s

FIXED = Objective(2, np.inf, as_array_function(lambda r: -r * age_curve(r)), k, k_inverse)


@as_array_function
def _marginal(r: Float64s) -> Float64s:
    cut = np.minimum(r, 1e100)
    return np.asarray(r * r * (cut / (1 + cut)) * ((cut + 2) / (1 + cut)))


@as_array_function
def _inverse(y: Float64s) -> Float64s:
    """The root of r³(r+2)/(1+r)² = y.

    The marginal, r² − (r/(1+r))², is a quartic in r, but log marginal has slope 2 to 3 over log r: Newton
    steps on the logarithms converge from any start, in five from the two asymptotes.
    """
    # Outside these limits the marginal is 2r³ or r² to the last digit.
    inner = np.clip(y, 1e-60, 1e40)
    r = np.where(inner < 4, np.cbrt(inner / 2), np.sqrt(inner))
    for _ in range(5):
        steepness = 3 + r / (2 + r) - 2 * r / (1 + r)
        r = r * np.exp(np.log(inner / _marginal(r)) / steepness)
    return np.where(y < 1e-60, np.cbrt(y / 2), np.where(y > 1e40, np.sqrt(y), r))


MEMORYLESS = Objective(2, np.inf, as_array_function(lambda r: -r / (1 + 1 / r)), _marginal, _inverse)
