"""Content lag: the sum over missed changes of the time since each, Σ(t − tᵢ) (Yang et al.)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Float64s


@dataclass(frozen=True, slots=True)
class LagFixed:
    """Even intervals: ½λτ² averaged over τ is λ/(6f²); marginal λ/(3f³), f = (wλ/(3cμ))^{1/3}.

    >>> LagFixed().inverse([9.0])
    array([3.])
    """

    power: int = 2
    top: float = np.inf

    def value(self, r: npt.ArrayLike) -> Float64s:
        """−r²/6."""
        with np.errstate(over="ignore"):
            return np.asarray(np.square(np.asarray(r, dtype=np.float64)) / -6, dtype=np.float64)

    def marginal(self, r: npt.ArrayLike) -> Float64s:
        """r³/3."""
        r = np.asarray(r, dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.asarray(r * r * r / 3, dtype=np.float64)

    def inverse(self, y: npt.ArrayLike) -> Float64s:
        """(3y)^{1/3}."""
        return np.cbrt(3 * np.asarray(y, dtype=np.float64))


@dataclass(frozen=True, slots=True)
class LagMemoryless:
    """Poisson refreshes: ½λτ² averaged over an exponential τ is λ/f²; marginal 2λ/f³, f = (2wλ/(cμ))^{1/3}.

    >>> LagMemoryless().inverse([16.0])
    array([2.])
    """

    power: int = 2
    top: float = np.inf

    def value(self, r: npt.ArrayLike) -> Float64s:
        """−r²."""
        with np.errstate(over="ignore"):
            return np.negative(np.square(np.asarray(r, dtype=np.float64)))

    def marginal(self, r: npt.ArrayLike) -> Float64s:
        """2r³."""
        r = np.asarray(r, dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.asarray(2 * r * r * r, dtype=np.float64)

    def inverse(self, y: npt.ArrayLike) -> Float64s:
        """(y/2)^{1/3}."""
        return np.cbrt(np.asarray(y, dtype=np.float64) / 2)
