"""Age: the time since the first change that the copy has missed, 0 while it is fresh."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.model.curves import aged, k, k_inverse
from afresh.values.arrays import Float64s


@dataclass(frozen=True, slots=True)
class AgeFixed:
    """Even intervals: age r·(½−1/r+(1−e^{−r})/r²)/λ, marginal k(r)/λ² (Cho & Garcia-Molina 2000, §4.4).

    No item is ever dropped: an item never refreshed grows infinitely old.

    >>> AgeFixed().value(1.0)
    array(-0.13212056)
    """

    power: int = 2
    top: float = np.inf

    def value(self, r: npt.ArrayLike) -> Float64s:
        """−r·(½−1/r+(1−e^{−r})/r²)."""
        return np.asarray(-np.asarray(r, dtype=np.float64) * aged(r), dtype=np.float64)

    def marginal(self, r: npt.ArrayLike) -> Float64s:
        """k(r) = r²/2−1+(1+r)e^{−r}."""
        return k(r)

    def inverse(self, y: npt.ArrayLike) -> Float64s:
        """k⁻¹(y)."""
        return k_inverse(y)


@dataclass(frozen=True, slots=True)
class AgeMemoryless:
    """Poisson refreshes: age λ/(f(f+λ)), that is r²/(1+r) in units of 1/λ; marginal r³(r+2)/(1+r)².

    The marginal, r² − (r/(1+r))², is a quartic in r, but log marginal has slope 2 to 3 over log r: Newton
    steps on the logarithms converge from any start, in five from the two asymptotes.

    >>> AgeMemoryless().inverse(AgeMemoryless().marginal([1e-6, 1.0, 1e6]))
    array([1.e-06, 1.e+00, 1.e+06])
    """

    power: int = 2
    top: float = np.inf

    def value(self, r: npt.ArrayLike) -> Float64s:
        """−r²/(1+r)."""
        r = np.asarray(r, dtype=np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray(-r / (1 + 1 / r), dtype=np.float64)

    def marginal(self, r: npt.ArrayLike) -> Float64s:
        """r³(r+2)/(1+r)²."""
        r = np.asarray(r, dtype=np.float64)
        cut = np.minimum(r, 1e100)
        with np.errstate(over="ignore"):
            return np.asarray(r * r * (cut / (1 + cut)) * ((cut + 2) / (1 + cut)), dtype=np.float64)

    def inverse(self, y: npt.ArrayLike) -> Float64s:
        """The root of r³(r+2)/(1+r)² = y."""
        y = np.asarray(y, dtype=np.float64)
        # Outside these limits the marginal is 2r³ or r² to the last digit.
        inner = np.clip(y, 1e-60, 1e40)
        r = np.where(inner < 4, np.cbrt(inner / 2), np.sqrt(inner))
        for _ in range(5):
            steepness = 3 + r / (2 + r) - 2 * r / (1 + r)
            r = r * np.exp(np.log(inner / self.marginal(r)) / steepness)
        return np.where(y < 1e-60, np.cbrt(y / 2), np.where(y > 1e40, np.sqrt(y), r))
