"""Content lag: the sum over missed changes of the time since each, Σ(t − tᵢ) (Yang et al.).

Even intervals: ½λτ² averaged over τ is λ/(6f²); marginal λ/(3f³), f = (wλ/(3cμ))^{1/3}.

>>> FIXED.inverse([9.0])
array([3.])

Poisson refreshes: ½λτ² averaged over an exponential τ is λ/f²; marginal 2λ/f³, f = (2wλ/(cμ))^{1/3}.

>>> MEMORYLESS.inverse([16.0])
array([2.])
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.objectives.objective import Objective, as_array_function

FIXED = Objective(
    power=2,
    top=np.inf,
    value=as_array_function(lambda r: np.square(r) / -6),
    marginal=as_array_function(lambda r: r * r * r / 3),
    inverse=as_array_function(lambda y: np.cbrt(3 * y)),
)

MEMORYLESS = Objective(
    power=2,
    top=np.inf,
    value=as_array_function(lambda r: -np.square(r)),
    marginal=as_array_function(lambda r: 2 * r * r * r),
    inverse=as_array_function(lambda y: np.cbrt(y / 2)),
)
