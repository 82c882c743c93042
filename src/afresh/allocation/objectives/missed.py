"""Missed changes: how many changes the copy is behind."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Float64s


@dataclass(frozen=True, slots=True)
class MissedFixed:
    """Even intervals: λ/(2f) changes behind, marginal λ/(2f²), f = √(wλ/(2cμ)): the square-root rule.

    >>> MissedFixed().inverse([2.0])
    array([2.])
    """

    power: int = 1
    top: float = np.inf

    def value(self, r: npt.ArrayLike) -> Float64s:
        """−r/2."""
        return np.asarray(-0.5 * np.asarray(r, dtype=np.float64), dtype=np.float64)

    def marginal(self, r: npt.ArrayLike) -> Float64s:
        """r²/2."""
        with np.errstate(over="ignore"):
            return np.asarray(0.5 * np.square(np.asarray(r, dtype=np.float64)), dtype=np.float64)

    def inverse(self, y: npt.ArrayLike) -> Float64s:
        """√(2y)."""
        return np.asarray(math.sqrt(2) * np.sqrt(np.asarray(y, dtype=np.float64)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class MissedMemoryless:
    """Poisson refreshes: λ/f changes behind, twice as many; marginal λ/f², f = √(wλ/(cμ)).

    >>> MissedMemoryless().inverse([4.0])
    array([2.])
    """

    power: int = 1
    top: float = np.inf

    def value(self, r: npt.ArrayLike) -> Float64s:
        """−r."""
        return np.negative(np.asarray(r, dtype=np.float64))

    def marginal(self, r: npt.ArrayLike) -> Float64s:
        """r²."""
        with np.errstate(over="ignore"):
            return np.square(np.asarray(r, dtype=np.float64))

    def inverse(self, y: npt.ArrayLike) -> Float64s:
        """√y."""
        return np.sqrt(np.asarray(y, dtype=np.float64))
