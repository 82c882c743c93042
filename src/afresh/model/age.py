"""Time-average age of copies: the time since the first change that a copy has missed, 0 while it is fresh.

    fixed        T·(1/2 − 1/r + (1−e^{−r})/r²)
    random       T·(1/3 + (1/2 − 1/r)² − ((1−e^{−r})/r²)²)
    memoryless   T·r/(1+r)

with r = λ/f and T = 1/f (Cho & Garcia-Molina 2000, Table 2).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from afresh.model.curves import age_curve, freshness_curve, horner
from afresh.model.refresh_order import (
    cast_like_inputs,
    changes_per_refresh,
    check_order,
    check_rates_and_frequencies,
)
from afresh.values.arrays import Float64s

# The random-order age is Σ_{j≥5} (−1)^{j+1}(2ʲ−2)·r^{j−4}/j!; the printed form is 24 % off at r = 1e−5.
_RANDOM_ORDER = [(-1) ** (j + 1) * (2**j - 2) / math.factorial(j) for j in range(5, 33)]


def age(rate: npt.ArrayLike, frequency: npt.ArrayLike, order: str = "fixed") -> Any:
    """The mean age of a copy, in the time unit of the rates; floats for scalars, else arrays.

    An item that never changes has age 0; one that changes and is never refreshed has an infinite age. At one
    change per refresh the fixed order's age is "one fourth" of the purely random one's (Cho & Garcia-Molina
    2000, §4).

    >>> round(age(1.0, 1.0) / age(1.0, 1.0, "purely random"), 3)
    0.264
    >>> age([0.0, 3.0, 3.0], [0.0, 0.0, np.inf])
    array([ 0., inf,  0.])
    """
    order = check_order(order)
    rates, frequencies = check_rates_and_frequencies(rate, frequency)
    r = changes_per_refresh(rates, frequencies)
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        value = np.where(r > 0, _age_in_intervals(r, order) / frequencies.astype(np.float64), 0.0)
    return cast_like_inputs(value, rates, frequencies)


def _age_in_intervals(r: Float64s, order: str) -> Float64s:
    """The age in units of the interval T."""
    if order == "fixed":
        return age_curve(r)
    if order == "memoryless":
        return np.where(np.isinf(r), 1.0, r / (1 + r))
    near, far = np.minimum(r, 1.0), np.maximum(r, 1.0)
    # The difference of squares, factored: (½−1/r)² − (φ/r)² = aged·(aged − 2φ/r).
    late = 1 / 3 + age_curve(far) * (age_curve(far) - 2 * freshness_curve(far) / far)
    return np.where(r < 1, near * horner(_RANDOM_ORDER, near), late)
