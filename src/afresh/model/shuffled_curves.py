"""The curves of ``model/curves.py`` for shuffled order: each item once in a round.

The time between two refreshes is then τ·T, where T = 1/f is the length of a round and τ is 1 plus the
difference of two uniform numbers, so E[τ] = 1 and E[e^{−rτ}] = φ² with φ = (1−e^{−r})/r. Every curve of a
loss L is E[τ·L(rτ)], and every marginal is the expectation of that in fixed order, E[marginal(rτ)]:

                time average                               marginal
    freshness   (1−φ²)/r                                   1 − φ² − 2φ·g(r)/r
    age         1/3 + (1/2−1/r)² − (φ/r)²                  7r²/12 − marginal of freshness
    harmonic    ∫₀ʳ (x−1+φ²)/x² dx                         r − 1 + φ²

(Cho & Garcia-Molina 2000, Table 2, for freshness and age). Below r = 1 they are the power series with the
moments E[τʲ] = (2ʲ⁺²−2)/((j+1)(j+2)). As in ``curves`` r = λ/f, and age is in units of T.

>>> shuffled_freshness([1.0]).round(4), shuffled_age([1.0]).round(4)
(array([0.6004]), array([0.1838]))
>>> shuffled_freshness_inverse(shuffled_freshness_marginal([1e-6, 1.0, 30.0]))
array([1.e-06, 1.e+00, 3.e+01])
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from afresh.model.curves import age_curve, ein, freshness_curve, g, h, horner
from afresh.values.arrays import ArrayLike, Float64s

_TERMS = range(2, 36)
_MOMENTS = {j: (2.0 ** (j + 2) - 2) / ((j + 1) * (j + 2)) / math.factorial(j) for j in _TERMS}  # E[τʲ]/j!
_FRESHNESS = [(-1) ** j * (j - 1) * _MOMENTS[j] for j in _TERMS]
_AGE = [(-1) ** (j + 1) * (j - 1) * _MOMENTS[j] for j in _TERMS[1:]]
_HARMONIC = [(-1) ** j * _MOMENTS[j] for j in _TERMS]
_HARMONIC_VALUE = [(-1) ** j * _MOMENTS[j] / (j - 1) for j in _TERMS]
_AGE_VALUE = [(-1) ** (j + 1) * _MOMENTS[j] for j in _TERMS[1:]]
_NEWTON_STEPS = 7
_STEP = 1e-3  # in ln r, over which the slope of a marginal is taken


def _split(r: ArrayLike, power: int, series: list[float], above: Callable[[Float64s], Float64s]) -> Float64s:
    """Return r^power·Σ seriesⱼ·rʲ where r < 1 and ``above(r)`` elsewhere."""
    x = np.asarray(r, dtype=np.float64)
    near, far = np.minimum(x, 1.0), np.maximum(x, 1.0)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.where(x < 1, near**power * horner(series, near), above(far))


def shuffled_freshness(r: ArrayLike) -> Float64s:
    """Return (1−φ²)/r, computed as h(r)/r²·(1+φ), because 1−φ = h(r)/r avoids cancellation."""
    x = np.asarray(r, dtype=np.float64)
    middle = np.clip(x, 1e-30, 1e100)
    value = h(middle) / middle / middle * (1 + freshness_curve(middle))
    return np.where(x < 1e-30, 1.0, np.where(x > 1e100, 1 / np.maximum(x, 1.0), value))


def shuffled_age(r: ArrayLike) -> Float64s:
    """Return the mean age in units of T. The closed form is 24 % wrong at r = 1e−5, the series is exact."""
    # The difference of squares is factored: (½−1/r)² − (φ/r)² = A·(A − 2φ/r) with A = age_curve(r).
    return _split(
        r, 1, _AGE_VALUE, lambda x: 1 / 3 + age_curve(x) * (age_curve(x) - 2 * freshness_curve(x) / x)
    )


def shuffled_harmonic(r: ArrayLike) -> Float64s:
    """Return the mean harmonic staleness: the n-th missed change counts 1/n."""

    def above(x: Float64s) -> Float64s:
        part, rest = np.exp(-x), -np.expm1(-x)  # u = (1−e^{−x})² and its derivatives u' and u''
        first, second = 2 * part * rest, 2 * part * (2 * part - 1)
        tail = (1 - ((rest / x) * (rest / x) / 3 + first / x / 6 + second / 6)) / x
        return np.asarray(ein(x) + 4 / 3 * np.nan_to_num(ein(2 * x) - ein(x)) + tail - 11 / 6)

    return _split(r, 1, _HARMONIC_VALUE, above)


def _stale_share(x: Float64s) -> Float64s:
    """Return 1 minus the marginal of freshness, φ² + 2φ·g/x, without cancellation for large x."""
    phi = freshness_curve(x)
    return phi * phi + 2 * phi * (g(x) / x)


def shuffled_freshness_marginal(r: ArrayLike) -> Float64s:
    return _split(r, 2, _FRESHNESS, lambda x: 1 - _stale_share(x))


def shuffled_age_marginal(r: ArrayLike) -> Float64s:
    return _split(r, 3, _AGE, lambda x: 7 / 12 * x * x - (1 - _stale_share(x)))


def shuffled_harmonic_marginal(r: ArrayLike) -> Float64s:
    return _split(r, 2, _HARMONIC, lambda x: x - 1 + np.square(freshness_curve(x)))


def shuffled_freshness_inverse(y: ArrayLike) -> Float64s:
    """Return the r at which the marginal of freshness is y; infinite from y = 1 on."""

    def log_odds(r: Float64s) -> Float64s:
        """ln(m/(1−m)), whose slope over ln r is near 2 everywhere, for the marginal m."""
        marginal = shuffled_freshness_marginal(r)
        return np.log(marginal / np.where(r < 1, 1 - marginal, _stale_share(np.maximum(r, 1.0))))

    given = np.asarray(y, dtype=np.float64)
    inner = np.clip(given, 1e-60, 1 - 2**-53)
    odds = inner / (1 - inner)
    r = _newton(log_odds, np.log(odds), np.sqrt(12 / 7 * odds))
    return np.where(given >= 1, np.inf, np.where(given < 1e-60, np.sqrt(12 / 7 * given), r))


def shuffled_age_inverse(y: ArrayLike) -> Float64s:
    """Return the r at which the marginal of age is y."""
    given = np.asarray(y, dtype=np.float64)
    inner = np.clip(given, 1e-60, 1e60)
    start = np.maximum(np.cbrt(2 * inner), np.sqrt(12 / 7 * inner))
    r = _newton(lambda r: np.log(shuffled_age_marginal(r)), np.log(inner), start)
    return np.where(given < 1e-60, np.cbrt(2 * given), np.where(given > 1e60, np.sqrt(12 / 7 * given), r))


def shuffled_harmonic_inverse(y: ArrayLike) -> Float64s:
    """Return the r at which the marginal of harmonic staleness is y."""
    given = np.asarray(y, dtype=np.float64)
    inner = np.clip(given, 1e-60, 1e60)
    start = inner + np.sqrt(12 / 7 * inner)
    r = _newton(lambda r: np.log(shuffled_harmonic_marginal(r)), np.log(inner), start)
    return np.where(given < 1e-60, np.sqrt(12 / 7 * given), np.where(given > 1e60, given, r))


def _newton(function: Callable[[Float64s], Float64s], target: Float64s, start: Float64s) -> Float64s:
    """Return the r at which ``function``, nearly a straight line over ln r, has the value ``target``."""
    r = start
    for _ in range(_NEWTON_STEPS):
        value = function(r)
        slope = (function(r * math.exp(_STEP)) - value) / _STEP
        r = r * np.exp((target - value) / slope)
    return r
