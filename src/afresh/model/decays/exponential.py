"""Exponential decay: z(t) = e^{−λt}, changes of a Poisson process (Cho & Garcia-Molina 2000, §3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.model import curves
from afresh.model.decays.parameters import (
    Size,
    as_times,
    check_parameter,
    divide_by_rate,
    multiply_by_rate,
    sample_shape,
)
from afresh.values.arrays import Float64s


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Exponential:
    """z(t) = e^{−λt}: changes come at rate λ, however long ago the last one was.

    Refreshed once per mean change, a copy is right 63 % of the time (Cho & Garcia-Molina 2000, Theorem 3.1).

    >>> round(float(Exponential(1.0).integral(1.0)), 2)
    0.63
    """

    rate: Float64s

    def __init__(self, rate: npt.ArrayLike) -> None:
        object.__setattr__(self, "rate", check_parameter("rate", rate))

    def survival(self, t: npt.ArrayLike) -> Float64s:
        """e^{−λt}."""
        return np.exp(-multiply_by_rate(as_times(t), self.rate))

    def integral(self, t: npt.ArrayLike) -> Float64s:
        """(1−e^{−λt})/λ."""
        return self._scale_curve(lambda x: -np.expm1(-x), t, 1, lambda x: np.ones_like(x))

    def gain(self, t: npt.ArrayLike) -> Float64s:
        """g(λt)/λ."""
        return self._scale_curve(curves.g, t, 1, lambda x: x / 2)

    def loss(self, t: npt.ArrayLike) -> Float64s:
        """h(λt)/λ."""
        return self._scale_curve(curves.h, t, 1, lambda x: x / 2)

    def age_gain(self, t: npt.ArrayLike) -> Float64s:
        """k(λt)/λ²."""
        return self._scale_curve(curves.k, t, 2, lambda x: x / 3)

    def sample(self, rng: np.random.Generator, size: Size = None) -> Float64s:
        """Times from a refresh to the first change."""
        return divide_by_rate(rng.standard_exponential(sample_shape(size, self.rate)), self.rate)

    def total(self) -> Float64s:
        """1/λ."""
        return divide_by_rate(1.0, self.rate)

    def plateau(self) -> Float64s:
        """0, or 1 for what never changes."""
        return np.where(self.rate > 0, 0.0, 1.0)

    def _scale_curve(
        self,
        curve: Callable[[Float64s], Float64s],
        t: npt.ArrayLike,
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
