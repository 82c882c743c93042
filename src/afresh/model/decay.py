"""Decay functions: the probability that a copy is still correct t after its refresh (Razniewski 2016, §4).

Allocation, money and rates work with any object of the protocol ``Decay``. If T is the time between two
refreshes, a copy is correct for the share integral(T)/T of the time, and its mean age is loss(T) −
age_gain(T)/T. One more refresh per time raises the freshness by gain(T) and lowers the age by age_gain(T).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from afresh.model.decays.empirical import Empirical
from afresh.model.decays.gamma_decay import GammaDecay
from afresh.model.decays.geometric import Geometric
from afresh.model.decays.lomax import Lomax
from afresh.model.decays.parameters import Size, check_parameter
from afresh.model.decays.rate_decays import Exponential, Linear, Weibull
from afresh.model.decays.windowed import Windowed
from afresh.values.arrays import ArrayLike, Float64s
from afresh.values.errors import UsageError, one_of

__all__ = ["DECAYS", "Decay", "Empirical", "Exponential", "GammaDecay", "Geometric", "Linear", "Lomax"]
__all__ += ["Factory", "Weibull", "Windowed", "decay_from"]


class Decay(Protocol):
    """A decay function z(t), the probability that a copy is still correct at the time t after its refresh.

    z(0) ≤ 1, and z never rises. Times ``t`` are scalars or arrays from 0 to infinity that broadcast against
    the parameters of the decay. All methods return float64 arrays. ``gain``, ``loss`` and ``age_gain`` follow
    from z, but each class computes them without cancellation, so that they are accurate for any t."""

    def survival(self, t: ArrayLike) -> Float64s:
        """Return z(t), the probability that a copy is still correct at the time t after its refresh."""

    def integral(self, t: ArrayLike) -> Float64s:
        """Return Z(t) = ∫₀ᵗ z, the expected time in which a copy is correct, from its refresh to t."""

    def gain(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ z − t·z(t), the freshness that one more refresh per time gains if refreshes are t apart.
        It equals ∫₀ᵗ s·(−dz)."""

    def loss(self, t: ArrayLike) -> Float64s:
        """Return t − ∫₀ᵗ z = ∫₀ᵗ (1−z), the expected age of a copy at the time t after its refresh."""

    def age_gain(self, t: ArrayLike) -> Float64s:
        """Return ∫₀ᵗ s·(1−z(s))ds, the age that one more refresh per time saves if refreshes are t apart."""

    def sample(self, rng: np.random.Generator, size: Size = None) -> Float64s:
        """Draw times from a refresh to the first change, in the shape ``size``; by default one per item."""

    def total(self) -> Float64s:
        """Return ∫₀^∞ z, the expected time for which a copy that is never refreshed again stays correct."""

    def plateau(self) -> Float64s:
        """Return z(∞), the probability that a copy stays correct for ever."""


@dataclass(frozen=True, slots=True)
class Factory:
    """A function that makes a decay from rates and a shape; ``example`` is a usual shape, None if none."""

    make: Callable[[Float64s, float], Decay]
    example: float | None = None


DECAYS: dict[str, Factory] = {
    "exponential": Factory(lambda rate, _: Exponential(rate)),
    "linear": Factory(lambda rate, _: Linear(rate)),
    "weibull": Factory(lambda rate, shape: Weibull(rate, shape), example=0.8),
    "gamma": Factory(lambda rate, shape: GammaDecay(rate, shape), example=2.0),
    "lomax": Factory(lambda rate, shape: Lomax(shape, _scale(shape, rate)), example=1.5),
    "geometric": Factory(lambda rate, _: Geometric(-np.expm1(-rate))),
}


def decay_from(spec: str, rate: ArrayLike) -> Decay:
    """Return the decay named by ``spec``: exponential, linear, weibull:SHAPE, gamma:SHAPE, lomax:SHAPE
    or geometric.

    ``rate`` is the change rate of each item right after a refresh. But for weibull it is the number with
    z(1/rate) = 1/e, for gamma 1/rate is the mean time to a change, and for geometric a step of length 1 has a
    change with probability 1−e^{−rate}.

    >>> round(float(decay_from("weibull:2", 1.0).survival(1.0)), 4)
    0.3679
    >>> decay_from("weibul:2", 1.0)
    Traceback (most recent call last):
    afresh.values.errors.UsageError: unknown decay 'weibul': did you mean 'weibull'? One of exponential, \
linear, weibull, gamma, lomax, geometric
    """
    name, colon, text = spec.strip().partition(":")
    factory = DECAYS[one_of("decay", name, DECAYS)]
    rates = check_parameter("rate", rate)
    if factory.example is None:
        if colon:
            raise UsageError(f"decay {spec!r}: {name} takes no shape, write {name!r}")
        return factory.make(rates, 0.0)
    try:
        shape = float(text)
    except ValueError:
        hint = f"{name}:{factory.example:g}"
        raise UsageError(f"decay {spec!r}: {name} needs a shape, such as {hint!r}") from None
    return factory.make(rates, shape)


def _scale(shape: float, rate: Float64s) -> Float64s:
    """Return the scale shape/rate with which a Lomax decay has the given rate right after a refresh."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.maximum(shape / rate, 1e-300)
