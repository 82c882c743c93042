"""Harmonic staleness: the n-th missed change costs 1/n, so that no copy is ever beyond hope.

Even intervals: Ein(r) − 1 + (1−e^{−r})/r, marginal h(r) = r−1+e^{−r}, inverse 1+y+W₀(−e^{−(1+y)}).

>>> FIXED.inverse(FIXED.marginal([1e-6, 2.0]))
array([1.e-06, 2.e+00])

Poisson refreshes: ln(1+r), marginal r²/(1+r), r = (y+√(y²+4y))/2 (Kolobov et al. 2019). In frequencies, with
q = wλ/(cμ): f = 2q/(λ+√(λ²+4q)).

>>> MEMORYLESS.inverse([0.0, 0.5])
array([0., 1.])
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.objectives.objective import Objective, as_array_function
from afresh.model.curves import h, h_inverse, harmonic_curve

FIXED = Objective(1, np.inf, as_array_function(lambda r: -harmonic_curve(r)), h, h_inverse)

MEMORYLESS = Objective(
    power=1,
    top=np.inf,
    value=as_array_function(lambda r: -np.log1p(r)),
    marginal=as_array_function(lambda r: r / (1 + 1 / r)),
    inverse=as_array_function(lambda y: (y + np.sqrt(y) * np.sqrt(y + 4)) / 2),
)
