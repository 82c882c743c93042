"""Weibull decay: z(t) = e^{−(λt)^k}, for changes that become rarer (k < 1) or overdue (k > 1) with time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.model.decays.parameters import (
    Size,
    as_times,
    check_parameter,
    divide_by_rate,
    multiply_by_rate,
    sample_shape,
)
from afresh.values.arrays import Float64s

_TERMS = range(1, 21)  # at v = 1 the next term is below 1e−19


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Weibull:
    """z(t) = e^{−v}, v = (λt)^k; shape k = 1 is the exponential, shapes from 0.02 to 100.

    With a = 1/k and γ the lower incomplete gamma function, ∫₀ᵗz = a·γ(a, v)/λ and ∫₀ᵗs·z = a·γ(2a, v)/λ².

    >>> round(float(Weibull(1.0, 2.0).total()), 6), round(math.sqrt(math.pi) / 2, 6)
    (0.886227, 0.886227)
    """

    rate: Float64s
    shape: Float64s

    def __init__(self, rate: npt.ArrayLike, shape: npt.ArrayLike) -> None:
        object.__setattr__(self, "rate", check_parameter("rate", rate))
        object.__setattr__(self, "shape", check_parameter("shape", shape, low=0.02, high=100))

    def survival(self, t: npt.ArrayLike) -> Float64s:
        """e^{−(λt)^k}."""
        return np.exp(-self._power(t))

    def integral(self, t: npt.ArrayLike) -> Float64s:
        """γ(1/k, v)/(kλ)."""
        t, v, a = as_times(t), self._power(t), 1 / self.shape
        with np.errstate(over="ignore", under="ignore"):
            near = t * (1 - _complement(a, np.minimum(v, 1.0)))
        return np.where(v <= 1, near, _lower_gamma(a, v, self.rate, 1) * a)

    def gain(self, t: npt.ArrayLike) -> Float64s:
        """γ(1+1/k, v)/λ."""
        t, v, a = as_times(t), self._power(t), 1 / self.shape
        near = np.minimum(v, 1.0)
        share = near / (1 + a) * (1 - _complement(1 + a, near))
        return np.where(v <= 1, np.where(share > 0, t, 0.0) * share, _lower_gamma(1 + a, v, self.rate, 1))

    def loss(self, t: npt.ArrayLike) -> Float64s:
        """t − ∫₀ᵗz, by its own series while v ≤ 1."""
        return self._lost_share(t, 1)

    def age_gain(self, t: npt.ArrayLike) -> Float64s:
        """t²/2 − ∫₀ᵗs·z, by its own series while v ≤ 1."""
        return self._lost_share(t, 2)

    def sample(self, rng: np.random.Generator, size: Size = None) -> Float64s:
        """Times from a refresh to the first change."""
        draws = rng.standard_exponential(sample_shape(size, self.rate, self.shape))
        return divide_by_rate(draws ** (1 / self.shape), self.rate)

    def total(self) -> Float64s:
        """Γ(1+1/k)/λ."""
        from scipy.special import gamma

        return divide_by_rate(gamma(1 + 1 / self.shape), self.rate)

    def plateau(self) -> Float64s:
        """0, or 1 for what never changes."""
        return np.where(self.rate > 0, 0.0, 1.0) + np.zeros_like(self.shape)

    def _power(self, t: npt.ArrayLike) -> Float64s:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(multiply_by_rate(as_times(t), self.rate) ** self.shape, dtype=np.float64)

    def _lost_share(self, t: npt.ArrayLike, power: int) -> Float64s:
        """∫₀ᵗ s^{p−1}·(1−z(s))ds."""
        t, v, b = as_times(t), self._power(t), power / self.shape
        share = _complement(b, np.minimum(v, 1.0))
        with np.errstate(over="ignore", under="ignore"):
            whole = np.where(share > 0, t, 0.0) ** power / power
            late = np.where((v <= 1) | np.isinf(whole), 0.0, _lower_gamma(b, v, self.rate, power) * b / power)
            return np.where(v <= 1, whole * share, whole - late)


def _complement(b: Float64s, v: Float64s) -> Float64s:
    """1 − b·γ(b, v)/v^b = −Σ_{j≥1} (−v)ʲ/j!·b/(b+j) for v ≤ 1: the share lost, without cancellation."""
    total = np.zeros(np.broadcast_shapes(b.shape, v.shape))
    for j in reversed(_TERMS):
        total = v * total + (-1) ** (j + 1) / math.factorial(j) * (b / (b + j))
    return v * total


def _lower_gamma(b: Float64s, v: Float64s, rate: Float64s, power: int) -> Float64s:
    """γ(b, v)/λᵖ where v > 1 (any finite number elsewhere)."""
    from scipy.special import gamma, gammainc

    far = np.maximum(v, 1.0)
    safe = np.where(v > 1, rate, 1.0)
    with np.errstate(over="ignore", under="ignore"):
        value = gamma(b) * gammainc(b, far) / safe
        return np.asarray(value if power == 1 else value / safe, dtype=np.float64)
