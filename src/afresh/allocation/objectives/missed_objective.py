"""Missed changes: how many changes the copy is behind.

Even intervals: λ/(2f) changes behind, marginal λ/(2f²), f = √(wλ/(2cμ)): the square-root rule.

>>> FIXED.inverse([2.0])
array([2.])

Poisson refreshes: λ/f changes behind, twice as many; marginal λ/f², f = √(wλ/(cμ)).

>>> MEMORYLESS.inverse([4.0])
array([2.])
"""

from __future__ import annotations

import math

import numpy as np

from afresh.allocation.objectives.objective import Objective, as_array_function

FIXED = Objective(
    power=1,
    top=np.inf,
    value=as_array_function(lambda r: -0.5 * r),
    marginal=as_array_function(lambda r: 0.5 * np.square(r)),
    inverse=as_array_function(lambda y: math.sqrt(2) * np.sqrt(y)),
)

MEMORYLESS = Objective(
    power=1,
    top=np.inf,
    value=as_array_function(np.negative),
    marginal=as_array_function(np.square),
    inverse=as_array_function(np.sqrt),
)
