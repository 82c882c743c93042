"""The five objectives that a plan can maximise, each for three orders of refreshing.

An item changes at the rate λ and is refreshed at the frequency f. Every objective is a function without units
of r = λ/f, the changes per refresh. The average over time for one item is λ^(1−p)·value(r), where p is the
power of the objective. One more refresh per time gains λ^(−p)·marginal(r), with marginal = −r²·value'(r). At
a given price of a refresh the best frequency is f = λ/r with marginal(r) = price·λ^p.

    objective    p   fixed order: −value          marginal          memoryless: −value   marginal
    freshness    1   −(1−e^{−r})/r                g(r)              −1/(1+r)             (r/(1+r))²
    age          2   r·(½−1/r+(1−e^{−r})/r²)      k(r)              r²/(1+r)             r³(r+2)/(1+r)²
    harmonic     1   Ein(r)−1+(1−e^{−r})/r        h(r)              ln(1+r)              r²/(1+r)
    missed       1   r/2                          r²/2              r                    r²
    lag          2   r²/6                         r³/3              r²                   2r³

In fixed order an item is refreshed at equal intervals. In memoryless order it is refreshed at the times of a
Poisson process, so that the time since the last refresh is exponential. In shuffled order it is refreshed
once in each round, at a random place; its formulas are in ``model/shuffled_curves.py``.

freshness   the share of time during which the copy equals the source. Equal intervals: Cho & Garcia-Molina
            2000, §4; an item with y = μcλ/w ≥ 1 (weight w, cost c, multiplier μ) is dropped, because it
            changes too fast for this budget. Poisson refreshes: f = max(0, √(wλ/(cμ)) − λ) (Azar et al.
            2018).
age         the time since the first change that the copy has missed, 0 while it is fresh (Cho §4.4). No item
            is ever dropped: an item that is never refreshed grows infinitely old.
harmonic    the n-th missed change costs 1/n, so that no item is ever dropped. Poisson refreshes, with
            q = wλ/(cμ): f = 2q/(λ+√(λ²+4q)) (Kolobov et al. 2019).
missed      the number of changes that the copy has missed, λ/(2f) in fixed order, λ/f in memoryless order.
            In fixed order f = √(wλ/(2cμ)), the square-root rule.
lag         the sum over missed changes of the time since each, Σ(t − tᵢ) (Yang et al. 2010). In fixed order
            it is λ/(6f²), so that f = (wλ/(3cμ))^{1/3}; else λ/f², so that f = (2wλ/(cμ))^{1/3}.

>>> objective_for("freshness", "fixed").inverse([0.5351623, 1.0]).round(4)
array([1.7933,    inf])
>>> objective_for("freshness", "memoryless").inverse([0.25, 1.0])
array([ 1., inf])
>>> objective_for("age", "fixed").value(1.0)
array(-0.13212056)
>>> old = objective_for("age", "memoryless")
>>> old.inverse(old.marginal([1e-6, 1.0, 1e6]))
array([1.e-06, 1.e+00, 1.e+06])
>>> objective_for("harmonic", "memoryless").inverse([0.0, 0.5])
array([0., 1.])
>>> objective_for("missed", "fixed").inverse([2.0]), objective_for("lag", "fixed").inverse([9.0])
(array([2.]), array([3.]))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from afresh.model import shuffled_curves as shuffled
from afresh.model.curves import age_curve, freshness_curve, g, h, h_inverse, harmonic_curve, k, k_inverse, phi
from afresh.model.freshness import ORDERS
from afresh.values.arrays import ArrayLike, Float64s
from afresh.values.errors import one_of
from afresh.values.objective_names import OBJECTIVE_NAMES


@dataclass(frozen=True, slots=True)
class Objective:
    """One objective under one order of refreshing, as functions of r = λ/f (rate λ, frequency f).

    The functions take numbers or arrays from 0 to infinity and return float64 arrays.

    ``power``    the p with which the value of an item is λ^(1−p)·value(r).
    ``top``      the limit of the marginal as r → ∞; at a higher price the item is dropped.
    ``value``    the average over time of an item's freshness, or of minus its loss.
    ``marginal`` −r²·value'(r), the gain of one more refresh per time in units of λ^(−p); it grows with r.
    ``inverse``  the r at which the marginal is y; infinite for y ≥ ``top``."""

    power: int
    top: float
    value: Callable[[ArrayLike], Float64s]
    marginal: Callable[[ArrayLike], Float64s]
    inverse: Callable[[ArrayLike], Float64s]


Formula = Callable[[Float64s], Float64s]


def _objective(power: int, top: float, value: Formula, marginal: Formula, inverse: Formula) -> Objective:
    return Objective(power, top, *(as_array_function(formula) for formula in (value, marginal, inverse)))


def as_array_function(formula: Formula) -> Callable[[ArrayLike], Float64s]:
    """Return the formula as a function that takes numbers and lists too and gives no warnings.
    Overflow and division by 0 give the correct limits of these formulas.

    >>> as_array_function(lambda r: 1 / (1 + 1 / r))([0.0, 1.0])
    array([0. , 0.5])
    """

    def function(x: ArrayLike) -> Float64s:
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(formula(np.asarray(x, dtype=np.float64)), dtype=np.float64)

    return function


def _age_marginal(r: Float64s) -> Float64s:
    cut = np.minimum(r, 1e100)
    return np.asarray(r * r * (cut / (1 + cut)) * ((cut + 2) / (1 + cut)))


def _age_inverse(y: Float64s) -> Float64s:
    """Return the root r of r³(r+2)/(1+r)² = y: the changes per refresh at which the marginal age is y."""
    # The slope of log marginal over log r is between 2 and 3. So Newton steps on the logarithms converge from
    # any start, and in five steps from the two asymptotes.
    # Outside these limits the marginal equals 2r³ or r² in all digits.
    inner = np.clip(y, 1e-60, 1e40)
    r = np.where(inner < 4, np.cbrt(inner / 2), np.sqrt(inner))
    for _ in range(5):
        steepness = 3 + r / (2 + r) - 2 * r / (1 + r)
        r = r * np.exp(np.log(inner / _age_marginal(r)) / steepness)
    return np.where(y < 1e-60, np.cbrt(y / 2), np.where(y > 1e40, np.sqrt(y), r))


_FIXED = {
    "freshness": Objective(1, 1.0, freshness_curve, g, phi),
    "age": Objective(2, np.inf, as_array_function(lambda r: -r * age_curve(r)), k, k_inverse),
    "harmonic": Objective(1, np.inf, as_array_function(lambda r: -harmonic_curve(r)), h, h_inverse),
    "missed": _objective(
        1, np.inf, lambda r: -0.5 * r, lambda r: 0.5 * np.square(r), lambda y: math.sqrt(2) * np.sqrt(y)
    ),
    "lag": _objective(
        2, np.inf, lambda r: np.square(r) / -6, lambda r: r * r * r / 3, lambda y: np.cbrt(3 * y)
    ),
}
_MEMORYLESS = {
    "freshness": _objective(
        1,
        1.0,
        lambda r: 1 / (1 + r),
        lambda r: np.square(1 / (1 + 1 / r)),
        lambda y: 1 / (1 / np.sqrt(np.minimum(y, 1.0)) - 1),
    ),
    "age": _objective(2, np.inf, lambda r: -r / (1 + 1 / r), _age_marginal, _age_inverse),
    "harmonic": _objective(
        1,
        np.inf,
        lambda r: -np.log1p(r),
        lambda r: r / (1 + 1 / r),
        lambda y: (y + np.sqrt(y) * np.sqrt(y + 4)) / 2,
    ),
    "missed": _objective(1, np.inf, np.negative, np.square, np.sqrt),
    "lag": _objective(2, np.inf, lambda r: -np.square(r), lambda r: 2 * r * r * r, lambda y: np.cbrt(y / 2)),
}
_SHUFFLED = {
    "freshness": _objective(
        1,
        1.0,
        shuffled.shuffled_freshness,
        shuffled.shuffled_freshness_marginal,
        shuffled.shuffled_freshness_inverse,
    ),
    "age": _objective(
        2,
        np.inf,
        lambda r: -r * shuffled.shuffled_age(r),
        shuffled.shuffled_age_marginal,
        shuffled.shuffled_age_inverse,
    ),
    "harmonic": _objective(
        1,
        np.inf,
        lambda r: -shuffled.shuffled_harmonic(r),
        shuffled.shuffled_harmonic_marginal,
        shuffled.shuffled_harmonic_inverse,
    ),
    "missed": _objective(
        1, np.inf, lambda r: -7 / 12 * r, lambda r: 7 / 12 * np.square(r), lambda y: np.sqrt(12 / 7 * y)
    ),
    "lag": _objective(
        2, np.inf, lambda r: np.square(r) / -4, lambda r: r * r * r / 2, lambda y: np.cbrt(2 * y)
    ),
}
OBJECTIVES: dict[tuple[str, str], Objective] = {
    (name, order): formulas[name]
    for order, formulas in (("fixed", _FIXED), ("shuffled", _SHUFFLED), ("memoryless", _MEMORYLESS))
    for name in OBJECTIVE_NAMES
}


def objective_for(name: str, order: str) -> Objective:
    """Return the objective of that name for a refresh order; raise ``UsageError`` for unknown names.

    >>> objective_for("freshness", "fixed").top
    1.0
    """
    return OBJECTIVES[one_of("objective", name, OBJECTIVE_NAMES), one_of("order", order, ORDERS)]
