"""The value of refreshing each item as a function of its frequency: an objective applied to items.

For Poisson changes it follows from the rate. Under any decay function z(t), refreshed every T = 1/f,

    freshness   Z(T)/T                        marginal  Z(T) − T·z(T)  = ∫₀ᵀ s·(−dz)
    age         L(T) − (1/T)∫₀ᵀ s(1−z(s))ds   marginal  T²/2 − M(T)    = ∫₀ᵀ s·(1−z(s))ds

with Z = ∫z, L = ∫(1−z), M = ∫s·z. Both values are concave in f whatever z is, since z never grows; where z
has steps or stands still the marginal is flat, and any frequency between two steps is as good as another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from afresh.allocation.objectives import Objective, objective_for
from afresh.model.decay import Decay, Geometric, decay_from
from afresh.model.roots import JUST_ABOVE, TINY, solve_decreasing
from afresh.values.arrays import ArrayLike, Float64s
from afresh.values.errors import InputError, UsageError

_BLOCK = 8192  # items whose temporaries stay in the cache


class Gains(Protocol):
    """Value of each item as a concave function of its refresh frequency; arrays are as long as the items."""

    def value(self, frequency: Float64s) -> Float64s:
        """Freshness, or minus the loss; at frequency 0 as well."""

    def marginal(self, frequency: Float64s) -> Float64s:
        """Derivative of the value, decreasing in the frequency; its limit at frequency 0."""

    def frequency(self, price: ArrayLike) -> Float64s:
        """Where the marginal is ``price`` > 0; 0 for prices of ``max_marginal`` and above."""

    def max_marginal(self) -> Float64s:
        """The marginal at frequency 0."""

    def max_frequency(self) -> Float64s:
        """Limit of the frequency as the price goes to 0: infinite unless the gain ends at some frequency."""


@dataclass(frozen=True, slots=True)
class RateGains:
    """Items whose changes are Poisson processes of ``rate`` > 0, under any objective of the table.

    >>> gains = RateGains(objective_for("missed", "fixed"), np.array([8.0]))
    >>> gains.value(np.array([2.0])), gains.marginal(np.array([2.0])), gains.frequency(1.0)
    (array([-2.]), array([1.]), array([2.]))
    """

    objective: Objective
    rate: Float64s

    def value(self, frequency: Float64s) -> Float64s:
        """λ^(1−p)·value(λ/f)."""

        def of(rate: Float64s, frequency: Float64s) -> Float64s:
            value = self.objective.value(_ratio(rate, frequency))
            return value if self.objective.power == 1 else value / rate

        return _in_blocks(of, self.rate, frequency)

    def marginal(self, frequency: Float64s) -> Float64s:
        """λ^(−p)·marginal(λ/f)."""

        def of(rate: Float64s, frequency: Float64s) -> Float64s:
            return self.objective.marginal(_ratio(rate, frequency)) / self._scale(rate)

        return _in_blocks(of, self.rate, frequency)

    def frequency(self, price: ArrayLike) -> Float64s:
        """λ/r with marginal(r) = price·λ^p."""

        def of(rate: Float64s, price: Float64s) -> Float64s:
            with np.errstate(over="ignore"):
                return _ratio(rate, self.objective.inverse(price * self._scale(rate)))

        every = np.broadcast_to(np.asarray(price, dtype=np.float64), self.rate.shape)
        return _in_blocks(of, self.rate, every)

    def max_marginal(self) -> Float64s:
        """λ^(−p)·top."""
        return np.asarray(self.objective.top / self._scale(self.rate), dtype=np.float64)

    def max_frequency(self) -> Float64s:
        """Infinite: one more refresh always buys something."""
        return np.full(self.rate.shape, np.inf)

    def _scale(self, rate: Float64s) -> Float64s:
        return rate if self.objective.power == 1 else rate * rate


def _ratio(a: Float64s, b: Float64s) -> Float64s:
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(a / b, dtype=np.float64)


def _in_blocks(of: Callable[[Float64s, Float64s], Float64s], a: Float64s, b: Float64s) -> Float64s:
    """``of(a, b)``, some thousand items at a time, so that temporaries stay in the cache."""
    if len(a) <= _BLOCK:
        return of(a, b)
    out = np.empty(len(a))
    for start in range(0, len(a), _BLOCK):
        block = slice(start, start + _BLOCK)
        out[block] = of(a[block], b[block])
    return out


_JUST_BEFORE = 0.99  # near enough that even (λt)^100 does not underflow from the edge to there


@dataclass(frozen=True, slots=True)
class _DecayGains:
    """Gains of ``items`` items under one decay object, its parameters scalars or arrays."""

    decay: Decay
    items: int

    def marginal_at(self, interval: Float64s) -> Float64s:
        """What one more refresh per time buys at this interval."""
        raise NotImplementedError

    def marginal(self, frequency: Float64s) -> Float64s:
        return np.broadcast_to(self.marginal_at(_interval(frequency)), (self.items,))

    def frequency(self, price: ArrayLike) -> Float64s:
        return _invert(self.marginal_at, price, self.items)

    def max_marginal(self) -> Float64s:
        return self.marginal(np.zeros(self.items))

    def max_frequency(self) -> Float64s:
        """Finite where z starts with a step: nothing is gained before it."""
        edge = self.frequency(TINY)
        with np.errstate(all="ignore"):
            nothing = self.marginal_at(_interval(edge) * _JUST_BEFORE) == 0
        return np.where(nothing | (edge == 0), edge, np.inf)


class DecayFreshness(_DecayGains):
    """Average freshness Z(T)/T.

    >>> from afresh.model.decay import Linear
    >>> DecayFreshness(Linear(0.1), 1).value(np.array([0.2]))  # every five years
    array([0.75])
    """

    def value(self, frequency: Float64s) -> Float64s:
        """Z(T)/T; the plateau of z where never refreshed."""
        interval = _interval(frequency)
        inner = np.clip(interval, TINY, 1 / TINY)
        mean = np.where(interval > 0, self.decay.integral(inner) / inner, self.decay.survival(0.0))
        return np.where(np.isinf(interval), self.decay.plateau(), mean)

    def marginal_at(self, interval: Float64s) -> Float64s:
        """Z(T) − T·z(T)."""
        return self.decay.gain(interval)

    def frequency(self, price: ArrayLike) -> Float64s:
        if not isinstance(self.decay, Geometric):
            return _DecayGains.frequency(self, price)
        every = np.broadcast_to(np.asarray(price, dtype=np.float64), (self.items,))
        frequency = 1 / self.decay.shortest_interval(every)
        # Rounding may make 1/f a little shorter than whole steps, which is one step less.
        short = (frequency > 0) & (self.marginal(frequency) < every)
        return np.where(short, frequency / JUST_ABOVE, frequency)


class DecayAge(_DecayGains):
    """Minus the average age of a copy that is refreshed ``frequency`` times per unit of time.

    >>> from afresh.model.decay import Linear
    >>> DecayAge(Linear(0.1), 1).value(np.array([0.2])).round(4)  # λT²/6
    array([-0.4167])
    """

    def value(self, frequency: Float64s) -> Float64s:
        """−(L(T) − ∫₀ᵀs(1−z)/T)."""
        interval = _interval(frequency)
        inner = np.clip(interval, 1e-100, 1e100)
        age = self.decay.loss(inner) - self.decay.age_gain(inner) / inner
        never = np.isinf(interval) & (self.decay.plateau() < 1)
        return np.where(never, -np.inf, np.where(interval > 0, -age, 0.0))

    def marginal_at(self, interval: Float64s) -> Float64s:
        """T²/2 − M(T)."""
        return self.decay.age_gain(interval)


_DECAY_GAINS: Mapping[str, type[DecayFreshness | DecayAge]] = {"freshness": DecayFreshness, "age": DecayAge}


@dataclass(frozen=True, slots=True)
class MixedGains:
    """Items of several kinds: each part with the positions of its items."""

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
    """Gains under a decay given as one name for all, a name for each item, or a decay object."""
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
    """f with marginal(1/f) = price, 0 where the marginal never reaches the price."""
    price = np.broadcast_to(np.asarray(price, dtype=np.float64), (items,))
    top = np.broadcast_to(marginal(np.asarray(np.inf)), (items,))
    kept = price < top
    # The top of the marginal is a time; it sets the scale where it is finite.
    guess = np.where(np.isfinite(top) & (top > 0), 1 / np.where(top > 0, top, 1.0), 1.0)
    target = np.where(kept, price, marginal(1 / guess))
    target = np.where(target > 0, target, 1.0)
    with np.errstate(all="ignore"):
        bracket = solve_decreasing(lambda f: marginal(1 / f), target, guess, slope=-2.0)
    return np.where(kept, bracket.low, 0.0)
