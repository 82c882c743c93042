"""The curves from which freshness, age and optimal plans are computed, accurate for every double.

Their argument is r = λ/f = λT, the expected number of changes between two refreshes. λ is the rate (changes
per time), f the frequency (refreshes per time) and T = 1/f the time between two refreshes. The marginal is
the gain of one more refresh per time, in units of 1/λ (1/λ² for age); a plan needs the inverse of the
marginal. Age is in units of T.

                time average                                  marginal                     inverse of marginal
    freshness   freshness_curve(r) = (1−e^{−r})/r             g(r) = 1−(1+r)e^{−r}         phi = g⁻¹
    age         age_curve(r)       = ½−1/r+(1−e^{−r})/r²      k(r) = r²/2−1+(1+r)e^{−r}    k_inverse
    harmonic    harmonic_curve(r)  = Ein(r)−1+(1−e^{−r})/r    h(r) = r−1+e^{−r}            h_inverse

The averages of freshness and age are Cho & Garcia-Molina 2000, Table 2 (fixed order: refreshes at equal time
intervals). Below r ≈ 1 the formulas lose digits by cancellation, so a power series is used there. Above r = 1
they err by a few units in the last place. Arguments are numbers or arrays from 0 to ∞; results are float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from afresh.values.arrays import ArrayLike, Float64s

_TERMS = range(21)  # at r = 1 the first omitted term is below 1e−20 of the sum


def horner(coefficients: Sequence[float], x: Float64s) -> Float64s:
    """Return the polynomial Σ cⱼ·xʲ with the coefficients c₀, c₁, …, by Horner's rule.

    >>> horner([1.0, 2.0, 3.0], np.array([0.0, 10.0]))
    array([  1., 321.])
    """
    total = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total *= x
        total += coefficient
    return total


def _split(
    x: ArrayLike, cut: float, below: Callable[[Float64s], Float64s], above: Callable[[Float64s], Float64s]
) -> Float64s:
    """Return ``below(x)`` where x < cut and ``above(x)`` elsewhere; each is called with its own elements."""
    x = np.asarray(x, dtype=np.float64)
    flat = x.ravel()
    low = flat < cut
    # Overflow to infinity and underflow to zero are the correct limits of these curves.
    with np.errstate(over="ignore", under="ignore"):
        if low.all():
            return below(flat).reshape(x.shape)
        if not low.any():
            return above(flat).reshape(x.shape)
        out = np.empty_like(flat)
        out[low] = below(flat[low])
        out[~low] = above(flat[~low])
    return out.reshape(x.shape)


def freshness_curve(r: ArrayLike) -> Float64s:
    """Return (1−e^{−r})/r, the mean freshness of a copy with r expected changes between two refreshes.
    With one refresh per change a copy is correct 63 % of the time (Cho & Garcia-Molina 2000, Theorem 3.1).

    >>> round(float(freshness_curve(1.0)), 2)
    0.63
    """
    return _split(r, 1e-300, np.ones_like, lambda x: -np.expm1(-x) / x)


_G = [1 / math.factorial(j + 2) for j in _TERMS]


def g(r: ArrayLike) -> Float64s:
    """Return 1−(1+r)e^{−r}, the freshness that one more refresh per time gains, in units of 1/λ (rate λ).
    r is the expected number of changes between two refreshes. The result is about r²/2 for small r and rises
    to 1. For r < 1 it is computed as e^{−r}·Σ_{j≥2} rʲ/j!, whose terms are all positive.

    >>> g([1e-8, 1.7933])
    array([4.99999997e-17, 5.35166642e-01])
    """
    # Beyond r = 700 the product is 0; limiting r avoids ∞·0.
    return _split(
        r,
        1.0,
        lambda x: np.exp(-x) * x * x * horner(_G, x),
        lambda x: 1 - (1 + np.minimum(x, 1e3)) * np.exp(-x),
    )


# The coefficients cⱼ of the series r = Σ cⱼ·sʲ that solves r − ln(1+r) = s²/2; both Φ and h⁻¹ use it.
_REVERSION = [0.0, 1.0, 1 / 3, 1 / 36, -1 / 270, 1 / 4320, 1 / 17010, -139 / 5443200, 1 / 204120]
_REVERSION += [-571 / 2351462400]
_REVERSION_MIRRORED = [-c * (-1) ** j for j, c in enumerate(_REVERSION)]


def phi(y: ArrayLike) -> Float64s:
    """Return Φ(y) = g⁻¹(y), the changes per refresh r at which the marginal freshness g(r) is y.

    It is infinite for y ≥ 1: such an item is dropped from the plan. With L = −ln(1−y), Φ(y) is the positive
    root r of r − ln(1+r) = L. It is computed by a series in s = √(2L) up to s = 0.1, and beyond by a first
    guess and two Halley steps. (The usual formula −1−W₋₁(−(1−y)/e), with Lambert's W, has no correct digits
    below y ≈ 5e−9.)

    >>> phi([0.0, 5e-17, 0.5, 1.0])
    array([0.00000000e+00, 1.00000000e-08, 1.67834699e+00,            inf])
    """

    def inner(x: Float64s) -> Float64s:
        return _split(np.sqrt(-2 * np.log1p(-x)), 0.1, lambda s: horner(_REVERSION, s), _phi_by_halley)

    return _split(y, 1.0, inner, lambda x: np.full_like(x, np.inf))


def _phi_by_halley(s: Float64s) -> Float64s:
    """Return the root r of r − ln(1+r) = s²/2 for s ≥ 0.1."""
    log_rest = 0.5 * s * s
    far = log_rest + np.log1p(log_rest + np.log1p(log_rest + s))
    r = np.where(s < 2.5, horner(_REVERSION, np.minimum(s, 2.5)), far)
    for _ in range(2):
        miss = r - np.log1p(r) - log_rest
        r -= 2 * miss * r * (1 + r) / (2 * r * r - miss)
    return r


_AGED = [(-1) ** j / math.factorial(j + 3) for j in _TERMS]


def age_curve(r: ArrayLike) -> Float64s:
    """Return ½ − 1/r + (1−e^{−r})/r², the mean age in units of the time T between refreshes.
    r is the expected number of changes in T; the result is about r/6 for small r and rises to ½. At r = 1 the
    age is 0.132·T (Cho & Garcia-Molina 2000, Theorem 3.2 and Table 2).

    >>> round(float(age_curve(1.0)), 3)
    0.132
    """
    return _split(r, 1.0, lambda x: x * horner(_AGED, x), lambda x: 0.5 - (1 + np.expm1(-x) / x) / x)


_K = [(-1) ** j * (j + 2) / math.factorial(j + 3) for j in _TERMS]


def k(r: ArrayLike) -> Float64s:
    """Return r²/2 − 1 + (1+r)e^{−r}, the mean age that one more refresh per time saves, in units of 1/λ².
    r is the expected number of changes between two refreshes, λ the rate. For small r it is about r³/3.

    >>> k([1e-4, 2.0])
    array([3.33320834e-13, 1.40600585e+00])
    """
    return _split(r, 1.0, lambda x: x * x * x * horner(_K, x), lambda x: 0.5 * x * x - g(x))


def k_inverse(y: ArrayLike) -> Float64s:
    """Return the changes per refresh r at which the marginal age k(r) is y.
    It is found by three Halley steps from the approximation (3y)^{1/3} for y < 1, or √(2(y+1)) for y ≥ 1.

    >>> k_inverse([0.0, 0.5 - g(1.0)])
    array([0., 1.])
    """

    def far(x: Float64s) -> Float64s:
        # Beyond y = 1e40 the constant is below the precision of y, and the exponential is 0.
        near = np.minimum(x, 1e40)
        return np.where(x > 1e40, math.sqrt(2) * np.sqrt(x), _k_halley(near, np.sqrt(2 * (near + 1))))

    def small(x: Float64s) -> Float64s:
        start = np.cbrt(3 * x)
        # Below r = 1e−20 only the first term of the series matters.
        return np.where(start < 1e-20, start, _k_halley(x, np.maximum(start, 1e-20)))

    return _split(y, 1.0, small, far)


def _k_halley(y: Float64s, r: Float64s) -> Float64s:
    """Solve k(r) = y by three Halley steps; k' = r(1−e^{−r}) and k''/k' = 1/r + e^{−r}/(1−e^{−r})."""
    for _ in range(3):
        rest = -np.expm1(-r)
        step = (k(r) - y) / (r * rest)
        r = r - step / (1 - 0.5 * step * (1 / r + (1 - rest) / rest))
    return r


_H = [(-1) ** j / math.factorial(j + 2) for j in _TERMS]


def h(r: ArrayLike) -> Float64s:
    """Return r − 1 + e^{−r}, the harmonic staleness that one more refresh per time saves, in units of 1/λ.
    r = λT is the expected number of changes in the time T between two refreshes, at the rate λ. h(r) is also
    λ times the expected stale time in T, λ·(T − ∫₀ᵀ e^{−λs}ds).

    >>> h([1e-8, 1.0])
    array([4.99999998e-17, 3.67879441e-01])
    """
    return _split(r, 1.0, lambda x: x * x * horner(_H, x), lambda x: x + np.expm1(-x))


def h_inverse(y: ArrayLike) -> Float64s:
    """Return the r at which h(r) = r − 1 + e^{−r} is y, by a series for small y, else by two Halley steps.
    In closed form it is 1+y+W₀(−e^{−(1+y)}), with Lambert's W. The series is that of Φ with other signs.

    >>> h_inverse([0.0, 5e-17, h(1.0)])
    array([0.e+00, 1.e-08, 1.e+00])
    """

    def small(x: Float64s) -> Float64s:
        return x + horner(_REVERSION_MIRRORED, np.sqrt(2 * x))

    def far(x: Float64s) -> Float64s:
        # Beyond y = 40 the exponential is below the precision of y + 1.
        near = np.minimum(x, 40.0)
        r = np.where(x < 1, small(np.minimum(near, 1.0)), 1 + near - np.exp(-(1 + near - np.exp(-1 - near))))
        for _ in range(2):
            slope = -np.expm1(-r)
            step = (r - near - slope) / slope
            r -= step / (1 - 0.5 * step * (1 - slope) / slope)
        return np.where(x > 40, 1 + x, r)

    return _split(y, 0.005, small, far)


_EIN = [0.0] + [(-1) ** (j + 1) / (j * math.factorial(j)) for j in _TERMS if j]


def ein(r: ArrayLike) -> Float64s:
    """Return the entire exponential integral Ein(r) = ∫₀ʳ (1−e^{−t})/t dt = E₁(r) + ln r + γ.

    >>> ein([0.0, 1.0])
    array([0.       , 0.7965996])
    """

    def above(x: Float64s) -> Float64s:
        from scipy.special import exp1

        return np.asarray(exp1(x) + np.log(x) + np.euler_gamma, dtype=np.float64)

    return _split(r, 1.0, lambda x: horner(_EIN, x), above)


_HARMONIC = [(-1) ** j / ((j + 1) * math.factorial(j + 2)) for j in _TERMS]


def harmonic_curve(r: ArrayLike) -> Float64s:
    """Return Ein(r) − 1 + (1−e^{−r})/r, the mean harmonic staleness of a copy; Ein is the function ``ein``.
    r is the expected number of changes between two refreshes at equal intervals. The harmonic staleness of a
    copy that misses n changes is 1 + ½ + … + 1/n (Kolobov et al. 2019).

    >>> harmonic_curve([1e-9, 1.0])
    array([5.00000000e-10, 4.28720158e-01])
    """
    return _split(r, 1.0, lambda x: x * horner(_HARMONIC, x), lambda x: ein(x) - 1 + freshness_curve(x))
