"""The value of refreshing each item as a function of its frequency: an objective applied to items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from afresh.allocation.objectives.objective import Objective
from afresh.values.arrays import Float64s

_BLOCK = 8192  # items whose temporaries stay in the cache


class Gains(Protocol):
    """Value of each item as a concave function of its refresh frequency; arrays are as long as the items."""

    def value(self, frequency: Float64s) -> Float64s:
        """Freshness, or minus the loss; at frequency 0 as well."""

    def marginal(self, frequency: Float64s) -> Float64s:
        """Derivative of the value, decreasing in the frequency; its limit at frequency 0."""

    def frequency(self, price: npt.ArrayLike) -> Float64s:
        """Where the marginal is ``price`` > 0; 0 for prices of ``max_marginal`` and above."""

    def max_marginal(self) -> Float64s:
        """The marginal at frequency 0."""

    def max_frequency(self) -> Float64s:
        """Limit of the frequency as the price goes to 0: infinite unless the gain ends at some frequency."""


@dataclass(frozen=True, slots=True)
class RateGains:
    """Items whose changes are Poisson processes of ``rate`` > 0, under any objective of the table.

    >>> from afresh.allocation.objectives.registry import objective_for
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

    def frequency(self, price: npt.ArrayLike) -> Float64s:
        """λ/r with marginal(r) = price·λ^p."""

        def of(rate: Float64s, price: Float64s) -> Float64s:
            with np.errstate(over="ignore"):
                y = price * self._scale(rate)
            return _ratio(rate, self.objective.inverse(y))

        return _in_blocks(
            of, self.rate, np.broadcast_to(np.asarray(price, dtype=np.float64), self.rate.shape)
        )

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
