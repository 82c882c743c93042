"""Decay functions with a rate as parameter: exponential, linear and Weibull."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from afresh.model import curves
from afresh.model.decays import parameters
from afresh.model.decays.parameters import Size, as_times, divide_by_rate, multiply_by_rate
from afresh.values.arrays import ArrayLike, Float64s


@dataclass(frozen=True, slots=True, eq=False, init=False)
class RateDecay:
    """The base class of decays with a rate λ for each item; an item of rate 0 never changes."""

    rate: Float64s

    def __init__(self, rate: ArrayLike) -> None:
        object.__setattr__(self, "rate", parameters.check_parameter("rate", rate))

    def plateau(self) -> Float64s:
        """Return z(∞): 0, or 1 for items of rate 0."""
        return np.where(self.rate > 0, 0.0, 1.0)


class Exponential(RateDecay):
    """The decay z(t) = e^{−λt} of Poisson changes: they happen at the rate λ, independently of each other.
    A copy refreshed λ times per time is correct 63 % of the time (Cho & Garcia-Molina 2000, Theorem 3.1).

    >>> round(float(Exponential(1.0).integral(1.0)), 2)
    0.63
    """

    def survival(self, t: ArrayLike) -> Float64s:
        """Return e^{−λt}, the probability that a copy is correct at the time t after its refresh."""
        return np.exp(-multiply_by_rate(as_times(t), self.rate))

    def integral(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ z = (1−e^{−λt})/λ, the expected time in which a copy is correct, from refresh to t."""
        return self._scale_curve(lambda x: -np.expm1(-x), t, 1, lambda x: np.ones_like(x))

    def gain(self, t: ArrayLike) -> Float64s:
        """Return g(λt)/λ, the freshness that one more refresh per time gains; g(r) = 1−(1+r)e^{−r}."""
        return self._scale_curve(curves.g, t, 1, lambda x: x / 2)

    def loss(self, t: ArrayLike) -> Float64s:
        """Return h(λt)/λ, the expected age of a copy t after its refresh; h(r) = r−1+e^{−r}."""
        return self._scale_curve(curves.h, t, 1, lambda x: x / 2)

    def age_gain(self, t: ArrayLike) -> Float64s:
        """Return k(λt)/λ², the mean age that one more refresh per time saves; k(r) = r²/2−1+(1+r)e^{−r}."""
        return self._scale_curve(curves.k, t, 2, lambda x: x / 3)

    def sample(self, rng: np.random.Generator, size: Size = None) -> Float64s:
        return divide_by_rate(rng.standard_exponential(parameters.sample_shape(size, self.rate)), self.rate)

    def total(self) -> Float64s:
        """Return ∫₀^∞ z = 1/λ, the expected time until the first change."""
        return divide_by_rate(1.0, self.rate)

    def _scale_curve(
        self,
        curve: Callable[[Float64s], Float64s],
        t: ArrayLike,
        power: int,
        lead: Callable[[Float64s], Float64s],
    ) -> Float64s:
        """Return curve(x)/λᵖ at x = λt; p is ``power``.
        For x < 1 it is computed as tᵖ·(curve(x)/xᵖ), so that neither a tiny rate nor an infinite time causes
        0/0. ``lead`` is the first term of the power series of curve(x)/xᵖ."""
        t = as_times(t)
        rate = np.where(self.rate > 0, self.rate, 1.0)
        x = multiply_by_rate(t, self.rate)
        value = curve(x)
        middle = np.clip(x, 1e-30, 1.0)
        ratio = np.where(x < 1e-30, lead(np.minimum(x, 1.0)), np.where(x < 1, value / middle**power, 0.0))
        near_t = np.where((x < 1) & (ratio > 0), t, 0.0)
        with np.errstate(over="ignore", under="ignore"):
            near, far = (near_t, value / rate) if power == 1 else (near_t * near_t, value / rate / rate)
            return np.where(x < 1, near * ratio, far)


