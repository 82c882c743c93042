"""The value of each item under an objective, as a function of the item's refresh frequency f.

For Poisson changes the value follows from the rate λ. For a decay function z(t) and the time T = 1/f between
two refreshes it is

    freshness   Z(T)/T                        marginal  Z(T) − T·z(T)  = ∫₀ᵀ s·(−dz)
    −age        (1/T)∫₀ᵀ s(1−z(s))ds − L(T)   marginal  T²/2 − M(T)    = ∫₀ᵀ s·(1−z(s))ds

with Z(T) = ∫₀ᵀz, L(T) = ∫₀ᵀ(1−z), M(T) = ∫₀ᵀs·z(s)ds. The marginal is the derivative by f. Both values are
concave in f for any z, because z never grows. Where z is constant, the marginal freshness is constant too,
and all frequencies there are equally good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from afresh.allocation.objectives import Objective, objective_for
from afresh.model.decay import Decay, Geometric, Windowed, decay_from
from afresh.model.roots import JUST_ABOVE, TINY, solve_decreasing
from afresh.values.arrays import ArrayLike, Float64s
from afresh.values.errors import InputError, UsageError

_BLOCK = 8192  # items at a time, so that temporary arrays stay in the cache


class Gains(Protocol):
    """The value of each item as a concave function of its refresh frequency; one array element per item."""

    def value(self, frequency: Float64s) -> Float64s:
        """Return the value of each item at its frequency (or 0): freshness, or minus a loss such as age."""

    def marginal(self, frequency: Float64s) -> Float64s:
        """Return the derivative of the value by the frequency, which falls as the frequency grows."""

    def frequency(self, price: ArrayLike) -> Float64s:
        """Return the frequency at which the marginal is ``price`` > 0; 0 if ``price`` ≥ ``max_marginal``."""

    def max_marginal(self) -> Float64s:
        """Return the marginal at frequency 0, which is the largest."""

    def max_frequency(self) -> Float64s:
        """Return the frequency above which more refreshes gain nothing; infinite if they always gain."""


@dataclass(frozen=True, slots=True)
class RateGains:
    """The gains of items with Poisson changes of ``rate`` λ > 0, for any objective with Poisson formulas.
    p is the power of the objective, 1 or 2 (see ``objectives``), and f the frequency.

    >>> gains = RateGains(objective_for("missed", "fixed"), np.array([8.0]))
    >>> gains.value(np.array([2.0])), gains.marginal(np.array([2.0])), gains.frequency(1.0)
    (array([-2.]), array([1.]), array([2.]))
    """

    objective: Objective
    rate: Float64s

    def value(self, frequency: Float64s) -> Float64s:
        """Return λ^(1−p)·value(λ/f), with the power p and the function ``value`` of the objective."""

        def of(rate: Float64s, frequency: Float64s) -> Float64s:
            value = self.objective.value(_ratio(rate, frequency))
            return value if self.objective.power == 1 else value / rate

        return _in_blocks(of, self.rate, frequency)

    def marginal(self, frequency: Float64s) -> Float64s:
        """Return λ^(−p)·marginal(λ/f), with the power p and the function ``marginal`` of the objective."""

        def of(rate: Float64s, frequency: Float64s) -> Float64s:
            return self.objective.marginal(_ratio(rate, frequency)) / self._scale(rate)

        return _in_blocks(of, self.rate, frequency)

    def frequency(self, price: ArrayLike) -> Float64s:
        """Return λ/r, where r solves marginal(r) = price·λ^p, with the objective's power p and marginal."""

        def of(rate: Float64s, price: Float64s) -> Float64s:
            with np.errstate(over="ignore"):
                return _ratio(rate, self.objective.inverse(price * self._scale(rate)))

        every = np.broadcast_to(np.asarray(price, dtype=np.float64), self.rate.shape)
        return _in_blocks(of, self.rate, every)

    def max_marginal(self) -> Float64s:
        """Return λ^(−p)·top, where ``top`` is the limit of the objective's marginal (power p)."""
        return np.asarray(self.objective.top / self._scale(self.rate), dtype=np.float64)

    def max_frequency(self) -> Float64s:
        """Return infinity, because one more refresh always gains something."""
        return np.full(self.rate.shape, np.inf)

    def _scale(self, rate: Float64s) -> Float64s:
        return rate if self.objective.power == 1 else rate * rate


