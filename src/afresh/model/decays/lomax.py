"""Lomax decay: z(t) = (1+t/b)^{−a}, for Poisson changes whose rate has the distribution Gamma(a, b)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from afresh.model.decays.parameters import Size, as_times, check_parameter, sample_shape
from afresh.values.arrays import ArrayLike, Float64s

# The integrands over [0, 1] are analytic, and no singularity is nearer than −1, so 12 nodes err by 1e−18.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Lomax:
    """The decay z(t) = (1+t/b)^{−a}, the mean of e^{−λt} over rates λ with the distribution Gamma(a, b).
    ``shape`` is a, from 1e−5 to 1e30, and ``scale`` is b; with an infinite b nothing ever changes.

    >>> Lomax(2.0, 1.0).survival([0.0, 1.0]), float(Lomax(3.0, 1.0).total())
    (array([1.  , 0.25]), 0.5)
    """

    shape: Float64s
    scale: Float64s

    def __init__(self, shape: ArrayLike, scale: ArrayLike) -> None:
        object.__setattr__(self, "shape", check_parameter("shape", shape, low=1e-5, high=1e30))
        object.__setattr__(self, "scale", check_parameter("scale", scale, low=1e-300, infinite=True))

    def survival(self, t: ArrayLike) -> Float64s:
        """Return (1+t/b)^{−a} (shape a, scale b), the probability that a copy is correct after the time t."""
        return np.exp(-self.shape * np.log1p(self._relative(t)))

    def integral(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ z = b·E(1−a) with E(c) = ((1+t/b)^c − 1)/c, which is b·ln(1+t/b) for a = 1."""
        x = self._relative(t)
        grown = _growth(1 - self.shape, np.log1p(x))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            near = np.where(x < 1e-300, 1.0, grown / np.maximum(x, 1e-300))
            return np.where(x < 1, as_times(t) * near, self.scale * grown)

    def gain(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ z − t·z(t) = b·[E(1−a) − x(1+x)^{−a}] with x = t/b and E(c) = ((1+x)^c − 1)/c."""
        return self._near_or_far(t, 1, lambda _, y, a: a * y * np.exp(-(a + 1) * np.log1p(y)), self._far_gain)

    def loss(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ (1−z) = t − b·E(1−a) with E(c) = ((1+t/b)^c − 1)/c."""

        def far(t: Float64s) -> Float64s:
            return t - np.where(np.isinf(t), 0.0, self.integral(t))

        return self._near_or_far(t, 1, lambda _, y, a: -np.expm1(-a * np.log1p(y)), far)

    def age_gain(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ s·(1−z(s))ds = t²/2 − b²·[E(2−a) − E(1−a)] with E(c) = ((1+t/b)^c − 1)/c."""

        def far(t: Float64s) -> Float64s:
            return t * t / 2 - np.where(t > 1e150, 0.0, self._far_moment(t))

        return self._near_or_far(t, 2, lambda u, y, a: -u * np.expm1(-a * np.log1p(y)), far)

    def sample(self, rng: np.random.Generator, size: Size = None) -> Float64s:
        draws = rng.standard_exponential(sample_shape(size, self.shape, self.scale))
        with np.errstate(over="ignore"):
            return self.scale * np.expm1(draws / self.shape)

    def total(self) -> Float64s:
        """Return ∫₀^∞ z, which is b/(a−1) for a > 1, else infinite."""
        with np.errstate(over="ignore"):
            rest = np.where(self.shape > 1, self.shape - 1, 1.0)
            return np.where(self.shape > 1, self.scale / rest, np.inf)

    def plateau(self) -> Float64s:
        """Return z(∞): 0, or 1 for items that never change (those with an infinite b)."""
        return np.where(np.isfinite(self.scale), 0.0, 1.0) + np.zeros_like(self.shape)

    def _relative(self, t: ArrayLike) -> Float64s:
        """Return x = t/b: 0 if b is infinite, even if t is infinite; finite for every finite t."""
        finite, t = np.isfinite(self.scale), as_times(t)
        with np.errstate(over="ignore", under="ignore"):
            x = np.where(finite, t / np.where(finite, self.scale, 1.0), 0.0)
        return np.where(np.isinf(t), x, np.minimum(x, 1e300))

    def _far_gain(self, t: Float64s) -> Float64s:
        """Return the gain by its closed form, which loses digits for small t/b."""
        x = self._relative(t)
        log = np.log1p(x)
        # At t = ∞ the second term is 0 for a > 1, and negligible against the first otherwise.
        last = np.where(np.isinf(x), 0.0, np.where(np.isinf(x), 0.0, x) * np.exp(-self.shape * log))
        return self.scale * (_growth(1 - self.shape, log) - last)

    def _far_moment(self, t: Float64s) -> Float64s:
        """Return ∫₀ᵗ s·z(s)ds = b²·[E(2−a) − E(1−a)] with E(c) = ((1+t/b)^c − 1)/c."""
        # For a > 2 the difference would cancel; it equals 1/(a−1) times the gain/b of shape a−1.
        a, x = self.shape, self._relative(t)
        log, finite = np.log1p(x), np.where(np.isinf(x), 0.0, x)
        steep = np.where(a > 2, a, 3.0)
        last = finite * np.exp((1 - steep) * log)
        by_gain = (_growth(2 - steep, log) - last) / (steep - 1)
        second = np.where(np.isinf(x), 0.0, _growth(1 - a, log))
        return self.scale * (self.scale * np.where(a > 2, by_gain, _growth(2 - a, log) - second))

    def _near_or_far(
        self,
        t: ArrayLike,
        power: int,
        density: Callable[[np.float64, Float64s, Float64s], Float64s],
        far: Callable[[Float64s], Float64s],
    ) -> Float64s:
        """Return tᵖ·∫₀¹ density(u, xu, a)du if x·max(a, 1) < 1, else ``far(t)``; x is t/b and p ``power``.
        Both are the same quantity. ``far`` is its closed form, which loses digits by cancellation for small
        x. The integral is computed by Gauss–Legendre quadrature."""
        t, a, x = as_times(t), self.shape, self._relative(t)
        near = x * np.maximum(a, 1.0) < 1
        small = np.where(near, x, 0.0)
        share = np.zeros(np.broadcast_shapes(a.shape, x.shape))
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            share = share + weight * density(node, node * small, a)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            # With an infinite scale ``far`` is meaningless, but x is 0 and it is not used.
            return np.where(near, np.where(share > 0, t, 0.0) ** power * share, far(t))


def _growth(c: Float64s, log: Float64s) -> Float64s:
    """Return E(c) = ((1+x)^c − 1)/c for ``log`` = ln(1+x); E(0) = ln(1+x)."""
    flat = c == 0
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.where(flat, log, np.expm1(c * log) / np.where(flat, 1.0, c))
