"""Decay functions of a rate: exponential, linear and Weibull."""

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
    """What the decays of a rate λ share: a rate of 0 never changes."""

    rate: Float64s

    def __init__(self, rate: ArrayLike) -> None:
        object.__setattr__(self, "rate", parameters.check_parameter("rate", rate))

    def plateau(self) -> Float64s:
        """Return z(∞): 0, or 1 where the copy stays right for ever."""
        return np.where(self.rate > 0, 0.0, 1.0)


class Exponential(RateDecay):
    """z(t) = e^{−λt}: changes come at rate λ, however long ago the last one was.

    Refreshed once per mean change, a copy is right 63 % of the time (Cho & Garcia-Molina 2000, Theorem 3.1).

    >>> round(float(Exponential(1.0).integral(1.0)), 2)
    0.63
    """

    def survival(self, t: ArrayLike) -> Float64s:
        """e^{−λt}."""
        return np.exp(-multiply_by_rate(as_times(t), self.rate))

    def integral(self, t: ArrayLike) -> Float64s:
        """(1−e^{−λt})/λ."""
        return self._scale_curve(lambda x: -np.expm1(-x), t, 1, lambda x: np.ones_like(x))

    def gain(self, t: ArrayLike) -> Float64s:
        """g(λt)/λ."""
        return self._scale_curve(curves.g, t, 1, lambda x: x / 2)

    def loss(self, t: ArrayLike) -> Float64s:
        """h(λt)/λ."""
        return self._scale_curve(curves.h, t, 1, lambda x: x / 2)

    def age_gain(self, t: ArrayLike) -> Float64s:
        """k(λt)/λ²."""
        return self._scale_curve(curves.k, t, 2, lambda x: x / 3)

    def sample(self, rng: np.random.Generator, size: Size = None) -> Float64s:
        return divide_by_rate(rng.standard_exponential(parameters.sample_shape(size, self.rate)), self.rate)

    def total(self) -> Float64s:
        """1/λ."""
        return divide_by_rate(1.0, self.rate)

    def _scale_curve(
        self,
        curve: Callable[[Float64s], Float64s],
        t: ArrayLike,
        power: int,
        lead: Callable[[Float64s], Float64s],
    ) -> Float64s:
        """curve(x)/λ^p at x = λt, as tᵖ·curve(x)/xᵖ for small x; ``lead`` is that ratio's first term.

        So neither a tiny rate nor an infinite time divides zero by zero.
        """
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
    """z(t) = max(1 − λt, 0): the first change is equally likely at any time up to 1/λ.

    An address that is wrong after ten years at the latest, refreshed every five years, is right 75 % of the
    time (Razniewski 2016, §2).

    >>> float(Linear(1 / 10).integral(5.0) / 5)
    0.75
    """

    def survival(self, t: ArrayLike) -> Float64s:
        """max(1 − λt, 0)."""
        return 1 - np.minimum(multiply_by_rate(as_times(t), self.rate), 1.0)

    def integral(self, t: ArrayLike) -> Float64s:
        """u(1 − λu/2), u = min(t, 1/λ)."""
        u, x = self._until_wrong(t)
        return u * (1 - x / 2)

    def gain(self, t: ArrayLike) -> Float64s:
        """λu²/2."""
        u, x = self._until_wrong(t)
        return np.where(x > 0, u, 0.0) * x / 2

    def loss(self, t: ArrayLike) -> Float64s:
        """λu²/2, and all of the time after 1/λ."""
        u, x = self._until_wrong(t)
        late = np.where(x < 1, 0.0, as_times(t) - np.where(x < 1, 0.0, u))
        return self.gain(t) + late

    def age_gain(self, t: ArrayLike) -> Float64s:
        """λu³/3, and ∫s ds after 1/λ."""
        u, x = self._until_wrong(t)
        u = np.where(x > 0, u, 0.0)
        with np.errstate(over="ignore", under="ignore"):
            late = np.where(x < 1, 0.0, (as_times(t) - u) * (as_times(t) + u) / 2)
            return u * u * x / 3 + late

    def sample(self, rng: np.random.Generator, size: Size = None) -> Float64s:
        """Times from a refresh to the first change: uniform on (0, 1/λ)."""
        return divide_by_rate(rng.random(parameters.sample_shape(size, self.rate)), self.rate)

    def total(self) -> Float64s:
        """1/(2λ)."""
        return divide_by_rate(0.5, self.rate)

    def _until_wrong(self, t: ArrayLike) -> tuple[Float64s, Float64s]:
        """u = min(t, 1/λ) and λu."""
        u = np.minimum(as_times(t), divide_by_rate(1.0, self.rate))
        return u, np.minimum(multiply_by_rate(as_times(t), self.rate), 1.0)


