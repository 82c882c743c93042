"""Empirical decay: a decay function z(t) given by points, for example from observed lifetimes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from afresh.model.decays.parameters import Size, as_times, check_parameter, sample_shape
from afresh.values.arrays import ArrayLike, Float64s
from afresh.values.errors import InputError

_FAR = 1e100  # later times count as infinite; the cube of this one is still finite


@dataclass(frozen=True, slots=True, eq=False)
class Empirical:
    """A decay z given by points (time, z): constant up to the next point or, with ``linear``, linear.
    After the last point z is constant. If no point has time 0, (0, 1) is added. All items have the same z.

    >>> half_known = Empirical([1.0, 3.0], [0.5, 0.25])
    >>> half_known.survival([0.5, 1.0, 9.0]), half_known.integral([2.0])
    (array([1.  , 0.5 , 0.25]), array([1.5]))
    """

    times: ArrayLike
    values: ArrayLike
    linear: bool = False
    _pieces: _Pieces = field(init=False, repr=False)

    def __post_init__(self) -> None:
        times, values = (
            check_parameter("times", self.times),
            check_parameter("survival", self.values, high=1.0),
        )
        if times.ndim != 1 or times.shape != values.shape or not times.size:
            raise InputError("times and survival must be two lists of the same length, 1 or more")
        if (np.diff(times) <= 0).any() or (np.diff(values) > 0).any():
            raise InputError("times must grow and survival must not, from point to point")
        if times[0] > 0:
            times, values = np.append(0.0, times), np.append(1.0, values)
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "_pieces", _Pieces.of(times, values, self.linear))

    @classmethod
    def from_lifetimes(cls, lifetimes: ArrayLike, ended: ArrayLike | None = None) -> Empirical:
        """Return the decay of copies of items whose times between two changes (lifetimes) were observed.

        ``ended`` is False for a lifetime that had not ended when last observed. S(t) is the Kaplan–Meier
        estimate of the share of lifetimes longer than t, and m the mean lifetime. A copy that is refreshed at
        a random time has z(t) = (1/m)∫_t^∞ S, which is linear between the observed ends. S itself would be
        wrong, because a random time is more often in a long lifetime. z is S only if every refresh begins a
        new lifetime; then use ``Empirical(*kaplan_meier(…))``.

        If the longest lifetimes have not ended, S never reaches 0 and m is not known. S is then set to 0 at
        the longest lifetime (Efron's convention), which makes m too small and z a lower bound.

        >>> Empirical.from_lifetimes([2.0, 2.0]).survival([0.0, 1.0, 2.0])
        array([1. , 0.5, 0. ])
        """
        times, survival = kaplan_meier(lifetimes, ended)
        longest = float(np.max(np.asarray(lifetimes, dtype=np.float64)))
        knots = np.unique(np.concatenate([[0.0], times, [longest]]))
        before = np.append(1.0, survival)[np.searchsorted(times, knots[:-1], side="right")]
        lived = np.append(0.0, np.cumsum(before * np.diff(knots)))
        return cls(knots, np.clip(1 - lived / lived[-1], 0.0, 1.0), linear=True)

    def survival(self, t: ArrayLike) -> Float64s:
        i, d = self._pieces.locate(t)
        return self._pieces.level[i] + self._pieces.slope[i] * d

    def integral(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ z, the expected time in which a copy is correct, from its refresh to t."""
        return self._pieces.integrate(t, 0, lost=False)

    def gain(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ s·(−dz(s)), the freshness that one more refresh per time gains."""
        return self._pieces.fall_moment(t)

    def loss(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ (1−z), the expected age of a copy at the time t after its refresh."""
        return self._pieces.integrate(t, 0, lost=True)

    def age_gain(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ s·(1−z(s))ds for the decay z: the age that one refresh more saves at the interval t."""
        return self._pieces.integrate(t, 1, lost=True)

    def sample(self, rng: np.random.Generator, size: Size = None) -> Float64s:
        """Draw times from a refresh to the first change: the first t with z(t) ≤ u, for a uniform u; or ∞."""
        u = rng.random(sample_shape(size))
        times, values = np.asarray(self.times), np.asarray(self.values)
        i = np.searchsorted(-values, -u, side="left")
        end = np.minimum(i, times.size - 1)
        if not self.linear:
            return np.where(i < times.size, times[end], np.inf)
        start = np.maximum(end - 1, 0)
        drop = np.where(values[start] > values[end], values[start] - values[end], 1.0)
        share = np.clip((values[start] - u) / drop, 0.0, 1.0)
        return np.where(i < times.size, times[start] + share * (times[end] - times[start]), np.inf)

    def total(self) -> Float64s:
        """Return ∫₀^∞ z, which is infinite if z(∞) > 0."""
        return self.integral(np.inf)

    def plateau(self) -> Float64s:
        return np.asarray(self.values, dtype=np.float64)[-1:].reshape(())


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    """The pieces of z: from one start to the next, z is level + slope·d at the time d after the start."""

    start: Float64s
    level: Float64s
    slope: Float64s
    drop: Float64s  # how far z falls in a jump at the start

    @classmethod
    def of(cls, times: Float64s, values: Float64s, linear: bool) -> _Pieces:
        if not linear:
            return cls(times, values, np.zeros_like(times), -np.diff(values, prepend=1.0))
        slope = np.append(np.diff(values) / np.diff(times), 0.0)
        drop = np.append(1 - values[0], np.zeros(times.size - 1))
        return cls(times, values, slope, drop)

    def locate(self, t: ArrayLike) -> tuple[npt.NDArray[np.intp], Float64s]:
        """Return a tuple (i, d): the number of the piece in which t lies, and the time since its start."""
        t = as_times(t)
        i = np.asarray(np.maximum(np.searchsorted(self.start, t, side="right") - 1, 0))
        return i, np.minimum(t - self.start[i], _FAR)

    def integrate(self, t: ArrayLike, power: int, *, lost: bool) -> Float64s:
        """Return ∫₀ᵗ s^power·z(s)ds for the decay z or, if ``lost``, ∫₀ᵗ s^power·(1−z(s))ds.

        ``power`` is 0 or 1.
        """
        level, slope = (1 - self.level, -self.slope) if lost else (self.level, self.slope)

        def piece(i: npt.NDArray[np.intp], d: Float64s) -> Float64s:
            flat = level[i] * d + slope[i] * d * d / 2
            return flat if power == 0 else self.start[i] * flat + d * d * (level[i] / 2 + slope[i] * d / 3)

        whole = piece(np.arange(self.start.size - 1), np.diff(self.start))
        i, d = self.locate(t)
        value = np.append(0.0, np.cumsum(whole))[i] + piece(i, d)
        return np.where((as_times(t) > _FAR) & (level[-1] > 0), np.inf, value)

    def fall_moment(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ s·(−dz(s)), as a sum over the jumps and slopes of z, whose terms are all positive."""

        def piece(i: npt.NDArray[np.intp], d: Float64s) -> Float64s:
            return self.start[i] * self.drop[i] - self.slope[i] * d * (self.start[i] + d / 2)

        whole = piece(np.arange(self.start.size - 1), np.diff(self.start))
        i, d = self.locate(t)
        return np.append(0.0, np.cumsum(whole))[i] + piece(i, d)


def kaplan_meier(lifetimes: ArrayLike, ended: ArrayLike | None = None) -> tuple[Float64s, Float64s]:
    """Return a tuple (times, S): the lifetimes that ended, and the share of lifetimes longer than each.
    A lifetime that has not ``ended`` counts up to the time when it was last observed (Kaplan & Meier 1958).

    >>> kaplan_meier([1.0, 2.0, 3.0], [True, False, True])
    (array([1., 3.]), array([0.66666667, 0.        ]))
    """
    seen = check_parameter("lifetimes", lifetimes)
    over = np.ones(seen.shape, dtype=bool) if ended is None else np.asarray(ended, dtype=bool)
    if seen.ndim != 1 or over.shape != seen.shape:
        raise InputError("lifetimes and ended must be two lists of the same length")
    if not over.any() or not (seen > 0).all():
        raise InputError("lifetimes must be above 0, and at least one must have ended")
    times, ends = np.unique(seen[over], return_counts=True)
    at_risk = seen.size - np.searchsorted(np.sort(seen), times, side="left")
    return np.asarray(times, dtype=np.float64), np.asarray(np.cumprod(1 - ends / at_risk), dtype=np.float64)