def _ratio(a: Float64s, b: Float64s) -> Float64s:
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(a / b, dtype=np.float64)


def _in_blocks(of: Callable[[Float64s, Float64s], Float64s], a: Float64s, b: Float64s) -> Float64s:
    """Return ``of(a, b)``, computed for 8192 items at a time, so that temporary arrays stay in the cache."""
    if len(a) <= _BLOCK:
        return of(a, b)
    out = np.empty(len(a))
    for start in range(0, len(a), _BLOCK):
        block = slice(start, start + _BLOCK)
        out[block] = of(a[block], b[block])
    return out


_JUST_BEFORE = 0.99  # so near to the edge that even (λt)^100, the steepest Weibull decay, does not underflow


@dataclass(frozen=True, slots=True)
class _DecayGains:
    """The gains of ``items`` items with one decay object, whose parameters are numbers or arrays."""

    decay: Decay
    items: int

    def marginal_at(self, interval: Float64s) -> Float64s:
        """Return the gain of one more refresh per time if refreshes are ``interval`` apart."""
        raise NotImplementedError

    def marginal(self, frequency: Float64s) -> Float64s:
        return np.broadcast_to(self.marginal_at(_interval(frequency)), (self.items,))

    def frequency(self, price: ArrayLike) -> Float64s:
        if isinstance(self.decay, Windowed):
            every = np.broadcast_to(np.asarray(price, dtype=np.float64), (self.items,))
            interval = self.decay.interval_at(every, isinstance(self, DecayAge))
            return np.where(every < self.max_marginal(), 1 / interval, 0.0)
        return _invert(self.marginal_at, price, self.items)

    def max_marginal(self) -> Float64s:
        return self.marginal(np.zeros(self.items))

    def max_frequency(self) -> Float64s:
        """Return 1/t if z is constant up to a step at time t (earlier refreshes gain nothing); else ∞."""
        if isinstance(self.decay, Windowed):
            return np.full(self.items, np.inf)
        edge = self.frequency(TINY)
        with np.errstate(all="ignore"):
            nothing = self.marginal_at(_interval(edge) * _JUST_BEFORE) == 0
        return np.where(nothing | (edge == 0), edge, np.inf)


class DecayFreshness(_DecayGains):
    """The mean freshness of a copy whose refreshes are T = 1/frequency apart, Z(T)/T with Z(T) = ∫₀ᵀ z.

    >>> from afresh.model.decay import Linear
    >>> DecayFreshness(Linear(0.1), 1).value(np.array([0.2]))  # every five years
    array([0.75])
    """

    def value(self, frequency: Float64s) -> Float64s:
        """Return the mean freshness ∫₀ᵀ z/T with T = 1/frequency; z(∞) for items that are never refreshed."""
        interval = _interval(frequency)
        inner = np.clip(interval, TINY, 1 / TINY)
        mean = np.where(interval > 0, self.decay.integral(inner) / inner, self.decay.survival(0.0))
        return np.where(np.isinf(interval), self.decay.plateau(), mean)

    def marginal_at(self, interval: Float64s) -> Float64s:
        """Return ∫₀ᵀ z − T·z(T) for T = ``interval``, the freshness that one more refresh per time gains."""
        return self.decay.gain(interval)

    def frequency(self, price: ArrayLike) -> Float64s:
        if not isinstance(self.decay, Geometric):
            return _DecayGains.frequency(self, price)
        every = np.broadcast_to(np.asarray(price, dtype=np.float64), (self.items,))
        frequency = 1 / self.decay.shortest_interval(every)
        # Rounding may make 1/f slightly shorter than a whole number of steps, which would lose one step.
        short = (frequency > 0) & (self.marginal(frequency) < every)
        return np.where(short, frequency / JUST_ABOVE, frequency)


class DecayAge(_DecayGains):
    """Minus the mean age of a copy that is refreshed ``frequency`` times per unit of time.

    >>> from afresh.model.decay import Linear
    >>> DecayAge(Linear(0.1), 1).value(np.array([0.2])).round(4)  # λT²/6
    array([-0.4167])
    """

    def value(self, frequency: Float64s) -> Float64s:
        """Return minus the mean age, ∫₀ᵀ s(1−z(s))ds/T − ∫₀ᵀ(1−z), with T = 1/frequency."""
        interval = _interval(frequency)
        inner = np.clip(interval, 1e-100, 1e100)
        age = self.decay.loss(inner) - self.decay.age_gain(inner) / inner
        never = np.isinf(interval) & (self.decay.plateau() < 1)
        return np.where(never, -np.inf, np.where(interval > 0, -age, -self.decay.loss(0.0)))

    def marginal_at(self, interval: Float64s) -> Float64s:
        """Return ∫₀ᵀ s·(1−z(s))ds for T = ``interval``, the age that one more refresh per time saves."""
        return self.decay.age_gain(interval)


