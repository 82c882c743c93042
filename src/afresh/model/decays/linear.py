"""Linear decay: z(t) = max(1 − λt, 0), every copy wrong by 1/λ (Razniewski 2016, §4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
class Linear:
    """z(t) = max(1 − λt, 0): the first change is equally likely at any time up to 1/λ.

    An address that is wrong after ten years at the latest, refreshed every five years, is right 75 % of the
    time (Razniewski 2016, §2).

    >>> float(Linear(1 / 10).integral(5.0) / 5)
    0.75
    """

    rate: Float64s

    def __init__(self, rate: npt.ArrayLike) -> None:
        object.__setattr__(self, "rate", check_parameter("rate", rate))

    def survival(self, t: npt.ArrayLike) -> Float64s:
        """max(1 − λt, 0)."""
        return 1 - np.minimum(multiply_by_rate(as_times(t), self.rate), 1.0)

    def integral(self, t: npt.ArrayLike) -> Float64s:
        """u(1 − λu/2), u = min(t, 1/λ)."""
        u, x = self._until_wrong(t)
        return u * (1 - x / 2)

    def gain(self, t: npt.ArrayLike) -> Float64s:
        """λu²/2."""
        u, x = self._until_wrong(t)
        return np.where(x > 0, u, 0.0) * x / 2

    def loss(self, t: npt.ArrayLike) -> Float64s:
        """λu²/2, and all of the time after 1/λ."""
        u, x = self._until_wrong(t)
        late = np.where(x < 1, 0.0, as_times(t) - np.where(x < 1, 0.0, u))
        return self.gain(t) + late

    def age_gain(self, t: npt.ArrayLike) -> Float64s:
        """λu³/3, and ∫s ds after 1/λ."""
        u, x = self._until_wrong(t)
        u = np.where(x > 0, u, 0.0)
        with np.errstate(over="ignore", under="ignore"):
            late = np.where(x < 1, 0.0, (as_times(t) - u) * (as_times(t) + u) / 2)
            return u * u * x / 3 + late

    def sample(self, rng: np.random.Generator, size: Size = None) -> Float64s:
        """Times from a refresh to the first change: uniform on (0, 1/λ)."""
        return divide_by_rate(rng.random(sample_shape(size, self.rate)), self.rate)

    def total(self) -> Float64s:
        """1/(2λ)."""
        return divide_by_rate(0.5, self.rate)

    def plateau(self) -> Float64s:
        """0, or 1 for what never changes."""
        return np.where(self.rate > 0, 0.0, 1.0)

    def _until_wrong(self, t: npt.ArrayLike) -> tuple[Float64s, Float64s]:
        """u = min(t, 1/λ) and λu."""
        u = np.minimum(as_times(t), divide_by_rate(1.0, self.rate))
        return u, np.minimum(multiply_by_rate(as_times(t), self.rate), 1.0)