_TERMS = range(1, 21)  # at v = 1 the next term is below 1e−19


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Weibull(RateDecay):
    """z(t) = e^{−v}, v = (λt)^k; shape k = 1 is the exponential, shapes from 0.02 to 100.

    With a = 1/k and γ the lower incomplete gamma function, ∫₀ᵗz = a·γ(a, v)/λ and ∫₀ᵗs·z = a·γ(2a, v)/λ².

    >>> round(float(Weibull(1.0, 2.0).total()), 6), round(math.sqrt(math.pi) / 2, 6)
    (0.886227, 0.886227)
    """

    shape: Float64s

    def __init__(self, rate: ArrayLike, shape: ArrayLike) -> None:
        RateDecay.__init__(self, rate)
        object.__setattr__(self, "shape", parameters.check_parameter("shape", shape, low=0.02, high=100))

    def survival(self, t: ArrayLike) -> Float64s:
        """e^{−(λt)^k}."""
        return np.exp(-self._power(t))

    def integral(self, t: ArrayLike) -> Float64s:
        """γ(1/k, v)/(kλ)."""
        t, v, a = as_times(t), self._power(t), 1 / self.shape
        with np.errstate(over="ignore", under="ignore"):
            near = t * (1 - _complement(a, np.minimum(v, 1.0)))
        return np.where(v <= 1, near, _lower_gamma(a, v, self.rate, 1) * a)

    def gain(self, t: ArrayLike) -> Float64s:
        """γ(1+1/k, v)/λ."""
        t, v, a = as_times(t), self._power(t), 1 / self.shape
        near = np.minimum(v, 1.0)
        share = near / (1 + a) * (1 - _complement(1 + a, near))
        return np.where(v <= 1, np.where(share > 0, t, 0.0) * share, _lower_gamma(1 + a, v, self.rate, 1))

    def loss(self, t: ArrayLike) -> Float64s:
        """t − ∫₀ᵗz, by its own series while v ≤ 1."""
        return self._lost_share(t, 1)

    def age_gain(self, t: ArrayLike) -> Float64s:
        """t²/2 − ∫₀ᵗs·z, by its own series while v ≤ 1."""
        return self._lost_share(t, 2)

    def sample(self, rng: np.random.Generator, size: Size = None) -> Float64s:
        draws = rng.standard_exponential(parameters.sample_shape(size, self.rate, self.shape))
        return divide_by_rate(draws ** (1 / self.shape), self.rate)

    def total(self) -> Float64s:
        """Γ(1+1/k)/λ."""
        from scipy.special import gamma

        return divide_by_rate(gamma(1 + 1 / self.shape), self.rate)

    def plateau(self) -> Float64s:
        """Return z(∞): 0, or 1 where the copy stays right for ever."""
        return RateDecay.plateau(self) + np.zeros_like(self.shape)

    def _power(self, t: ArrayLike) -> Float64s:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(multiply_by_rate(as_times(t), self.rate) ** self.shape, dtype=np.float64)

    def _lost_share(self, t: ArrayLike, power: int) -> Float64s:
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
