"""What refreshing buys, item by item: an objective put to the items at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from afresh.allocation.objectives import Objective
from afresh.model.curves import Float64s


class Gains(Protocol):
    """Value of each item as a concave function of its refresh frequency; arrays are as long as the items."""

    def value(self, frequency: Float64s) -> Float64s:
        """Freshness, or minus the loss; at frequency 0 as well."""

    def marginal(self, frequency: Float64s) -> Float64s:
        """Derivative of the value, decreasing in the frequency; its limit at frequency 0."""

    def frequency(self, price: npt.ArrayLike) -> Float64s:
        """Where the marginal is ``price``: 0 for prices of its limit and above, infinite for price 0."""


@dataclass(frozen=True, slots=True)
class RateGains:
    """Items that change in Poisson fashion at ``rate`` > 0, under any objective of the table.

    >>> from afresh.allocation.objectives import objective_for
    >>> gains = RateGains(objective_for("missed", "fixed"), np.array([8.0]))
    >>> gains.value(np.array([2.0])), gains.marginal(np.array([2.0])), gains.frequency(1.0)
    (array([-2.]), array([1.]), array([2.]))
    """

    objective: Objective
    rate: Float64s

    def value(self, frequency: Float64s) -> Float64s:
        """λ^(1−p)·value(λ/f)."""
        value = self.objective.value(self._per_refresh(frequency))
        return value if self.objective.power == 1 else value / self.rate

    def marginal(self, frequency: Float64s) -> Float64s:
        """λ^(−p)·marginal(λ/f)."""
        return self.objective.marginal(self._per_refresh(frequency)) / self._scale()

    def frequency(self, price: npt.ArrayLike) -> Float64s:
        """λ/r with marginal(r) = price·λ^p."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(
                self.rate / self.objective.inverse(np.multiply(price, self._scale())), dtype=np.float64
            )

    def _per_refresh(self, frequency: Float64s) -> Float64s:
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(self.rate / frequency, dtype=np.float64)

    def _scale(self) -> Float64s:
        return self.rate if self.objective.power == 1 else self.rate * self.rate
