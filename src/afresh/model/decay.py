"""Decay functions: how likely a copy is still right t after its refresh (Razniewski 2016, §4).

Allocation, money and rates work with any object of the protocol ``Decay``. A copy refreshed at intervals T is
right for integral(T)/T of the time, and its mean age is loss(T) − age_gain(T)/T. One more refresh per time
adds gain(T) to the freshness and takes age_gain(T) off the age.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from afresh.model.decays.empirical import Empirical
from afresh.model.decays.geometric import Geometric
from afresh.model.decays.lomax import Lomax
from afresh.model.decays.parameters import Size, check_parameter
from afresh.model.decays.rate_decays import Exponential, Linear, Weibull
from afresh.values.arrays import ArrayLike, Float64s
from afresh.values.errors import UsageError, one_of

__all__ = ["DECAYS", "Decay", "Empirical", "Exponential", "Geometric", "Linear", "Lomax", "Weibull"]
__all__ += ["Factory", "decay_from"]


class Decay(Protocol):
    """z(t), the probability that a copy is still right t after its refresh, with its integrals.

    z(0) ≤ 1, and z never grows. Times are scalars or arrays of 0 or more that broadcast against the
    parameters; infinity is allowed. Results are float64 arrays. ``gain``, ``loss`` and ``age_gain`` follow
    from z and its moments, yet each is computed without cancellation, so that it is accurate for any λt.
    """

    def survival(self, t: ArrayLike) -> Float64s:
        """z(t)."""

    def integral(self, t: ArrayLike) -> Float64s:
        """Z(t) = ∫₀ᵗ z: the time for which a copy is right until t."""

    def gain(self, t: ArrayLike) -> Float64s:
        """Z(t) − t·z(t) = ∫₀ᵗ s·(−dz): marginal freshness of refreshing at interval t, and the index."""

    def loss(self, t: ArrayLike) -> Float64s:
        """t − Z(t) = ∫₀ᵗ (1−z): the expected age of a copy t after its refresh."""

    def age_gain(self, t: ArrayLike) -> Float64s:
        """∫₀ᵗ s·(1−z(s))ds = t²/2 − ∫₀ᵗ s·z(s)ds: marginal age of refreshing at interval t."""

    def sample(self, rng: np.random.Generator, size: Size = None) -> Float64s:
        """Times from a refresh to the first change, infinite where none comes; P(T > t) = z(t)."""

    def total(self) -> Float64s:
        """∫₀^∞ z, possibly infinite."""

    def plateau(self) -> Float64s:
        """z(∞): the share of copies that stay right for ever."""


@dataclass(frozen=True, slots=True)
class Factory:
    """How to make a named decay from a rate and, if it has one, a shape. ``example`` is a usual shape."""

    make: Callable[[Float64s, float], Decay]
    example: float | None = None


DECAYS: dict[str, Factory] = {
    "exponential": Factory(lambda rate, _: Exponential(rate)),
    "linear": Factory(lambda rate, _: Linear(rate)),
    "weibull": Factory(lambda rate, shape: Weibull(rate, shape), example=0.8),
    "lomax": Factory(lambda rate, shape: Lomax(shape, _scale(shape, rate)), example=1.5),
    "geometric": Factory(lambda rate, _: Geometric(-np.expm1(-rate))),
}


def decay_from(spec: str, rate: ArrayLike) -> Decay:
    """The decay that ``spec`` names: exponential, linear, weibull:SHAPE, lomax:SHAPE, geometric.

    ``rate`` is the hazard at 0 (lomax: scale = shape/rate; geometric: 1−e^{−rate} per step of 1); a weibull
    has survival 1/e at 1/rate.

    >>> round(float(decay_from("weibull:2", 1.0).survival(1.0)), 4)
    0.3679
    >>> decay_from("weibul:2", 1.0)
    Traceback (most recent call last):
    afresh.values.errors.UsageError: unknown decay 'weibul': did you mean 'weibull'? One of exponential, \
linear, weibull, lomax, geometric
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
    with np.errstate(divide="ignore", over="ignore"):
        return np.maximum(shape / rate, 1e-300)
