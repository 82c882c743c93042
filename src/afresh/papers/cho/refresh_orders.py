"""Cho & Garcia-Molina 2000, §4 and §5.1: orders of refreshing, and Gamma-distributed rates.

Tables 2 and 3 print formulas. This module contains the printed formulas, evaluates each at a few points, and
compares the results with those of ``afresh.model``, which computes them in another way.

Table 3 is about a database whose rates have a Gamma distribution with mean λ and coefficient of variation δ
(standard deviation over mean). f is the mean frequency of refreshes, r = λ/f, T = 1/f, F freshness, A age:

    uniform        F = (1 − (1+rδ²)^{1−1/δ²}) / (r(1−δ²))
                   A = T/(1−δ²)·[(1−δ²)/2 − 1/r + (1 − (1+rδ²)^{2−1/δ²})/(r²(1−2δ²))]
    proportional   F = (1−e^{−r})/r
                   A = T/(1−δ²)·[1/2 − 1/r + (1−e^{−r})/r²], infinite from δ = 1 on

The formulas for uniform have removable singularities at δ = 0, δ² = 1/2, δ = 1 and r = 0. ``gamma_freshness``
and ``gamma_age`` avoid them: a mixture of exponential decays with Gamma rates is a Lomax decay z with shape
1/δ² and scale T/(rδ²). F is the mean of z from 0 to T, and A = ∫₀ᵀ (1−s/T)(1−z(s))ds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from afresh.allocation.budget_curve import budget_for
from afresh.model import curves
from afresh.model.decays.lomax import Lomax
from afresh.model.freshness import (
    age,
    cast_like_inputs,
    changes_per_refresh,
    check_rates_and_frequencies,
    freshness,
)
from afresh.papers.report import Check, Correction, Section, corrected_check
from afresh.values.arrays import ArrayLike, Float64s, Floats, as_floats

_DIGITS = 6
_RATIOS = (0.1, 1.0, 10.0)
_SPREADS = (0.5, 1.5)

# The formulas of Table 2 as printed, with ages in units of the time I between two refreshes.
_ORDER_FRESHNESS: Mapping[str, Callable[[float], float]] = {
    "fixed": lambda r: (1 - math.exp(-r)) / r,
    "shuffled": lambda r: (1 / r) * (1 - ((1 - math.exp(-r)) / r) ** 2),
    "memoryless": lambda r: 1 / (1 + r),
}
_ORDER_AGE: Mapping[str, Callable[[float], float]] = {
    "fixed": lambda r: 1 / 2 - 1 / r + (1 - math.exp(-r)) / r**2,
    "shuffled": lambda r: 1 / 3 + (1 / 2 - 1 / r) ** 2 - ((1 - math.exp(-r)) / r**2) ** 2,
    "memoryless": lambda r: r / (1 + r),
}
ORDER_NAMES = {"fixed": "fixed order", "shuffled": "random order", "memoryless": "purely random"}


# The formulas of Table 3 as printed, with times in units of the time I between two refreshes; d is δ².
_GAMMA_FRESHNESS: Mapping[str, Callable[[float, float], float]] = {
    "uniform": lambda r, d: (1 - math.pow(1 + r * d, 1 - 1 / d)) / (r * (1 - d)),
    "proportional": lambda r, _: (1 - math.exp(-r)) / r,
}
_GAMMA_AGE: Mapping[str, Callable[[float, float], float]] = {
    "uniform": lambda r, d: (
        ((1 - d) / 2 - 1 / r + (1 - math.pow(1 + r * d, 2 - 1 / d)) / (r**2 * (1 - 2 * d))) / (1 - d)
    ),
    "proportional": lambda r, d: (1 / 2 - 1 / r + (1 - math.exp(-r)) / r**2) / (1 - d),
}


def _formula(name: str, printed: float, recomputed: float, correction: Correction | None = None) -> Check:
    return Check(name, f"{printed:.{_DIGITS}f}", recomputed, correction=correction)


def table_2() -> Section:
    checks = []
    for order, name in ORDER_NAMES.items():
        for r in _RATIOS:
            at = f"{name}, r = {r:g}"
            checks.append(_formula(f"freshness, {at}", _ORDER_FRESHNESS[order](r), freshness(r, 1.0, order)))
            checks.append(_formula(f"age / I, {at}", _ORDER_AGE[order](r), age(r, 1.0, order)))
    return Section.of(
        "Table 2: freshness and age by order of refreshes",
        *checks,
        note=f"The paper prints formulas. They are evaluated here as printed, to {_DIGITS} decimals.",
    )


def section_4() -> Section:
    budget = budget_for([1.0], 0.8)
    fixed = float(freshness(1.0, 1.0))
    gain = 100 * (fixed / float(freshness(1.0, 1.0, "memoryless")) - 1)
    ages = {order: float(age(1.0, 1.0, order)) for order in ORDER_NAMES}
    fourth = f"one fourth ({ages['fixed'] / ages['memoryless']:.3f}) is the ratio to purely random order"
    read_off = "0.632 against 0.500; the paper reads it off Figure 6"
    random = ages["fixed"] / ages["shuffled"]
    return Section.of(
        "§4: what Figure 6 answers",
        Check("freshness of fixed order, r = 1", "0.63", fixed),
        Check("largest r for a freshness of 0.8, fixed order", "0.46", 1 / budget),
        Check("refreshes per change for a freshness of 0.8", "2", budget),
        corrected_check("fixed order above purely random, r = 1", "30", gain, "26.4", read_off, "%"),
        corrected_check("age of fixed order / age of random order, r = 1", "0.25", random, "0.72", fourth),
    )


def table_3() -> Section:
    diverges = Correction("inf", "the formula holds only for δ < 1; from δ = 1 on, the mean age is infinite")
    checks = []
    for delta in _SPREADS:
        for r in _RATIOS[1:]:
            at, d = f"r = {r:g}, δ = {delta:g}", delta**2
            for policy in ALLOCATIONS:
                fresh, old = _GAMMA_FRESHNESS[policy](r, d), _GAMMA_AGE[policy](r, d)
                model_fresh, model_age = (f(r, 1.0, delta, policy) for f in (gamma_freshness, gamma_age))
                infinite = diverges if policy == "proportional" and delta >= 1 else None
                checks.append(_formula(f"freshness, {policy}, {at}", fresh, model_fresh))
                checks.append(_formula(f"age / I, {policy}, {at}", old, model_age, infinite))
    return Section.of(
        "Table 3: Gamma-distributed rates, uniform and proportional allocation",
        *checks,
        note="Formulas evaluated as printed. At δ = 1 and δ² = 1/2 they are 0/0; afresh computes the limit.",
    )


def figure_7() -> Section:
    r, delta = np.meshgrid(np.geomspace(0.01, 100, 81), np.linspace(0.02, 4, 100))
    fresh_ratio = gamma_freshness(r, 1.0, delta, "proportional") / gamma_freshness(r, 1.0, delta)
    age_ratio = gamma_age(r, 1.0, delta) / gamma_age(r, 1.0, delta, "proportional")
    same_fresh = gamma_freshness(1.0, 1.0, 0.0, "proportional") / gamma_freshness(1.0, 1.0, 0.0)
    same_age = gamma_age(1.0, 1.0, 0.0) / gamma_age(1.0, 1.0, 0.0, "proportional")
    return Section.of(
        "Figure 7: uniform is always better than proportional",
        Check("F proportional / F uniform, largest over the grid", "< 1", float(fresh_ratio.max())),
        Check("A uniform / A proportional, largest over the grid", "< 1", float(age_ratio.max())),
        Check("F proportional / F uniform at δ = 0", "1.000000", float(same_fresh)),
        Check("A uniform / A proportional at δ = 0", "1.000000", float(same_age)),
        note="The grid: r from 0.01 to 100, δ from 0.02 to 4.",
    )


ALLOCATIONS = ("uniform", "proportional")
_EQUAL = 1e-12  # below this δ², all rates are equal to double precision


def gamma_freshness(
    rate: ArrayLike, frequency: ArrayLike, delta: ArrayLike, allocation: str = "uniform"
) -> Any:
    """Return the mean freshness of a database whose rates have a Gamma distribution with mean ``rate``.
    ``frequency`` is the mean frequency of refreshes. ``delta`` is the standard deviation of the rates over
    their mean, from 0 to 300. For delta = 1 the result is ln(1+r)/r, with r = rate/frequency.

    >>> round(gamma_freshness(1.0, 1.0, 1.0), 6), round(gamma_freshness(1.0, 1.0, 1.0, "proportional"), 6)
    (0.693147, 0.632121)
    """
    inputs, r, square, decay = _gamma_world(rate, frequency, delta)
    value = curves.freshness_curve(r)
    if allocation == "uniform":
        value = np.where(square < _EQUAL, value, np.where(np.isinf(r), 0.0, decay.integral(1.0)))
    return cast_like_inputs(value, *inputs)


def gamma_age(rate: ArrayLike, frequency: ArrayLike, delta: ArrayLike, allocation: str = "uniform") -> Any:
    """Return the mean age in a database whose rates have a Gamma distribution with mean ``rate``.
    The arguments are those of ``gamma_freshness``. For delta = 1 the result is T[½ + 1/r − (1+r)ln(1+r)/r²],
    with r = rate/frequency and T = 1/frequency.

    >>> round(gamma_age(1.0, 1.0, 1.0), 6), gamma_age(1.0, 1.0, 1.0, "proportional")
    (0.113706, inf)
    """
    inputs, r, square, decay = _gamma_world(rate, frequency, delta)
    equal = curves.age_curve(r)
    if allocation == "uniform":
        mixed = np.where(np.isinf(r), 0.5, decay.loss(1.0) - decay.age_gain(1.0))
        share = np.where(square < _EQUAL, equal, mixed)
    else:
        share = np.where(square < 1, equal / np.where(square < 1, 1 - square, 1.0), np.inf)
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        value = np.where(r > 0, share / inputs[1].astype(np.float64), 0.0)
    return cast_like_inputs(value, *inputs)


def _gamma_world(
    rate: ArrayLike, frequency: ArrayLike, delta: ArrayLike
) -> tuple[tuple[Floats, Floats, Floats], Float64s, Float64s, Lomax]:
    """Return a tuple (arguments as arrays, r, δ², decay) with r = rate/frequency and δ = ``delta``.
    The decay is E[e^{−Λt}] for Gamma distributed rates Λ of mean r, with the time in units of 1/frequency."""
    deltas = as_floats("delta", delta)
    rates, frequencies = check_rates_and_frequencies(rate, frequency)
    r, square = np.broadcast_arrays(changes_per_refresh(rates, frequencies), deltas.astype(np.float64) ** 2)
    spread = np.maximum(square, _EQUAL)
    with np.errstate(divide="ignore", over="ignore"):
        scale = np.maximum(1 / (np.where(np.isinf(r), 1.0, r) * spread), 1e-300)
    return (rates, frequencies, deltas), r, square, Lomax(1 / spread, scale)