_DECAY_GAINS: Mapping[str, type[DecayFreshness | DecayAge]] = {"freshness": DecayFreshness, "age": DecayAge}


@dataclass(frozen=True, slots=True)
class MixedGains:
    """The gains of items with different decay functions: for each one, a tuple (item positions, gains)."""

    items: int
    parts: tuple[tuple[npt.NDArray[np.intp], Gains], ...]

    def value(self, frequency: Float64s) -> Float64s:
        return self._gather(lambda gains, own: gains.value(own), frequency)

    def marginal(self, frequency: Float64s) -> Float64s:
        return self._gather(lambda gains, own: gains.marginal(own), frequency)

    def frequency(self, price: ArrayLike) -> Float64s:
        every = np.broadcast_to(np.asarray(price, dtype=np.float64), (self.items,))
        return self._gather(lambda gains, own: gains.frequency(own), every)

    def max_marginal(self) -> Float64s:
        return self._gather(lambda gains, _: gains.max_marginal(), np.zeros(self.items))

    def max_frequency(self) -> Float64s:
        return self._gather(lambda gains, _: gains.max_frequency(), np.zeros(self.items))

    def _gather(self, call: Callable[[Gains, Float64s], Float64s], argument: Float64s) -> Float64s:
        out = np.empty(self.items)
        for where, gains in self.parts:
            out[where] = call(gains, argument[where])
        return out


def decay_gains(objective: str, decay: str | Sequence[str] | Decay, rate: Float64s) -> Gains:
    """Return the gains of items with these rates for the objective freshness or age.
    ``decay`` is one name for all items, a list with a name for each item, or a decay object."""
    if isinstance(decay, str):
        return _gains_of_name(objective, decay, rate)
    if not isinstance(decay, Sequence | np.ndarray) and hasattr(decay, "survival"):
        shape = np.shape(decay.gain(1.0))
        if shape not in ((), (1,), rate.shape):
            raise InputError(f"decay has parameters for {shape[0]} items, there are {len(rate)}")
        return _DECAY_GAINS[objective](decay, len(rate))
    specs = np.asarray(decay, dtype=object)
    if specs.shape != rate.shape:
        raise InputError(f"decay has {specs.size} names for {rate.size} items: give one for each item")
    if not all(isinstance(spec, str) for spec in specs):
        raise UsageError("decay must be a name such as 'weibull:0.8', a list of names or a decay object")
    places = {spec: np.flatnonzero(specs == spec) for spec in sorted(set(specs))}
    parts = ((where, _gains_of_name(objective, spec, rate[where])) for spec, where in places.items())
    return MixedGains(len(rate), tuple(parts))


def _gains_of_name(objective: str, spec: str, rate: Float64s) -> Gains:
    if spec.strip() == "exponential":
        return RateGains(objective_for(objective, "fixed"), rate)
    return _DECAY_GAINS[objective](decay_from(spec, rate), len(rate))


def _interval(frequency: Float64s) -> Float64s:
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(1 / frequency, dtype=np.float64)


def _invert(marginal: Callable[[Float64s], Float64s], price: ArrayLike, items: int) -> Float64s:
    """Return the frequency f with marginal(1/f) = price; 0 if the marginal is below the price everywhere."""
    price = np.broadcast_to(np.asarray(price, dtype=np.float64), (items,))
    top = np.broadcast_to(marginal(np.asarray(np.inf)), (items,))
    kept = price < top
    # The largest marginal has the unit of a time; if it is finite, it is a good first guess of the interval.
    guess = np.where(np.isfinite(top) & (top > 0), 1 / np.where(top > 0, top, 1.0), 1.0)
    target = np.where(kept, price, marginal(1 / guess))
    target = np.where(target > 0, target, 1.0)
    with np.errstate(all="ignore"):
        bracket = solve_decreasing(lambda f: marginal(1 / f), target, guess, slope=-2.0)
    return np.where(kept, bracket.low, 0.0)
