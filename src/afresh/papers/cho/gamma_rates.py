"""Freshness and age of a database whose rates are Gamma distributed (Cho & Garcia-Molina 2000, Table 3).

Mean rate λ, coefficient of variation δ (standard deviation over mean), r = λ/f, T = 1/f:

    uniform        F = (1 − (1+rδ²)^{1−1/δ²}) / (r(1−δ²))
                   A = T/(1−δ²)·[(1−δ²)/2 − 1/r + (1 − (1+rδ²)^{2−1/δ²})/(r²(1−2δ²))]
    proportional   F = (1−e^{−r})/r
                   A = T/(1−δ²)·[1/2 − 1/r + (1−e^{−r})/r²], infinite from δ = 1 on

The uniform row has removable singularities at δ = 0, δ² = 1/2, δ = 1 and r = 0. None of them is met here: a
mixture of exponentials over Gamma rates is Lomax decay with shape 1/δ² and scale T/(rδ²), so F is its
integral over one interval, and A = ∫₀ᵀ (1−s/T)(1−z(s))ds its loss less its age gain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from afresh.model import curves
from afresh.model.decays.lomax import Lomax
from afresh.model.decays.parameters import check_parameter
from afresh.model.refresh_order import (
    cast_like_inputs,
    changes_per_refresh,
    check_rates_and_frequencies,
    check_shapes,
)
from afresh.values.arrays import Float64s, Floats, as_floats
from afresh.values.errors import one_of

ALLOCATIONS = ("uniform", "proportional")
_EQUAL = 1e-12  # δ² below this, all rates are equal to double precision


def freshness(
    rate: npt.ArrayLike, frequency: npt.ArrayLike, delta: npt.ArrayLike, allocation: str = "uniform"
) -> Any:
    """Mean freshness at mean rate λ and mean frequency f, for δ from 0 to 300.

    At δ = 1 it is ln(1+r)/r.

    >>> round(freshness(1.0, 1.0, 1.0), 6), round(freshness(1.0, 1.0, 1.0, "proportional"), 6)
    (0.693147, 0.632121)
    """
    one_of("allocation", allocation, ALLOCATIONS)
    rates, frequencies, deltas = _checked(rate, frequency, delta)
    r, square = np.broadcast_arrays(changes_per_refresh(rates, frequencies), deltas.astype(np.float64) ** 2)
    equal = curves.freshness_curve(r)
    if allocation == "uniform":
        never = np.isinf(r)
        mixed = _lomax(np.where(never, 1.0, r), square).integral(1.0)
        equal = np.where(square < _EQUAL, equal, np.where(never, 0.0, mixed))
    return cast_like_inputs(equal, rates, frequencies, deltas)


def age(
    rate: npt.ArrayLike, frequency: npt.ArrayLike, delta: npt.ArrayLike, allocation: str = "uniform"
) -> Any:
    """Mean age at mean rate λ and mean frequency f, for δ from 0 to 300.

    At δ = 1 it is T[½ + 1/r − (1+r)ln(1+r)/r²].

    >>> round(age(1.0, 1.0, 1.0), 6), age(1.0, 1.0, 1.0, "proportional")
    (0.113706, inf)
    """
    one_of("allocation", allocation, ALLOCATIONS)
    rates, frequencies, deltas = _checked(rate, frequency, delta)
    r, square = np.broadcast_arrays(changes_per_refresh(rates, frequencies), deltas.astype(np.float64) ** 2)
    equal = curves.age_curve(r)
    if allocation == "uniform":
        never = np.isinf(r)
        decay = _lomax(np.where(never, 1.0, r), square)
        mixed = decay.loss(1.0) - decay.age_gain(1.0)
        share = np.where(square < _EQUAL, equal, np.where(never, 0.5, mixed))
    else:
        share = np.where(square < 1, equal / np.where(square < 1, 1 - square, 1.0), np.inf)
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        value = np.where(r > 0, share / frequencies.astype(np.float64), 0.0)
    return cast_like_inputs(value, rates, frequencies, deltas)


def _checked(
    rate: npt.ArrayLike, frequency: npt.ArrayLike, delta: npt.ArrayLike
) -> tuple[Floats, Floats, Floats]:
    deltas = as_floats("delta", delta)
    check_parameter("delta", deltas, high=300)
    rates, frequencies = check_rates_and_frequencies(rate, frequency)
    check_shapes(rate=rates, frequency=frequencies, delta=deltas)
    return rates, frequencies, deltas


def _lomax(r: Float64s, square: Float64s) -> Lomax:
    """Survival over an interval of 1, E[e^{−Λt}] for Gamma rates of mean r and variance r²δ²."""
    spread = np.maximum(square, _EQUAL)
    with np.errstate(divide="ignore", over="ignore"):
        return Lomax(1 / spread, np.maximum(1 / (r * spread), 1e-300))
