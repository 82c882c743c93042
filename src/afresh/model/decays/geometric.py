"""Geometric decay: z(t) = (1−p)^⌊t/step⌋; at the end of each step a change happens with probability p."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.model import curves
from afresh.model.decays.parameters import Size, as_times, check_parameter, sample_shape
from afresh.model.roots import solve_decreasing
from afresh.values.arrays import ArrayLike, Bools, Float64s

_NEVER = 1e-100  # a smaller probability has no effect in double precision


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Geometric:
    """The decay z(t) = (1−p)^⌊t/step⌋: a job that runs every ``step`` changes the item with probability p.

    >>> Geometric(0.5).survival([0.9, 1.0, 2.5]), float(Geometric(0.5).total())
    (array([1.  , 0.5 , 0.25]), 2.0)
    """

    p: Float64s
    step: Float64s

    def __init__(self, p: ArrayLike, step: ArrayLike = 1.0) -> None:
        object.__setattr__(self, "p", check_parameter("p", p, high=1.0))
        object.__setattr__(self, "step", check_parameter("step", step, low=1e-300))

    def survival(self, t: ArrayLike) -> Float64s:
        """Return q^n, the probability that a copy is correct after n = ⌊t/step⌋ whole steps; q = 1−p."""
        return np.exp(-self._exponent(self._steps(t)[0]))

    def integral(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ z = step·(1−q^n)/p + (t − n·step)·q^n with n = ⌊t/step⌋ whole steps and q = 1−p."""
        n, rest = self._steps(t)
        value = self.step * self._sum0(n) + rest * self.survival(t)
        return self._settle(t, value, self.total(), as_times(t))

    def gain(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ z − t·z(t) = step·Σ_{i<n} (qⁱ − q^n) with n = ⌊t/step⌋ whole steps and q = 1−p."""
        return np.where(self._moves, self._gain_of_steps(self._steps(t)[0]), 0.0)

    def shortest_interval(self, gain: ArrayLike) -> Float64s:
        """Return the shortest time t with self.gain(t) ≥ ``gain`` > 0, a multiple of ``step``; ∞ if none.
        The gain jumps at every step, so a search over t would need about sixty evaluations. The formula for n
        steps is smooth if n may be any real number, and a search over n needs ten evaluations.

        >>> Geometric(0.5).shortest_interval([0.5, 0.51, 1.9, 2.0])
        array([ 1.,  2.,  7., inf])
        """
        wanted, top = np.broadcast_arrays(np.asarray(gain, dtype=np.float64), self._gain_of_steps(np.inf))
        within = (wanted < top) & self._moves
        target = np.where(within, wanted, 0.5 * np.where(self._moves, top, 1.0))

        def gain_of(pace: Float64s) -> Float64s:
            return np.where(self._moves, self._gain_of_steps(1 / pace), target)

        found = 1 / solve_decreasing(gain_of, target, self._safe, slope=-2.0).low
        n = np.maximum(np.ceil(found), 1.0)
        # The root is accurate to 1e-12 only, so the whole number may be one too large or too small.
        n = np.where((n > 1) & (self._gain_of_steps(n - 1) >= wanted), n - 1, n)
        n = np.where(self._gain_of_steps(n) < wanted, n + 1, n)
        return np.where(within, n * self.step, np.inf)

    def loss(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ (1−z) = step·Σ_{i<n} (1−qⁱ) + (t − n·step)(1−q^n) with n = ⌊t/step⌋ and q = 1−p."""
        n, rest = self._steps(t)
        # Σ_{i<n} (1−qⁱ) = p·Σ_{j<n} (n−1−j)qʲ, which avoids the cancellation of n − Σ qⁱ.
        whole = self.step * self.p * ((n - 1) * self._sum0(n) - self._sum1(n))
        value = np.maximum(whole, 0.0) - rest * np.expm1(-self._exponent(n))
        return self._settle(t, value, as_times(t), 0.0)

    def age_gain(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ s·(1−z(s))ds = step²·Σ_{i<n} (i+½)(1−qⁱ) + (t² − (n·step)²)/2·(1−q^n), n = ⌊t/step⌋."""
        n, rest = self._steps(t)
        v = self._exponent(n)
        rare = (v > 0) & (v < 1e-3)
        with np.errstate(over="ignore"):
            few = _age_sum(np.where(rare, self._alpha, 0.0), np.where(rare, n, 0.0))
            many = n * n / 2 - self._sum1(n) - self._sum0(n) / 2
            part = rest * (n * self.step + rest / 2) * -np.expm1(-v)
            return self._settle(t, self.step**2 * np.where(rare, few, many) + part, as_times(t) ** 2 / 2, 0.0)

    def sample(self, rng: np.random.Generator, size: Size = None) -> Float64s:
        """Draw times from a refresh to the first change: whole steps, at least one."""
        draws = rng.standard_exponential(sample_shape(size, self.p, self.step))
        with np.errstate(over="ignore"):
            steps = np.maximum(np.ceil(draws / np.where(self._moves, self._alpha, 1.0)), 1.0)
            return np.where(self._moves, steps * self.step, np.inf)

    def total(self) -> Float64s:
        """Return ∫₀^∞ z = step/p, the expected time until the first change."""
        return np.where(self._moves, self.step / self._safe, np.inf)

    def plateau(self) -> Float64s:
        """Return z(∞): 0, or 1 for items that never change (those with p = 0)."""
        return np.where(self._moves, 0.0, 1.0) + np.zeros_like(self.step)

    def _gain_of_steps(self, n: ArrayLike) -> Float64s:
        """Return the gain after n steps; n need not be a whole number."""
        steps = np.minimum(np.asarray(n, dtype=np.float64), 1e150)
        return np.where(steps < 1e150, self.step * self._drop(steps) * self.p, self.total())

    @property
    def _moves(self) -> Bools:
        """Whether an item ever changes."""
        return np.asarray(self.p > _NEVER)

    @property
    def _safe(self) -> Float64s:
        """p, or 1 if p is too small to have an effect."""
        return np.where(self._moves, self.p, 1.0)

    @property
    def _alpha(self) -> Float64s:
        """α = −ln(1−p), so that z(n·step) = e^{−αn}; infinite if a change is certain (p = 1)."""
        with np.errstate(divide="ignore"):
            return np.where(self._moves, -np.log1p(-self.p), 0.0)

    def _steps(self, t: ArrayLike) -> tuple[Float64s, Float64s]:
        """Return a tuple (n, rest): the number of whole steps up to t, and the time since the last one."""
        # Beyond 1e150 steps the sums over steps no longer grow.
        with np.errstate(over="ignore"):
            n = np.minimum(np.floor(as_times(t) / self.step), 1e150)
            rest = np.where(n < 1e150, as_times(t) - n * self.step, 0.0)
        return n, np.maximum(rest, 0.0)

    def _exponent(self, n: Float64s) -> Float64s:
        """Return n·α, so that z is e^{−nα} after n steps; 0 for n = 0 even if α is infinite."""
        some = n > 0
        return np.where(some, np.where(some, n, 1.0) * self._alpha, 0.0)

    def _sum0(self, n: Float64s) -> Float64s:
        """Return Σ_{i<n} qⁱ = (1−q^n)/p with q = 1−p."""
        return -np.expm1(-self._exponent(n)) / self._safe

    def _sum1(self, n: Float64s) -> Float64s:
        """Return Σ_{i<n} i·qⁱ = q·Σ_{i<n} (qⁱ−q^n)/p − n·q^n with q = 1−p."""
        last = n * np.exp(-self._exponent(n))
        return np.maximum((1 - self.p) * self._drop(n) - last, 0.0)

    def _drop(self, n: Float64s) -> Float64s:
        """Return Σ_{i<n} (qⁱ−q^n)/p with q = 1−p, without cancellation.
        With v = n·α it is [g(v) + v·e^{−v}·(1−p/α)]/p², where both terms are positive; g is ``curves.g``."""
        v = np.minimum(self._exponent(n), 800.0)
        return (curves.g(v) + v * np.exp(-v) * _gap(self._safe)) / self._safe**2

    def _settle(self, t: ArrayLike, value: Float64s, limit: ArrayLike, static: ArrayLike) -> Float64s:
        """Return ``value``, or ``limit`` beyond 1e150 steps, or ``static`` for items that never change."""
        return np.where(self._moves, np.where(self._steps(t)[0] < 1e150, value, limit), static)


# Gregory's coefficients Gₙ, with which 1 − p/α = Σ Gₙpⁿ.
_GREGORY = [0, 1 / 2, 1 / 12, 1 / 24, 19 / 720, 3 / 160, 863 / 60480, 275 / 24192, 33953 / 3628800]
_GREGORY += [8183 / 1036800, 3250433 / 479001600]


def _gap(p: Float64s) -> Float64s:
    """Return 1 − p/α with α = −ln(1−p); for small p by a power series, because it would lose digits."""
    with np.errstate(divide="ignore"):
        far = 1 + p / np.log1p(-np.maximum(p, 0.04))
    return np.where(p < 0.04, np.polynomial.polynomial.polyval(np.minimum(p, 0.04), _GREGORY), far)


def _age_sum(alpha: Float64s, n: Float64s) -> Float64s:
    """Return Σ_{i<n} (i+½)(1−e^{−αi}) for αn < 1e−3, by four terms of the exponential series."""
    s1 = np.maximum(n - 1, 0.0) * n / 2
    s2 = s1 * (2 * n - 1) / 3
    s3 = s1 * s1
    s4 = s2 * (3 * n * n - 3 * n - 1) / 5
    s5 = s3 * (2 * n * n - 2 * n - 1) / 3
    terms = [s2 + s1 / 2, -(s3 + s2 / 2) / 2, (s4 + s3 / 2) / 6, -(s5 + s4 / 2) / 24]
    return alpha * (terms[0] + alpha * (terms[1] + alpha * (terms[2] + alpha * terms[3])))