class Linear(RateDecay):
    """The decay z(t) = max(1 − λt, 0): the first change is equally likely at any time up to 1/λ.
    If every address becomes wrong within ten years (λ = 1/10), an address that is refreshed every five years
    is correct 75 % of the time (Razniewski 2016, §2).

    >>> float(Linear(1 / 10).integral(5.0) / 5)
    0.75
    """

    def survival(self, t: ArrayLike) -> Float64s:
        """Return max(1 − λt, 0), the probability that a copy is correct at the time t after its refresh."""
        return 1 - np.minimum(multiply_by_rate(as_times(t), self.rate), 1.0)

    def integral(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ z = u(1 − λu/2) with u = min(t, 1/λ)."""
        u, x = self._until_wrong(t)
        return u * (1 - x / 2)

    def gain(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ z − t·z(t) = λu²/2 with u = min(t, 1/λ)."""
        u, x = self._until_wrong(t)
        return np.where(x > 0, u, 0.0) * x / 2

    def loss(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ (1−z), which is λu²/2 with u = min(t, 1/λ), plus the time after 1/λ."""
        u, x = self._until_wrong(t)
        late = np.where(x < 1, 0.0, as_times(t) - np.where(x < 1, 0.0, u))
        return self.gain(t) + late

    def age_gain(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ s·(1−z(s))ds, which is λu³/3 with u = min(t, 1/λ), plus ∫s ds from 1/λ to t."""
        u, x = self._until_wrong(t)
        u = np.where(x > 0, u, 0.0)
        with np.errstate(over="ignore", under="ignore"):
            late = np.where(x < 1, 0.0, (as_times(t) - u) * (as_times(t) + u) / 2)
            return u * u * x / 3 + late

    def sample(self, rng: np.random.Generator, size: Size = None) -> Float64s:
        """Draw times from a refresh to the first change, uniform on (0, 1/λ)."""
        return divide_by_rate(rng.random(parameters.sample_shape(size, self.rate)), self.rate)

    def total(self) -> Float64s:
        """Return ∫₀^∞ z = 1/(2λ), the expected time until the first change."""
        return divide_by_rate(0.5, self.rate)

    def _until_wrong(self, t: ArrayLike) -> tuple[Float64s, Float64s]:
        """Return a tuple (u, λu) with u = min(t, 1/λ)."""
        u = np.minimum(as_times(t), divide_by_rate(1.0, self.rate))
        return u, np.minimum(multiply_by_rate(as_times(t), self.rate), 1.0)


_TERMS = range(1, 21)  # at v = 1 the first omitted term is below 1e−19


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Weibull(RateDecay):
    """The decay z(t) = e^{−v} with v = (λt)^k, for a shape k from 0.02 to 100; k = 1 is exponential decay.
    With a = 1/k and γ the lower incomplete gamma function, ∫₀ᵗ z = a·γ(a, v)/λ, ∫₀ᵗ s·z = a·γ(2a, v)/λ².

    >>> round(float(Weibull(1.0, 2.0).total()), 6), round(math.sqrt(math.pi) / 2, 6)
    (0.886227, 0.886227)
    """

    shape: Float64s

    def __init__(self, rate: ArrayLike, shape: ArrayLike) -> None:
        RateDecay.__init__(self, rate)
        object.__setattr__(self, "shape", parameters.check_parameter("shape", shape, low=0.02, high=100))

    def survival(self, t: ArrayLike) -> Float64s:
        """Return e^{−(λt)^k}, the probability that a copy is correct at the time t after its refresh."""
        return np.exp(-self._power(t))

    def integral(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ z = γ(1/k, v)/(kλ) with v = (λt)^k and the lower incomplete gamma function γ."""
        t, v, a = as_times(t), self._power(t), 1 / self.shape
        with np.errstate(over="ignore", under="ignore"):
            near = t * (1 - _complement(a, np.minimum(v, 1.0)))
        return np.where(v <= 1, near, _lower_gamma(a, v, self.rate, 1) * a)

    def gain(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ z − t·z(t) = γ(1+1/k, v)/λ with v = (λt)^k and the lower incomplete gamma function γ."""
        t, v, a = as_times(t), self._power(t), 1 / self.shape
        near = np.minimum(v, 1.0)
        share = near / (1 + a) * (1 - _complement(1 + a, near))
        return np.where(v <= 1, np.where(share > 0, t, 0.0) * share, _lower_gamma(1 + a, v, self.rate, 1))

    def loss(self, t: ArrayLike) -> Float64s:
        """Return t − ∫₀ᵗ z; for (λt)^k ≤ 1 by a power series, because the difference would lose digits."""
        return self._lost_share(t, 1)

    def age_gain(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ s·(1−z(s))ds; for (λt)^k ≤ 1 by a power series, as in ``loss``."""
        return self._lost_share(t, 2)

    def sample(self, rng: np.random.Generator, size: Size = None) -> Float64s:
        draws = rng.standard_exponential(parameters.sample_shape(size, self.rate, self.shape))
        return divide_by_rate(draws ** (1 / self.shape), self.rate)

    def total(self) -> Float64s:
        """Return ∫₀^∞ z = Γ(1+1/k)/λ, the expected time until the first change."""
        from scipy.special import gamma

        return divide_by_rate(gamma(1 + 1 / self.shape), self.rate)

    def plateau(self) -> Float64s:
        """Return z(∞): 0, or 1 for items of rate 0."""
        return RateDecay.plateau(self) + np.zeros_like(self.shape)

    def _power(self, t: ArrayLike) -> Float64s:
        """Return v = (λt)^k, so that z(t) = e^{−v}."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(multiply_by_rate(as_times(t), self.rate) ** self.shape, dtype=np.float64)

    def _lost_share(self, t: ArrayLike, power: int) -> Float64s:
        """Return ∫₀ᵗ s^{p−1}·(1−z(s))ds; p is ``power``, 1 or 2."""
        t, v, b = as_times(t), self._power(t), power / self.shape
        share = _complement(b, np.minimum(v, 1.0))
        with np.errstate(over="ignore", under="ignore"):
            whole = np.where(share > 0, t, 0.0) ** power / power
            late = np.where((v <= 1) | np.isinf(whole), 0.0, _lower_gamma(b, v, self.rate, power) * b / power)
            return np.where(v <= 1, whole * share, whole - late)


def _complement(b: Float64s, v: Float64s) -> Float64s:
    """Return 1 − b·γ(b, v)/v^b for v ≤ 1, without cancellation; γ is the lower incomplete gamma function."""
    # The series is −Σ_{j≥1} (−v)ʲ/j!·b/(b+j).
    total = np.zeros(np.broadcast_shapes(b.shape, v.shape))
    for j in reversed(_TERMS):
        total = v * total + (-1) ** (j + 1) / math.factorial(j) * (b / (b + j))
    return v * total


def _lower_gamma(b: Float64s, v: Float64s, rate: Float64s, power: int) -> Float64s:
    """Return γ(b, v)/λᵖ, with p = ``power``, for v > 1; for smaller v it is finite but meaningless."""
    from scipy.special import gamma, gammainc

    far = np.maximum(v, 1.0)
    safe = np.where(v > 1, rate, 1.0)
    with np.errstate(over="ignore", under="ignore"):
        value = gamma(b) * gammainc(b, far) / safe
        return np.asarray(value if power == 1 else value / safe, dtype=np.float64)
