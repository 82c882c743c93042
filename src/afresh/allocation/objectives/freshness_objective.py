"""Freshness: the share of time during which the copy equals the source.

Even intervals: F = (1−e^{−r})/r, marginal g(r)/λ, inverse Φ (Cho & Garcia-Molina 2000, §4). An item whose
price y = μcλ/w is 1 or more is dropped: it changes too fast to be worth a refresh.

>>> FIXED.inverse([0.5351623, 1.0]).round(4)
array([1.7933,    inf])

Poisson refreshes: F = 1/(1+r), marginal (r/(1+r))², r = √y/(1−√y) (Azar et al. 2018). In frequencies:
f = max(0, √(wλ/(cμ)) − λ).

>>> MEMORYLESS.inverse([0.25, 1.0])
array([ 1., inf])
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.objectives.objective import Objective, as_array_function
from afresh.model.curves import freshness_curve, g, phi
from afresh.values.arrays import Float64s

FIXED = Objective(power=1, top=1.0, value=freshness_curve, marginal=g, inverse=phi)


@as_array_function
def _marginal(r: Float64s) -> Float64s:
    cut = np.minimum(r, 1e200)  # past it the ratio is 1; the cut keeps ∞/∞ out
    return np.asarray(np.square(cut / (1 + cut)))


@as_array_function
def _inverse(y: Float64s) -> Float64s:
    root = np.sqrt(np.minimum(y, 1.0))
    return np.asarray(root / (1 - root))


MEMORYLESS = Objective(1, 1.0, as_array_function(lambda r: 1 / (1 + r)), _marginal, _inverse)
