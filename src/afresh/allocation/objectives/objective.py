"""What an objective of a plan is: a value without units, its marginal, and the inverse of that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Float64s


@dataclass(frozen=True, slots=True)
class Objective:
    """One objective under one order of refreshing, as functions of r = λ/f, the changes per refresh.

    All take 0 to infinity, scalars or arrays, and return float64 arrays.

    ``power``    p: the value of an item is λ^(1−p)·value(r).
    ``top``      limit of the marginal as r → ∞: at a higher price the item is dropped.
    ``value``    what an item earns on average over time: its freshness, or minus its loss.
    ``marginal`` −r²·value'(r), what one more refresh per time buys in units of λ^(−p); increasing in r.
    ``inverse``  the r with marginal(r) = y; infinite from ``top`` on.
    """

    power: int
    top: float
    value: Callable[[npt.ArrayLike], Float64s]
    marginal: Callable[[npt.ArrayLike], Float64s]
    inverse: Callable[[npt.ArrayLike], Float64s]


def as_array_function(formula: Callable[[Float64s], Float64s]) -> Callable[[npt.ArrayLike], Float64s]:
    """The formula for scalars and arrays alike; overflow and 1/0 give the right limits, without warnings.

    >>> as_array_function(lambda r: 1 / (1 + 1 / r))([0.0, 1.0])
    array([0. , 0.5])
    """

    def function(x: npt.ArrayLike) -> Float64s:
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(formula(np.asarray(x, dtype=np.float64)), dtype=np.float64)

    return function
