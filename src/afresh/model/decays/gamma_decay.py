"""Gamma decay: the time from a refresh to the first change has a Gamma distribution (Heinrich et al.)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.model.decays.parameters import (
    Size,
    as_times,
    check_parameter,
    divide_by_rate,
    multiply_by_rate,
    sample_shape,
)
from afresh.model.decays.rate_decays import RateDecay
from afresh.values.arrays import ArrayLike, Float64s


@dataclass(frozen=True, slots=True, eq=False, init=False)
class GammaDecay(RateDecay):
    """The decay z(t) = Q(k, kλt), if the time to the first change is Gamma(k) with mean 1/λ.

    Q and P = 1−Q are the regularised incomplete gamma functions. The shape k is from 0.02 to 100: with k = 1
    the decay is exponential, with k > 1 a copy is safe at first and then decays faster, and with k < 1 many
    copies change soon and the others last. Razniewski 2016, §4, names the class after Heinrich et al.

    >>> GammaDecay(1.0, [1.0, 4.0]).survival(0.5).round(4)
    array([0.6065, 0.8571])
    """

    shape: Float64s

    def __init__(self, rate: ArrayLike, shape: ArrayLike) -> None:
        RateDecay.__init__(self, rate)
        object.__setattr__(self, "shape", check_parameter("shape", shape, low=0.02, high=100))

    def survival(self, t: ArrayLike) -> Float64s:
        """Return Q(k, kλt), the probability that a copy is correct at the time t after its refresh."""
        from scipy.special import gammaincc

        return np.asarray(gammaincc(self.shape, self.scaled(t)), dtype=np.float64)

    def integral(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ z = t·Q(k, x) + P(k+1, x)/λ with x = kλt."""
        t, left = as_times(t), self.survival(t)
        with np.errstate(over="ignore"):
            return np.where(left > 0, t, 0.0) * left + self.gain(t)

    def gain(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ z − t·z(t) = P(k+1, x)/λ with x = kλt."""
        return self._mean_times(self._share(t, 1))

    def loss(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ (1−z) = t·P(k, x) − P(k+1, x)/λ with x = kλt."""
        t, changed = as_times(t), self._share(t, 0)
        with np.errstate(over="ignore"):
            return np.maximum(np.where(changed > 0, t, 0.0) * changed - self.gain(t), 0.0)

    def age_gain(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ s·(1−z(s))ds = t²·P(k, x)/2 − (k+1)·P(k+2, x)/(2kλ²) with x = kλt."""
        t, changed = as_times(t), self._share(t, 0)
        with np.errstate(over="ignore", invalid="ignore"):
            whole = np.where(changed > 0, t, 0.0) ** 2 * changed / 2
            square = self._mean_times(self._mean_times(self._share(t, 2)))
            late = (self.shape + 1) / (2 * self.shape) * square
            return np.where(np.isinf(whole), np.inf, np.maximum(whole - late, 0.0))

    def sample(self, rng: np.random.Generator, size: Size = None) -> Float64s:
        shape = sample_shape(size, self.rate, self.shape)
        return divide_by_rate(rng.standard_gamma(self.shape, shape) / self.shape, self.rate)

    def total(self) -> Float64s:
        """Return ∫₀^∞ z = 1/λ, the expected time until the first change."""
        return divide_by_rate(np.ones_like(self.shape), self.rate)

    def plateau(self) -> Float64s:
        """Return z(∞): 0, or 1 for items of rate 0."""
        return RateDecay.plateau(self) + np.zeros_like(self.shape)

    def scaled(self, t: ArrayLike) -> Float64s:
        """Return x = kλt, the time in the unit in which the Gamma distribution has the scale 1."""
        return multiply_by_rate(as_times(t), self.rate * self.shape)

    def change_probability(self, t: ArrayLike) -> Float64s:
        """Return 1−z(t) = P(k, kλt), without cancellation for small t."""
        return self._share(t, 0)

    def turning_term(self, t: ArrayLike) -> Float64s:
        """Return 1−z(t)+t·z'(t) = (1−k)·P(k, x) + k·P(k+1, x) with x = kλt."""
        return np.asarray((1 - self.shape) * self._share(t, 0) + self.shape * self._share(t, 1))

    def fall(self, t: ArrayLike) -> Float64s:
        """Return −t·z'(t) = x^k·e^{−x}/Γ(k) with x = kλt."""
        from scipy.special import gammaln, xlogy

        x = np.minimum(self.scaled(t), 1e6)  # beyond it the result is 0 for every shape
        return np.exp(xlogy(self.shape, x) - x - gammaln(self.shape))

    def _share(self, t: ArrayLike, more: int) -> Float64s:
        """Return P(k+``more``, kλt)."""
        from scipy.special import gammainc

        return np.asarray(gammainc(self.shape + more, self.scaled(t)), dtype=np.float64)

    def _mean_times(self, share: Float64s) -> Float64s:
        """Return ``share``/λ; 0 for items of rate 0, which never change."""
        rate = np.where(self.rate > 0, self.rate, 1.0)
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(share / rate, dtype=np.float64)
