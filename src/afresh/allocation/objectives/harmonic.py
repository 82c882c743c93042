"""Harmonic staleness: the n-th missed change costs 1/n, so that a copy is never beyond hope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.model.curves import h, h_inverse, harmonic
from afresh.values.arrays import Float64s


@dataclass(frozen=True, slots=True)
class HarmonicFixed:
    """Even intervals: Ein(r) − 1 + (1−e^{−r})/r, marginal h(r) = r−1+e^{−r}, inverse 1+y+W₀(−e^{−(1+y)}).

    >>> HarmonicFixed().inverse(HarmonicFixed().marginal([1e-6, 2.0]))
    array([1.e-06, 2.e+00])
    """

    power: int = 1
    top: float = np.inf

    def value(self, r: npt.ArrayLike) -> Float64s:
        """−(Ein(r) − 1 + (1−e^{−r})/r)."""
        return -harmonic(r)

    def marginal(self, r: npt.ArrayLike) -> Float64s:
        """h(r)."""
        return h(r)

    def inverse(self, y: npt.ArrayLike) -> Float64s:
        """h⁻¹(y)."""
        return h_inverse(y)


@dataclass(frozen=True, slots=True)
class HarmonicMemoryless:
    """Poisson refreshes: ln(1+r), marginal r²/(1+r), r = (y+√(y²+4y))/2 (Kolobov et al. 2019).

    In frequencies, with q = wλ/(cμ): f = 2q/(λ+√(λ²+4q)).

    >>> HarmonicMemoryless().inverse([0.0, 0.5])
    array([0., 1.])
    """

    power: int = 1
    top: float = np.inf

    def value(self, r: npt.ArrayLike) -> Float64s:
        """−ln(1+r)."""
        return -np.log1p(np.asarray(r, dtype=np.float64))

    def marginal(self, r: npt.ArrayLike) -> Float64s:
        """r²/(1+r)."""
        r = np.asarray(r, dtype=np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray(r / (1 + 1 / r), dtype=np.float64)

    def inverse(self, y: npt.ArrayLike) -> Float64s:
        """(y+√(y(y+4)))/2."""
        y = np.asarray(y, dtype=np.float64)
        return np.asarray((y + np.sqrt(y) * np.sqrt(y + 4)) / 2, dtype=np.float64)
